"""The part of the Graph that writes: mutations, loads, and what the schema is. Thin, like the rest of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any

from omnigraph.choices import Engine, Mode, Target
from omnigraph.engines import engine_for_load
from omnigraph.errors import BadRequest
from omnigraph.handle.held import Held
from omnigraph.policy.actions import Action
from omnigraph.sources import gathered, named_in_errors, query_source, schema_source

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import Snapshot
    from omnigraph.query.ir import ReadQuery
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.migration.migrate import MigrationPlan
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
        from omnigraph.write.mutate.mutate import mutate

        given = query_source(source)
        own = {"name": name, "branch": branch, "actor": actor, "if_commit": if_commit}
        target, by = branch or self._branch, actor or self._actor
        self._allow(Action.CHANGE, by, branch=target)
        with named_in_errors(given.filename):
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
    ) -> LoadResult:
        """Load records as one commit, or nothing at all when one of them breaks a rule.

        `data` is a path, a directory, a glob or several of them, an open file, bytes, Python rows, an Arrow table, a
        pandas, Polars or Spark frame. `mode` is append, merge or overwrite. Rows of columns are of `type`; `src` and
        `dst` name the columns with the ends of edges, `columns` maps other column names to properties. `from_` makes
        `branch` on the way, from that one, if there is none of that name.
        """
        if from_ is not None and branch is None:
            raise BadRequest(f"from_={from_!r} makes a branch for the load: name it with branch=…")
        self._allow(Action.CHANGE, actor, branch=branch or self._branch)
        if self._policy is not None and branch is not None and from_ is not None and not self._store.refs.get(branch):
            self._allow(Action.BRANCH_CREATE, actor, target=branch)
        options: dict[str, Any] = {
            "mode": mode,
            "type": type,
            "src": src,
            "dst": dst,
            "columns": columns,
            "branch": branch or self._branch,
            "from_": from_,
            "actor": actor or self._actor,
            "if_commit": if_commit,
            "progress": progress,
        }
        if engine_for_load(engine, data) == "spark":
            from omnigraph.spark.load.load import load as load_on_spark
            from omnigraph.spark.session.session import spark_session

            return load_on_spark(spark_session(), self._store, data, **options)
        from omnigraph.write.load.load import load

        return load(self._store, data, **options)

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

        self._allow(Action.READ, actor, branch="main")
        desired = schema_source(source)
        with named_in_errors(desired.filename):
            return plan_schema(
                self._store, desired.text, branch=branch or self._branch, allow_data_loss=allow_data_loss
            )

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

        self._allow(Action.SCHEMA_APPLY, actor, target="main")
        desired = schema_source(source)
        with named_in_errors(desired.filename):
            return apply_schema(
                self._store,
                desired.text,
                branch=branch or self._branch,
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
