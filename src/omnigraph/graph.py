"""The Graph a user holds. Thin on purpose: each method finds the right room and hands over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.engines import engine_for_load, engine_for_tables, row_placement
from omnigraph.errors import BadRequest
from omnigraph.graph_maintenance import Maintenance
from omnigraph.query.cache import CacheKey, QueryCache

if TYPE_CHECKING:
    from datetime import datetime

    from omnigraph.embed.provider import EmbeddingProvider
    from omnigraph.ledger.audit import RecoveryRecord
    from omnigraph.ledger.recovery import RecoveryReport
    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import BranchRef, GraphCommit, Snapshot
    from omnigraph.merge.changes import EntityChange
    from omnigraph.merge.diff import Diff
    from omnigraph.merge.feed import Page
    from omnigraph.merge.merge import MergeResult
    from omnigraph.query.ir import CompiledQuery, ReadQuery
    from omnigraph.read.export import ExportSummary
    from omnigraph.read.result.explain import Explanation
    from omnigraph.read.result.result import Result
    from omnigraph.read.state.control import CancelToken
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.migrate import MigrationPlan
    from omnigraph.write.results import LoadResult, MutationResult
    from omnigraph.write.schema_apply import SchemaApplyResult

Target = str | int | None
"""Where to read: a branch, a commit id, a tag, a manifest version; None is the head of the handle's branch."""


def init(uri: str | Path, *, schema: str | Path, actor: str | None = None) -> Graph:
    """Make a graph at `uri` from a schema: its text, or the path of a `.pg` file. Refuses a path that holds one."""
    from omnigraph.ledger.store import create_store

    return Graph(_kept_compact(create_store(str(uri), _schema_text(schema), actor=actor)), actor=actor)


def open(  # noqa: A001 - `og.open` is how it reads
    uri: str | Path, *, read_only: bool = False, branch: str = "main", actor: str | None = None
) -> Graph:
    """Open a graph. Opening for writing finishes or undoes what a crashed writer left; read-only changes nothing."""
    from omnigraph.ledger.store import open_store

    store = open_store(str(uri), read_only=read_only)
    try:
        store.branch(branch)
    except BaseException:
        store.close()
        raise
    return Graph(_kept_compact(store), branch=branch, actor=actor)


def _kept_compact(store: GraphStore) -> GraphStore:
    from omnigraph.maintain.tail import attach

    attach(store)
    return store


