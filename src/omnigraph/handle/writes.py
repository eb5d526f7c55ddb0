"""The part of the Graph that writes: mutations, loads, and what the schema is. Thin, like the rest of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.choices import EmbedMode, Engine, Mode, Target
from omnigraph.engines import engine_for_load, engine_for_tables
from omnigraph.errors import BadRequest
from omnigraph.handle.held import Held
from omnigraph.policy.actions import Action
from omnigraph.sources import gathered, named_in_errors, query_source, schema_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import Snapshot, StreamBatch
    from omnigraph.query.ir import ReadQuery
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.migration.migrate import MigrationPlan
    from omnigraph.spark.stream.load_stream import LoadStream
    from omnigraph.write.embedding.embed_results import EmbedResult
    from omnigraph.write.results import LoadResult, MutationResult
    from omnigraph.write.schema.schema_apply import SchemaApplyResult


class Writes(Held):
    """Writing to an open graph, and its schema; `Graph` does it."""

    def mutate(
        self,
        source: str | PathLike[str],
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        **more: Any,
    ) -> MutationResult:
        """Run a mutation query: one commit, or none when it changes nothing.

        `if_commit`: only if no data changed on the branch since that commit. Parameters are given as for `query`.
        """
        from omnigraph.write.decode.blob_sources import allowing
        from omnigraph.write.mutate.mutate import mutate

        given = query_source(source)
        own = {"name": name, "branch": branch, "actor": actor, "if_commit": if_commit}
        target, by = self._place(branch), actor or self._actor
        self._allow(Action.CHANGE, by, branch=target)
        with named_in_errors(given.filename), allowing(self._store.blob_bases):
            values = gathered("mutate", given.text, params, more, own)
            if self._combine and if_commit is None:
                from omnigraph.write.mutate.combined import mutate_combined

                return mutate_combined(self._store, given.text, name, values, branch=target, actor=by, read=read_match)
            return mutate(
                self._store, given.text, name, values, branch=target, actor=by, if_commit=if_commit, read=read_match
            )

    def load(
        self,
        data: Any,
        *,
        mode: Mode,
        type: str | None = None,
        src: str | None = None,
        dst: str | None = None,
        columns: Mapping[str, str] | None = None,
        branch: str | None = None,
        from_: str | None = None,
        engine: Engine = "auto",
        actor: str | None = None,
        if_commit: str | None = None,
        progress: Callable[[Any], None] | None = None,
        batch: tuple[str, int] | None = None,
    ) -> LoadResult:
        """Load records as one commit, or nothing at all when one of them breaks a rule.

        `data` is a path, a directory, a glob or several of them, an open file, bytes, Python rows, an Arrow table, a
        pandas, Polars or Spark frame. `mode` is append, merge or overwrite. Rows of columns are of `type`; `src` and
        `dst` name the columns with the ends of edges, `columns` maps other column names to properties. `from_` makes
        `branch` on the way, from that one, if there is none of that name. `batch` is the name of a stream of loads and
        the number of this one in it, counted upwards: one that the branch has already is skipped, so that a loader
        that does not know whether its last load came through can repeat it.
        """
        if from_ is not None and branch is None:
            raise BadRequest(f"from_={from_!r} makes a branch for the load: name it with branch=…")
        self._allow(Action.CHANGE, actor, branch=self._place(branch))
        if self._policy is not None and branch is not None and from_ is not None and not self._store.refs.get(branch):
            self._allow(Action.BRANCH_CREATE, actor, target=branch)
        options: dict[str, Any] = {
            "mode": mode,
            "type": type,
            "src": src,
            "dst": dst,
            "columns": columns,
            "branch": self._place(branch),
            "from_": from_,
            "actor": actor or self._actor,
            "if_commit": if_commit,
            "progress": progress,
            "batch": _stream_batch(batch),
        }
        if engine_for_load(engine, data) == "spark":
            from omnigraph.spark.load.load import load as load_on_spark
            from omnigraph.spark.session.session import spark_session

            return load_on_spark(spark_session(), self._store, data, **options)
        from omnigraph.write.decode.blob_sources import allowing
        from omnigraph.write.load.load import load

        with allowing(self._store.blob_bases):
            return load(self._store, data, **options)

    def embed(
        self,
        types: Collection[str] | None = None,
        property: str | None = None,
        *,
        mode: EmbedMode = "missing",
        branch: str | None = None,
        dry_run: bool = False,
        engine: Engine = "auto",
        actor: str | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> EmbedResult:
        """Make the vectors of `@embed` properties from their texts, all or those named, as one commit.

        `mode`: rows without a vector, also those whose vector was made of another text or by another model (`stale`),
        or all. With `dry_run` it only tells how many rows and tokens that would be. A run that was interrupted is
        carried on by the next one without asking the provider again for what it answered.
        """
        from omnigraph.write.embedding.embed_texts import embed_texts

        target = self._place(branch)
        self._allow(Action.READ if dry_run else Action.CHANGE, actor, branch=target)
        names = [types] if isinstance(types, str) else types
        options: dict[str, Any] = {
            "types": names,
            "property": property,
            "mode": mode,
            "branch": target,
            "dry_run": dry_run,
            "actor": actor or self._actor,
            "progress": progress,
        }
        if not dry_run and self._engine_for_embedding(engine, target, names) == "spark":
            from omnigraph.spark.jobs.embed import embed_on_spark
            from omnigraph.spark.session.session import spark_session

            return embed_on_spark(spark_session(), self._store, **options)
        return embed_texts(self._store, **options)

    def _engine_for_embedding(self, engine: Engine, branch: str, names: Collection[str] | None) -> str:
        from omnigraph.ledger.snapshots import find_type

        snapshot = self._store.snapshot(branch=branch, operation="embed")
        catalog = self._store.catalog(snapshot.schema_digest)
        chosen = [find_type(catalog, name) for name in names] if names else catalog.types()
        keys = [type_.table_key for type_ in chosen if any(one.embed for one in type_.properties)]
        return engine_for_tables(engine, snapshot, keys)

    def load_stream(
        self,
        frame: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        mode: Literal["append", "merge"] = "append",
        type: str | None = None,
        src: str | None = None,
        dst: str | None = None,
        columns: Mapping[str, str] | None = None,
        value_column: str = "value",
        branch: str | None = None,
        bad_records: str | PathLike[str] | None = None,
        missing_batches: Literal["error", "accept"] = "error",
        trigger: Mapping[str, Any] | None = None,
        name: str | None = None,
        actor: str | None = None,
    ) -> LoadStream:
        """Start to load a streaming DataFrame of Spark: each micro-batch is one commit, exactly once.

        Without a `type`, `value_column` holds JSON records of any types; otherwise rows are taken as by `load`.
        `checkpoint` is where Spark keeps how far it is: started again with the same one, the stream goes on. Records
        that break a rule end it with an error, or go to the place `bad_records`. `trigger` is what Spark's `trigger`
        takes, such as `{"processingTime": "10 seconds"}` or `{"availableNow": True}`. A checkpoint that says that
        batches are loaded which the branch does not have is refused, unless `missing_batches` accepts that.
        """
        from omnigraph.spark.stream.load_stream import load_stream

        self._allow(Action.CHANGE, actor, branch=self._place(branch))
        return load_stream(
            self._store,
            frame,
            checkpoint=str(checkpoint),
            mode=mode,
            type=type,
            src=src,
            dst=dst,
            columns=columns,
            value_column=value_column,
            branch=self._place(branch),
            bad_records=str(bad_records) if bad_records is not None else None,
            missing_batches=missing_batches,
            trigger=trigger,
            name=name,
            actor=actor or self._actor,
        )

    def catalog(self, at: Target = None, *, actor: str | None = None) -> Catalog:
        """The compiled schema of a snapshot."""
        return self._store.catalog(self._state("schema", at, None, actor).schema_digest)

    def schema_source(self, at: Target = None, *, actor: str | None = None) -> str:
        """The schema text of a snapshot, as it was accepted."""
        return self._store.schemas.get(self._state("schema", at, None, actor).schema_digest)[0]

    def plan_schema(
        self,
        source: str | PathLike[str],
        *,
        branch: str | None = None,
        allow_data_loss: bool = False,
        actor: str | None = None,
    ) -> MigrationPlan:
        """The steps from the accepted schema of a branch to another one. Changes nothing."""
        from omnigraph.write.schema.schema_apply import plan_schema

        self._allow(Action.READ, actor, branch=self._place(branch))
        desired = schema_source(source)
        with named_in_errors(desired.filename):
            return plan_schema(self._store, desired.text, branch=self._place(branch), allow_data_loss=allow_data_loss)

    def apply_schema(
        self,
        source: str | PathLike[str],
        *,
        branch: str | None = None,
        allow_data_loss: bool = False,
        actor: str | None = None,
    ) -> SchemaApplyResult:
        """Make another schema the schema of a branch, in one commit with the tables that change.

        Other branches keep theirs until they are merged. `allow_data_loss` makes every drop hard: data goes at once.
        """
        from omnigraph.write.schema.schema_apply import apply_schema

        self._allow(Action.SCHEMA_APPLY, actor, target=self._place(branch))
        desired = schema_source(source)
        with named_in_errors(desired.filename):
            return apply_schema(
                self._store,
                desired.text,
                branch=self._place(branch),
                allow_data_loss=allow_data_loss,
                actor=actor or self._actor,
            )


def read_match(
    store: GraphStore, snapshot: Snapshot, query: ReadQuery, params: Mapping[str, Any], *, now: datetime
) -> Any:
    """Run the `match` of a mutation on the snapshot that the mutation is prepared on."""
    from omnigraph.read.run import run_query

    catalog = store.catalog(snapshot.schema_digest)
    return run_query(store, snapshot, catalog, query, params, now=now).to_arrow()


def _stream_batch(given: tuple[str, int] | None) -> StreamBatch | None:
    from omnigraph.ledger.values import StreamBatch

    if given is None:
        return None
    match given:
        case [str(stream), int(batch)] if stream and batch >= 0 and not isinstance(batch, bool):
            return StreamBatch(stream, batch)
    raise BadRequest(f"batch={given!r} is no batch of a stream: give its name and a number from 0 on, ('orders', 7)")
