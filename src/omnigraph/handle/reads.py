"""The part of the Graph that reads: queries, entities, blobs, exports. Thin: finds the right room and hands over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from omnigraph.choices import Engine, ExportFormat, Target
from omnigraph.engines import engine_for_tables
from omnigraph.errors import BadRequest
from omnigraph.handle.asked import AskedRead
from omnigraph.handle.held import Held
from omnigraph.policy.actions import Action
from omnigraph.query.compiled import CacheKey
from omnigraph.sources import Source, gathered, named_in_errors, query_source

if TYPE_CHECKING:
    from io import BufferedReader

    from omnigraph.embed.provider import EmbeddingProvider
    from omnigraph.ledger.values import Snapshot
    from omnigraph.query.ir import CompiledQuery, ReadQuery
    from omnigraph.read.export import ExportSummary
    from omnigraph.read.result.explain import Explanation
    from omnigraph.read.result.result import Result
    from omnigraph.read.run import Limits
    from omnigraph.read.state.control import CancelToken


class Reads(Held):
    """Reading an open graph; `Graph` does it."""

    def query(
        self,
        source: str | PathLike[str],
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        at: Target = None,
        engine: Engine = "auto",
        actor: str | None = None,
        cancel: CancelToken | None = None,
        memory_limit: int | None = None,
        timeout: float | None = None,
        provider: EmbeddingProvider | None = None,
        **more: Any,
    ) -> Result:
        """Run a read query on one snapshot. `source` is a text or the Path of a file, `name` picks one of its queries.

        Parameters are given by `params`, or as keywords, unless one is called like an argument of this method. A query
        that is not done after `timeout` seconds stops with `QueryTimeout`, one that would hold more than `memory_limit`
        bytes with `ResourceLimit`.
        """
        own = {
            "name": name,
            "branch": branch,
            "at": at,
            "engine": engine if engine != "auto" else None,
            "actor": actor,
            "memory_limit": memory_limit,
            "timeout": timeout,
        }
        given, values = given_query("query", source, params, more, own)
        snapshot = self._state("query", at, branch, actor)
        limits: Limits = {"cancel": cancel, "memory_limit": memory_limit, "timeout": timeout, "provider": provider}
        return self._asked(given, name, values, snapshot, engine, limits).result()

    def _asked(
        self,
        given: Source,
        name: str | None,
        values: Mapping[str, Any],
        snapshot: Snapshot,
        engine: Engine,
        limits: Limits,
    ) -> AskedRead:
        """A read up to where it would begin."""
        from omnigraph.embed.client import provider_for
        from omnigraph.read.result.result import Result
        from omnigraph.read.run import prepare_query

        Result.to_spark_hook = staticmethod(_result_to_spark)
        compiled = self._compile_read(given, name, snapshot)
        if limits.get("provider") is None:
            limits = {**limits, "provider": provider_for(self._store.embedding)}
        if engine_for_tables(engine, snapshot, compiled.reads) == "spark":

            def on_spark() -> Result:
                from omnigraph.spark.query.run import run_query as run_on_spark
                from omnigraph.spark.session.session import spark_session

                return run_on_spark(
                    spark_session(),
                    self._store,
                    snapshot,
                    compiled,
                    values,
                    cancel=limits.get("cancel"),
                    memory_limit=limits.get("memory_limit"),
                    timeout=limits.get("timeout"),
                    provider=limits.get("provider"),
                )

            return AskedRead(compiled.name, snapshot, on_spark)
        catalog = self._store.catalog(snapshot.schema_digest)
        return AskedRead(
            compiled.name, snapshot, prepare_query(self._store, snapshot, catalog, compiled, values, **limits)
        )

    def explain(
        self,
        source: str | PathLike[str],
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        at: Target = None,
        analyze: bool = False,
        actor: str | None = None,
        timeout: float | None = None,
        **more: Any,
    ) -> Explanation:
        """How a read would run; with `analyze` it is run, and the plan shows real row counts and times."""
        from omnigraph.read.run import explain_query

        own = {"name": name, "branch": branch, "at": at, "actor": actor, "analyze": analyze or None, "timeout": timeout}
        given, values = given_query("explain", source, params, more, own)
        snapshot = self._state("explain", at, branch, actor)
        compiled = self._compile_read(given, name, snapshot)
        catalog = self._store.catalog(snapshot.schema_digest)
        return explain_query(self._store, snapshot, catalog, compiled, values, analyze=analyze, timeout=timeout)

    def snapshot(self, at: Target = None, *, branch: str | None = None, actor: str | None = None) -> Snapshot:
        """The tables and versions that a branch, commit, tag, manifest version or time publishes."""
        return self._state("snapshot", at, branch, actor)

    def entity(
        self, type: str, id: Any, at: Target = None, *, branch: str | None = None, actor: str | None = None
    ) -> dict[str, Any] | None:
        """One node or edge by its id, or by the value of its key (for several properties a list of them), or None.

        `@id` (`@src`, `@dst`) and every property but blobs and vectors.
        """
        from omnigraph.read.entities import entity

        if not isinstance(type, str):
            raise BadRequest(f"entity: the type is a text, not {type.__class__.__name__}")
        if self._policy is not None:
            self._state("entity", at, branch, actor)
        return entity(self._store, type, id, at, self._place(branch))

    def read_blob(
        self,
        type: str,
        id: Any,
        property: str,
        *,
        at: Target = None,
        branch: str | None = None,
        start: int = 0,
        end: int | None = None,
        actor: str | None = None,
    ) -> bytes:
        """The bytes of a blob, or those from `start` up to `end`: only they are read."""
        from omnigraph.read.entity_blobs import find_blob, read_range

        if self._policy is not None:
            self._state("blob", at, branch, actor)
        return read_range(find_blob(self._store, type, id, property, at, self._place(branch)), start, end)

    def open_blob(
        self,
        type: str,
        id: Any,
        property: str,
        *,
        at: Target = None,
        branch: str | None = None,
        actor: str | None = None,
    ) -> BufferedReader:
        """A blob as a file that can be read and sought in. It keeps what it was when it was opened."""
        from omnigraph.read.entity_blobs import find_blob, opened

        if self._policy is not None:
            self._state("blob", at, branch, actor)
        return opened(find_blob(self._store, type, id, property, at, self._place(branch)))

    def export(
        self,
        path: str | PathLike[str],
        *,
        at: Target = None,
        branch: str | None = None,
        types: Sequence[str] | None = None,
        format: ExportFormat = "jsonl",
        engine: Engine = "auto",
        overwrite: bool = False,
        actor: str | None = None,
    ) -> ExportSummary:
        """Write a snapshot out: JSON lines that load back to an equal graph, or Parquet, one directory per type.

        What is there already is left alone, and refused, unless `overwrite` says to replace it.
        """
        from omnigraph.read.export_target import refuse_occupied

        options: dict[str, Any] = {"at": at, "branch": self._place(branch), "types": types, "format": format}
        snapshot = self._state("export", at, branch, actor, action=Action.EXPORT)
        on_spark = str(path) != "-" and engine_for_tables(engine, snapshot, snapshot.tables) == "spark"
        refuse_occupied(str(path), as_file=format == "jsonl" and not on_spark, overwrite=overwrite)
        if on_spark:
            from omnigraph.spark.jobs.export import export_graph as export_on_spark
            from omnigraph.spark.session.session import spark_session

            return export_on_spark(spark_session(), self._store, str(path), **options)
        from omnigraph.read.export import export_graph

        return export_graph(self._store, str(path), **options)

    def export_lines(
        self,
        *,
        at: Target = None,
        branch: str | None = None,
        types: Sequence[str] | None = None,
        actor: str | None = None,
    ) -> Iterator[bytes]:
        """What `export` writes as JSON lines, made as they are asked for. `types` are names or table keys."""
        from omnigraph.read.export import export_lines

        return export_lines(self._store, self._state("export", at, branch, actor, action=Action.EXPORT), types)

    def to_spark(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        at: Target = None,
        branch: str | None = None,
        actor: str | None = None,
    ) -> Any:
        """The rows of one type at one snapshot as a Spark DataFrame. Blobs come only when named in `columns`."""
        from omnigraph.spark.session.session import frame_session
        from omnigraph.spark.source.datasource import to_spark

        if self._policy is not None:
            self._state("to_spark", at, branch, actor)
        return to_spark(frame_session(), self._store, type, columns=columns, at=at, branch=self._place(branch))

    def _compile(self, source: str, name: str | None, schema_digest: str) -> CompiledQuery:
        from omnigraph.query.lower.compile import compile_query

        catalog = self._store.catalog(schema_digest)
        return self._compiled.get(CacheKey(source, schema_digest, name), lambda: compile_query(source, catalog, name))

    def _compile_read(self, given: Source, name: str | None, snapshot: Snapshot) -> ReadQuery:
        """The read that a text holds."""
        from omnigraph.query.ir import ReadQuery

        with named_in_errors(given.filename):
            compiled = self._compile(given.text, name, snapshot.schema_digest)
        if not isinstance(compiled, ReadQuery):
            raise BadRequest(f"`{compiled.name}` is a mutation; run it with `mutate`")
        return compiled


def given_query(
    method: str,
    source: str | PathLike[str],
    params: Mapping[str, Any] | None,
    more: Mapping[str, Any],
    own: Mapping[str, Any],
) -> tuple[Source, dict[str, Any]]:
    """The text of a query and its parameters, before anything is looked up by an argument that may be meant for one."""
    given = query_source(source)
    with named_in_errors(given.filename):
        return given, gathered(method, given.text, params, more, own)


def _result_to_spark(result: Result) -> Any:
    from omnigraph.spark.result_frames import result_frame

    return result_frame(result)