class Graph(Maintenance):
    """An open graph, bound to a branch. Safe to share between threads; close it, or use it as a context manager."""

    def __init__(self, store: GraphStore, *, branch: str = "main", actor: str | None = None) -> None:
        self._store = store
        self._branch = branch
        self._actor = actor
        self._compiled = QueryCache()

    # --- the handle ------------------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Where the graph lies."""
        return self._store.uri

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self._branch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Graph({self.uri!r}, branch={self._branch!r})"

    def close(self) -> None:
        """Finish the upkeep of tables with many small writes and release caches. Writes are finished long before."""
        self._store.close()

    def refresh(self) -> RecoveryReport:
        """See what other processes published, and finish what a crashed writer left where that is possible now."""
        from omnigraph.ledger.recovery import RecoveryReport, heal

        return RecoveryReport() if self._store.read_only else heal(self._store)

    # --- reading ---------------------------------------------------------------------------------------------------

    def query(
        self,
        source: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        at: Target = None,
        engine: str = "auto",
        cancel: CancelToken | None = None,
        memory_limit: int | None = None,
        timeout: float | None = None,
        provider: EmbeddingProvider | None = None,
        **more: Any,
    ) -> Result:
        """Run a read query on one snapshot. `name` picks one query of several; parameters may be keywords too.

        A query that is not done after `timeout` seconds stops with `QueryTimeout`.
        """
        from omnigraph.read.result.result import Result
        from omnigraph.read.run import run_query

        Result.to_spark_hook = staticmethod(_result_to_spark)
        snapshot = self.snapshot(at, branch=branch)
        compiled = self._compile_read(source, name, snapshot)
        values = {**(params or {}), **more}
        if engine_for_tables(engine, snapshot, compiled.reads) == "spark":
            from omnigraph.spark.query import run_query as run_on_spark
            from omnigraph.spark.session import spark_session

            return run_on_spark(spark_session(), self._store, snapshot, compiled, values, provider=provider)
        return run_query(
            self._store,
            snapshot,
            self._store.catalog(snapshot.schema_digest),
            compiled,
            values,
            cancel=cancel,
            memory_limit=memory_limit,
            timeout=timeout,
            provider=provider,
        )

    def explain(
        self,
        source: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        at: Target = None,
        analyze: bool = False,
        **more: Any,
    ) -> Explanation:
        """How a read would run; with `analyze` it is run, and the plan shows real row counts and times."""
        from omnigraph.read.run import explain_query

        snapshot = self.snapshot(at, branch=branch)
        compiled = self._compile_read(source, name, snapshot)
        catalog = self._store.catalog(snapshot.schema_digest)
        return explain_query(self._store, snapshot, catalog, compiled, {**(params or {}), **more}, analyze=analyze)

    def snapshot(self, at: Target = None, *, branch: str | None = None) -> Snapshot:
        """The tables and versions that a branch, commit, tag or manifest version publishes."""
        return self._store.snapshot(at, branch=branch or self._branch)

    def entity(self, type: str, id: Any, at: Target = None, *, branch: str | None = None) -> dict[str, Any] | None:
        """One node or edge by its id, or by the value of its key (for several properties a list of them), or None."""
        from omnigraph.ledger.snapshots import entity

        return entity(self._store, type, id, at, branch or self._branch)

    def export(
        self,
        path: str | Path,
        *,
        at: Target = None,
        branch: str | None = None,
        types: Sequence[str] | None = None,
        format: str = "jsonl",
        engine: str = "auto",
    ) -> ExportSummary:
        """Write a snapshot out: JSON lines that load back to an equal graph, or Parquet, one directory per type."""
        options: dict[str, Any] = {"at": at, "branch": branch or self._branch, "types": types, "format": format}
        snapshot = self.snapshot(at, branch=branch)
        if str(path) != "-" and engine_for_tables(engine, snapshot, snapshot.tables) == "spark":
            from omnigraph.spark.export import export_graph as export_on_spark
            from omnigraph.spark.session import spark_session

            return export_on_spark(spark_session(), self._store, str(path), **options)
        from omnigraph.read.export import export_graph

        return export_graph(self._store, str(path), **options)

    def to_spark(
        self, type: str, *, columns: Sequence[str] | None = None, at: Target = None, branch: str | None = None
    ) -> Any:
        """The rows of one type at one snapshot as a Spark DataFrame. Blobs come only when named in `columns`."""
        from omnigraph.spark.datasource import to_spark
        from omnigraph.spark.session import spark_session

        return to_spark(spark_session(), self._store, type, columns=columns, at=at, branch=branch or self._branch)

    # --- writing ---------------------------------------------------------------------------------------------------

    def mutate(
        self,
        source: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        **more: Any,
    ) -> MutationResult:
        """Run a mutation query: one commit, or none when it changes nothing.

        `if_commit`: only if no data changed on the branch since that commit.
        """
        from omnigraph.write.mutate import mutate

        return mutate(
            self._store,
            source,
            name,
            {**(params or {}), **more},
            branch=branch or self._branch,
            actor=actor or self._actor,
            if_commit=if_commit,
            read=_read_match,
        )

    def load(
        self,
        data: Any,
        *,
        mode: str,
        type: str | None = None,
        src: str | None = None,
        dst: str | None = None,
        columns: Mapping[str, str] | None = None,
        branch: str | None = None,
        from_: str | None = None,
        engine: str = "auto",
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
            from omnigraph.spark.load import load as load_on_spark
            from omnigraph.spark.session import spark_session

            return load_on_spark(spark_session(), self._store, data, **options)
        from omnigraph.write.load import load

        return load(self._store, data, **options)

    # --- the schema ------------------------------------------------------------------------------------------------

    def catalog(self, at: Target = None) -> Catalog:
        """The compiled schema of a snapshot."""
        return self._store.catalog(self.snapshot(at).schema_digest)

    def schema_source(self, at: Target = None) -> str:
        """The schema text of a snapshot, as it was accepted."""
        return self._store.schemas.get(self.snapshot(at).schema_digest)[0]

    def plan_schema(self, source: str | Path, *, allow_data_loss: bool = False) -> MigrationPlan:
        """The steps from the accepted schema to another one. Changes nothing."""
        from omnigraph.write.schema_apply import plan_schema

        return plan_schema(self._store, _schema_text(source), allow_data_loss=allow_data_loss)

    def apply_schema(
        self, source: str | Path, *, allow_data_loss: bool = False, actor: str | None = None
    ) -> SchemaApplyResult:
        """Make another schema the schema of the graph, in one commit with the tables that change."""
        from omnigraph.write.schema_apply import apply_schema

        return apply_schema(
            self._store, _schema_text(source), allow_data_loss=allow_data_loss, actor=actor or self._actor
        )

    # --- history and branches --------------------------------------------------------------------------------------

    def head(self, branch: str | None = None) -> GraphCommit:
        """The newest commit of a branch."""
        return self._store.snapshot(branch=branch or self._branch).head

    def commit(self, id: str) -> GraphCommit:
        """One commit by its id."""
        from omnigraph.ledger.snapshots import get_commit

        return get_commit(self._store, id)

    def log(
        self,
        branch: str | None = None,
        by: str | None = None,
        limit: int | None = None,
        *,
        since: int | None = None,
        until: int | None = None,
    ) -> list[GraphCommit]:
        """The commits that a branch can reach, newest first. `since` and `until` are microseconds since the epoch."""
        from omnigraph.ledger.completion import known_history

        state = self._store.manifest.read(self._store.branch(branch or self._branch))
        known_history(self._store, state)
        head = state.head.graph_commit_id
        return self._store.commits.log(head, actor=by, since=since, until=until, limit=limit)

    def recoveries(self) -> list[RecoveryRecord]:
        """What recovery did, oldest first: one record for each unfinished write that was resolved."""
        return self._store.audit.list()

    def branches(self) -> list[BranchRef]:
        """The public branches, sorted by name."""
        from omnigraph.ledger.branches import list_branches

        return list_branches(self._store)

    def branch_list(self) -> list[str]:
        """The names of the public branches, sorted."""
        return [ref.name for ref in self.branches()]

    def branch_create(self, name: str, from_: Target = None, *, actor: str | None = None) -> BranchRef:
        """Make a branch from another one (by default the handle's own), or from a commit or a tag."""
        from omnigraph.ledger.branches import create_branch

        return create_branch(self._store, name, self._branch if from_ is None else from_, actor=actor or self._actor)

    def branch_delete(self, name: str) -> None:
        """Delete a branch. Its name is free at once."""
        from omnigraph.ledger.branches import delete_branch

        delete_branch(self._store, name, bound_to=self._branch)

    @contextmanager
    def branch(
        self, name: str, from_: Target = None, *, merge: bool = False, actor: str | None = None
    ) -> Iterator[Graph]:
        """A handle bound to a branch, which is made when it does not exist.

        The branch stays for review. With `merge` it is merged into this handle's branch when the block ends well.
        """
        if self._store.refs.get(name) is None:
            self.branch_create(name, from_, actor=actor)
        yield Graph(self._store, branch=name, actor=actor or self._actor)
        if merge:
            self.merge(name, into=self._branch, actor=actor)

    def merge(
        self,
        source: str,
        into: str = "main",
        *,
        strategy: str | None = None,
        resolutions: Mapping[tuple[str, str], Any] | None = None,
        dry_run: bool = False,
        delete_source: bool = False,
        engine: str = "auto",
        actor: str | None = None,
    ) -> MergeResult:
        """Merge one branch into another, row by row against their common ancestor.

        `strategy` (ours, theirs) settles rows that both sides changed; `resolutions` settles single rows, by (table
        key, id), with ours, theirs, a row, or None to delete it. What is left raises `MergeConflicts` and has no
        effect. `dry_run` returns what would happen, conflicts included.
        """
        from omnigraph.merge.merge import merge

        return merge(
            self._store,
            source,
            into,
            strategy=strategy,
            resolutions=resolutions,
            dry_run=dry_run,
            delete_source=delete_source,
            actor=actor or self._actor,
            placement=row_placement(engine, self.snapshot(branch=source), self.snapshot(branch=into)),
        )

    def diff(
        self,
        a: Target,
        b: Target,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        engine: str = "auto",
    ) -> Diff:
        """What differs between two targets: iterate for the changes, `summary()` for the counts. Streams."""
        from omnigraph.merge.diff import Diff, DiffFilter

        left, right = self.snapshot(a), self.snapshot(b)
        return Diff(self._store, left, right, DiffFilter.of(kinds, types, ops), row_placement(engine, left, right))

    def changes(
        self,
        branch: str | None = None,
        since: str = "beginning",
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        limit: int | None = None,
    ) -> Page:
        """The change feed of a branch: one block per commit, and a cursor to go on from.

        `since` is a cursor, a commit id, `beginning` or `now`.
        """
        from omnigraph.merge.diff import DiffFilter
        from omnigraph.merge.feed import changes

        ref = self._store.branch(branch or self._branch)
        return changes(self._store, ref, since, only=DiffFilter.of(kinds, types, ops), limit=limit)

    def commit_changes(self, id: str) -> Iterator[EntityChange]:
        """What one commit changed against its first parent."""
        from omnigraph.merge.feed import commit_changes

        return commit_changes(self._store, self.commit(id))

    def sync_branch(self, name: str | None = None) -> GraphCommit:
        """Bind this handle to a branch (by default its own) as it is now, and return its newest commit."""
        wanted = name or self._branch
        head = self._store.snapshot(branch=wanted).head
        self._branch = wanted
        return head

    # --- inside ----------------------------------------------------------------------------------------------------

    def _compile(self, source: str, name: str | None, schema_digest: str) -> CompiledQuery:
        from omnigraph.query.lower.compile import compile_query

        catalog = self._store.catalog(schema_digest)
        return self._compiled.get(CacheKey(source, schema_digest, name), lambda: compile_query(source, catalog, name))

    def _compile_read(self, source: str, name: str | None, snapshot: Snapshot) -> Any:
        from omnigraph.query.ir import ReadQuery

        compiled = self._compile(source, name, snapshot.schema_digest)
        if not isinstance(compiled, ReadQuery):
            raise BadRequest(f"`{compiled.name}` is a mutation; run it with `mutate`")
        return compiled


def _read_match(
    store: GraphStore, snapshot: Snapshot, query: ReadQuery, params: Mapping[str, Any], *, now: datetime
) -> Any:
    """Run the `match` of a mutation on the snapshot that the mutation is prepared on."""
    from omnigraph.read.run import run_query

    catalog = store.catalog(snapshot.schema_digest)
    return run_query(store, snapshot, catalog, query, params, now=now).to_arrow()


def _result_to_spark(result: Result) -> Any:
    from omnigraph.spark.results import result_frame

    return result_frame(result)


def _schema_text(schema: str | Path) -> str:
    """A schema given as text or as the path of a file. Text has a brace; a path has none."""
    if isinstance(schema, str) and ("{" in schema or "\n" in schema or not schema.strip()):
        return schema
    try:
        return Path(schema).read_text(encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"the schema file {schema} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"the schema file {schema} is not UTF-8 text (byte {error.start})") from error
