"""The Graph a user holds. Thin on purpose: each method finds the right room and hands over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.choices import Engine, ExportFormat, Granularity, Mode, Strategy, Target, Time
from omnigraph.engines import engine_for_load, engine_for_tables, row_placement
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.forked import is_here, opened_here, refuse_in_child
from omnigraph.graph_groups import BranchGroup, MaintenanceGroup, SchemaGroup
from omnigraph.graph_undo import Undoing
from omnigraph.policy.actions import Action
from omnigraph.query.compiled import CacheKey, QueryCache
from omnigraph.sources import gathered, named_in_errors, query_source, schema_source

if TYPE_CHECKING:
    from io import BufferedReader

    from omnigraph.embed.provider import EmbeddingProvider
    from omnigraph.ledger.recovery.audit import RecoveryRecord
    from omnigraph.ledger.recovery.recover import RecoveryReport
    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import BranchRef, GraphCommit, History, Snapshot
    from omnigraph.maintain.copying.copy import CopyResult
    from omnigraph.merge.changes import EntityChange
    from omnigraph.merge.diff import Diff
    from omnigraph.merge.feed import Page
    from omnigraph.merge.merge import MergeResult
    from omnigraph.policy.bundle import Bundle
    from omnigraph.policy.decide_access import Policy
    from omnigraph.query.ir import CompiledQuery, ReadQuery
    from omnigraph.read.export import ExportSummary
    from omnigraph.read.result.explain import Explanation
    from omnigraph.read.result.result import Result
    from omnigraph.read.state.control import CancelToken
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.migration.migrate import MigrationPlan
    from omnigraph.write.results import LoadResult, MutationResult
    from omnigraph.write.schema.schema_apply import SchemaApplyResult


def init(uri: str | PathLike[str], *, schema: str | PathLike[str], actor: str | None = None) -> Graph:
    """Make a graph at `uri` from a schema: its text, or the path of a `.pg` file. Refuses a path that is not empty."""
    from omnigraph.ledger.store import create_store

    opened_here()
    source = schema_source(schema)
    with named_in_errors(source.filename):
        return Graph(_kept_compact(create_store(_address(uri), source.text, actor=actor)), actor=actor)


def open(  # noqa: A001 - `og.open` is how it reads
    uri: str | PathLike[str],
    *,
    read_only: bool = False,
    branch: str = "main",
    actor: str | None = None,
    combine: bool = False,
    policy: Policy | Bundle | str | PathLike[str] | None = None,
) -> Graph:
    """Open a graph. Opening for writing finishes or undoes what a crashed writer left; read-only changes nothing.

    With `combine`, mutations of this handle that wait for each other share their commits, which list them. With a
    `policy` (the path of its file), every call of the handle is allowed by one of its rules, or refused.
    """
    from omnigraph.ledger.store import open_store

    opened_here()
    rules = _installed(policy)
    store = open_store(_address(uri), read_only=read_only)
    try:
        store.branch(branch)
    except BaseException:
        store.close()
        raise
    return Graph(_kept_compact(store), branch=branch, actor=actor, combine=combine, policy=rules)


def _installed(policy: Policy | Bundle | str | PathLike[str] | None) -> Policy | None:
    if policy is None:
        return None
    from omnigraph.policy.decide_access import as_policy

    return as_policy(policy)


def copy(
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    branches: Collection[str] = (),
    at: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CopyResult:
    """Copy a graph with its history to an empty place, on any store, while others go on writing to it.

    With `branches`, only `main` and those; with `at`, only `main` as it was then. An interrupted copy is carried on by
    the same call.
    """
    from omnigraph.maintain.copying.copy import copy as make_copy

    opened_here()
    return make_copy(_address(source), _address(target), branches=branches, at=at, progress=progress)


def _address(uri: str | PathLike[str]) -> str:
    if not isinstance(uri, str | PathLike):
        raise BadRequest(f"a graph is named by a path or a URI, not by {type(uri).__name__}")
    return str(uri)


def _kept_compact(store: GraphStore) -> GraphStore:
    from omnigraph.maintain.optimize.tail import attach

    attach(store)
    return store


def _opened_again(
    uri: str, read_only: bool, branch: str, actor: str | None, combine: bool, policy: Policy | None = None
) -> Graph:
    """A graph that was pickled: its address travels, and the policy that it is under."""
    return open(uri, read_only=read_only, branch=branch, actor=actor, combine=combine, policy=policy)


class Graph(Undoing):
    """An open graph, bound to a branch. Safe to share between threads; close it, or use it as a context manager.

    What it can do is also there in groups: `g.branches`, `g.tags`, `g.schema`, `g.maintenance`. Every method takes an
    `actor`, which wins over the handle's: writes are recorded for it, and a policy asks for it where one is installed.
    """

    def __init__(
        self,
        store: GraphStore,
        *,
        branch: str = "main",
        actor: str | None = None,
        combine: bool = False,
        policy: Policy | None = None,
    ) -> None:
        self._opened = store
        self._policy = policy
        self._process = opened_here()
        self._combine = combine
        self._branch = branch
        self._actor = actor
        self._compiled = QueryCache()

    def __reduce__(self) -> tuple[Any, ...]:
        held = (self.uri, self._opened.read_only, self._branch, self._actor, self._combine, self._policy)
        return _opened_again, held

    @property
    def _store(self) -> GraphStore:
        """The opened graph, for the process that opened it."""
        refuse_in_child(self._process)
        return self._opened

    # --- the handle ------------------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Where the graph lies."""
        return self._opened.uri

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self._branch

    @property
    def policy(self) -> Policy | None:
        """The policy that this handle is under."""
        return self._policy

    def under(self, policy: Policy | None) -> Graph:
        """Another handle on the same opened graph, under another policy. Closing either closes both."""
        return Graph(self._store, branch=self._branch, actor=self._actor, combine=self._combine, policy=policy)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        notes = [f"branch {self._branch}"]
        notes += ["read-only"] if self._opened.read_only else []
        notes += [f"as {self._actor}"] if self._actor else []
        return f"<Graph {self.uri}, {', '.join(notes)}>"

    def _repr_html_(self) -> str:
        return self.snapshot()._repr_html_()

    @property
    def branches(self) -> BranchGroup:
        """Everything about branches: `create`, `list`, `delete`, `merge`, `revert`, `restore`, `cherry_pick`, `diff`,
        `sync`."""
        return BranchGroup(self)

    @property
    def schema(self) -> SchemaGroup:
        """Everything about the schema: `source`, `catalog`, `plan`, `apply`, `diagram`."""
        return SchemaGroup(self)

    @property
    def maintenance(self) -> MaintenanceGroup:
        """What operators do: `optimize`, `ensure_indices`, `repair`, `cleanup`, `verify`, `recoveries`."""
        return MaintenanceGroup(self)

    def close(self) -> None:
        """Finish the upkeep of tables with many small writes and release caches. Writes are finished long before."""
        if is_here(self._process):
            self._opened.close()

    def refresh(self, *, actor: str | None = None) -> RecoveryReport:
        """See what other processes published, and finish what a crashed writer left where that is possible now."""
        from omnigraph.ledger.recovery.recover import RecoveryReport, heal

        self._allow(Action.READ, actor, branch=self._branch)
        return RecoveryReport() if self._store.read_only else heal(self._store)

    # --- reading ---------------------------------------------------------------------------------------------------

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
        that is not done after `timeout` seconds stops with `QueryTimeout`.
        """
        from omnigraph.embed.client import provider_of_the_environment
        from omnigraph.read.result.result import Result
        from omnigraph.read.run import run_query

        Result.to_spark_hook = staticmethod(_result_to_spark)
        snapshot = self._state("query", at, branch, actor)
        own = {"name": name, "branch": branch, "at": at, "actor": actor, "memory_limit": memory_limit}
        compiled, values = self._compile_read("query", source, name, params, more, own, snapshot)
        provider = provider if provider is not None else provider_of_the_environment()
        if engine_for_tables(engine, snapshot, compiled.reads) == "spark":
            from omnigraph.spark.query.run import run_query as run_on_spark
            from omnigraph.spark.session.session import spark_session

            session = spark_session()
            found = run_on_spark(
                session, self._store, snapshot, compiled, values, cancel=cancel, timeout=timeout, provider=provider
            )
            return found.read_by(compiled.name, snapshot)
        found = run_query(
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
        return found.read_by(compiled.name, snapshot)

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
        **more: Any,
    ) -> Explanation:
        """How a read would run; with `analyze` it is run, and the plan shows real row counts and times."""
        from omnigraph.read.run import explain_query

        snapshot = self._state("explain", at, branch, actor)
        own = {"name": name, "branch": branch, "at": at, "actor": actor, "analyze": analyze or None}
        compiled, values = self._compile_read("explain", source, name, params, more, own, snapshot)
        catalog = self._store.catalog(snapshot.schema_digest)
        return explain_query(self._store, snapshot, catalog, compiled, values, analyze=analyze)

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
        return entity(self._store, type, id, at, branch or self._branch)

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
        return read_range(find_blob(self._store, type, id, property, at, branch or self._branch), start, end)

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
        return opened(find_blob(self._store, type, id, property, at, branch or self._branch))

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

        options: dict[str, Any] = {"at": at, "branch": branch or self._branch, "types": types, "format": format}
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
        from omnigraph.spark.session.session import spark_session
        from omnigraph.spark.source.datasource import to_spark

        if self._policy is not None:
            self._state("to_spark", at, branch, actor)
        return to_spark(spark_session(), self._store, type, columns=columns, at=at, branch=branch or self._branch)

    # --- writing ---------------------------------------------------------------------------------------------------

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

                return mutate_combined(self._store, given.text, name, values, branch=target, actor=by, read=_read_match)
            return mutate(
                self._store, given.text, name, values, branch=target, actor=by, if_commit=if_commit, read=_read_match
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

    # --- the schema ------------------------------------------------------------------------------------------------

    def catalog(self, at: Target = None, *, actor: str | None = None) -> Catalog:
        """The compiled schema of a snapshot."""
        return self._store.catalog(self.snapshot(at, actor=actor).schema_digest)

    def schema_source(self, at: Target = None, *, actor: str | None = None) -> str:
        """The schema text of a snapshot, as it was accepted."""
        return self._store.schemas.get(self.snapshot(at, actor=actor).schema_digest)[0]

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

    # --- history and branches --------------------------------------------------------------------------------------

    def head(self, branch: str | None = None, *, actor: str | None = None) -> GraphCommit:
        """The newest commit of a branch."""
        return self._state("head", None, branch, actor).head

    def commit(self, id: str, *, actor: str | None = None) -> GraphCommit:
        """One commit by its id, or by any other target: the beginning of an id, a tag, a time."""
        from omnigraph.ledger.branches.names import is_commit_id
        from omnigraph.ledger.snapshots import get_commit

        if not is_commit_id(id):
            return self._state("commit", id, None, actor).head
        with self._hidden_when_unread(actor, self._branch):
            found = get_commit(self._store, id)
        self._allow(Action.READ, actor, branch=found.branch)
        return found

    def log(
        self,
        branch: str | None = None,
        by: str | None = None,
        limit: int | None = None,
        *,
        since: Time | None = None,
        until: Time | None = None,
        actor: str | None = None,
    ) -> History:
        """The commits that a branch can reach, newest first. `since` and `until` are aware datetimes, or ISO text."""
        from omnigraph.ledger.history.complete_log import known_history
        from omnigraph.ledger.values import History
        from omnigraph.times import to_microseconds

        self._allow(Action.READ, actor, branch=branch or self._branch)
        first = to_microseconds(since, "since") if since is not None else None
        last = to_microseconds(until, "until") if until is not None else None
        state = self._store.manifest.read(self._store.branch(branch or self._branch, "log"))
        known_history(self._store, state)
        head = state.head.graph_commit_id
        return History(self._store.commits.log(head, actor=by, since=first, until=last, limit=limit))

    def recoveries(self, *, actor: str | None = None) -> list[RecoveryRecord]:
        """What recovery did, oldest first: one record for each unfinished write that was resolved."""
        self._allow(Action.READ, actor, branch=self._branch)
        return self._store.audit.list()

    def branch_list(self, *, actor: str | None = None) -> list[str]:
        """The names of the public branches, sorted. `g.branches.list()` has who made them, when and from where."""
        return [ref.name for ref in self.branches.list(actor=actor)]

    def branch_create(self, name: str, from_: Target = None, *, actor: str | None = None) -> BranchRef:
        """Make a branch from another one (by default the handle's own), or from a commit or a tag."""
        from omnigraph.ledger.branches.branches import create_branch

        self._allow(Action.BRANCH_CREATE, actor, target=name)
        return create_branch(self._store, name, self._branch if from_ is None else from_, actor=actor or self._actor)

    def branch_delete(self, name: str, *, force: bool = False, actor: str | None = None) -> None:
        """Delete a branch. Its name is free at once.

        One that other branches were made from needs `force`; they stay as they are.
        """
        from omnigraph.ledger.branches.branches import delete_branch

        self._allow(Action.BRANCH_DELETE, actor, target=name)
        delete_branch(self._store, name, bound_to=self._branch, force=force, actor=actor or self._actor)

    @contextmanager
    def branch(
        self, name: str, from_: Target = None, *, merge: bool = False, actor: str | None = None
    ) -> Iterator[Graph]:
        """A handle bound to a branch, which is made when it does not exist.

        The branch stays for review. With `merge` it is merged into this handle's branch when the block ends well.
        """
        if self._store.refs.get(name) is None:
            self.branch_create(name, from_, actor=actor)
        who = actor or self._actor
        yield Graph(self._store, branch=name, actor=who, combine=self._combine, policy=self._policy)
        if merge:
            self.merge(name, into=self._branch, actor=actor)

    def merge(
        self,
        source: str,
        into: str = "main",
        *,
        strategy: Strategy | None = None,
        resolutions: Mapping[tuple[str, str], Any] | None = None,
        dry_run: bool = False,
        delete_source: bool = False,
        granularity: Granularity | None = None,
        engine: Engine = "auto",
        actor: str | None = None,
    ) -> MergeResult:
        """Merge one branch into another, row by row against their common ancestor.

        `strategy` (ours, theirs) settles rows that both sides changed; `resolutions` settles single rows, by (table
        key, id), with ours, theirs, a row, or None to delete it. What is left raises `MergeConflicts` and has no
        effect. With `granularity` property, changes of different properties of one row are both taken, and a strategy
        is about the properties that collide. `dry_run` returns what would happen, conflicts included.
        """
        from omnigraph.merge.merge import merge

        self._allow(Action.BRANCH_MERGE, actor, target=into)
        if delete_source:
            self._allow(Action.BRANCH_DELETE, actor, target=source)
        states = (self._store.snapshot(branch=name, operation="merge") for name in (source, into))
        return merge(
            self._store,
            source,
            into,
            strategy=strategy,
            resolutions=resolutions,
            dry_run=dry_run,
            delete_source=delete_source,
            granularity=granularity,
            actor=actor or self._actor,
            placement=row_placement(engine, *states),
        )

    def diff(
        self,
        a: Target,
        b: Target,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        engine: Engine = "auto",
        actor: str | None = None,
    ) -> Diff:
        """What differs between two targets: iterate for the changes, `summary()` for the counts. Streams."""
        from omnigraph.merge.diff import Diff, DiffFilter

        left, right = self._state("diff", a, None, actor), self._state("diff", b, None, actor)
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
        actor: str | None = None,
    ) -> Page:
        """The change feed of a branch: one block per commit, and a cursor to go on from.

        `since` is a cursor, a commit, a tag, a time, `beginning` or `now`.
        """
        from omnigraph.merge.diff import DiffFilter
        from omnigraph.merge.feed import changes

        self._allow(Action.READ, actor, branch=branch or self._branch)
        ref = self._store.branch(branch or self._branch, "changes")
        return changes(self._store, ref, since, only=DiffFilter.of(kinds, types, ops), limit=limit)

    def commit_changes(self, id: str, *, actor: str | None = None) -> Iterator[EntityChange]:
        """What one commit changed against its first parent."""
        from omnigraph.merge.feed import commit_changes

        return commit_changes(self._store, self.commit(id, actor=actor))

    def sync_branch(self, name: str | None = None, *, actor: str | None = None) -> GraphCommit:
        """Bind this handle to a branch (by default its own) as it is now, and return its newest commit."""
        wanted = name or self._branch
        head = self._state("sync branch", None, wanted, actor).head
        self._branch = wanted
        return head

    # --- inside ----------------------------------------------------------------------------------------------------

    def _state(
        self,
        operation: str,
        at: Target = None,
        branch: str | None = None,
        actor: str | None = None,
        *,
        action: Action = Action.READ,
    ) -> Snapshot:
        """The state that a call reads, by default the head of the handle's branch; the policy is asked for its branch.

        Whoever may read no state of that branch does not learn either what else there is.
        """
        place = branch or self._branch
        if at is None:
            self._allow(action, actor, branch=place)
            return self._store.snapshot(branch=place, operation=operation)
        with self._hidden_when_unread(actor, place, action):
            found = self._store.snapshot(at, branch=place, operation=operation)
        self._allow(action, actor, branch=found.branch.name)
        return found

    def _readable(self, branches: list[BranchRef], actor: str | None) -> list[BranchRef]:
        """Those branches that the actor may read; refused when there are none."""
        if self._policy is None:
            return branches
        who = actor or self._actor
        found = [ref for ref in branches if self._policy.decide(who, Action.READ, branch=ref.name).allowed]
        if not found:
            self._allow(Action.READ, actor, branch=self._branch)
        return found

    @contextmanager
    def _hidden_when_unread(self, actor: str | None, branch: str, action: Action = Action.READ) -> Iterator[None]:
        """What is wrong with a name is told to those only who may look at it."""
        try:
            yield
        except OmniGraphError:
            self._allow(action, actor, branch=branch)
            raise

    def _compile(self, source: str, name: str | None, schema_digest: str) -> CompiledQuery:
        from omnigraph.query.lower.compile import compile_query

        catalog = self._store.catalog(schema_digest)
        return self._compiled.get(CacheKey(source, schema_digest, name), lambda: compile_query(source, catalog, name))

    def _compile_read(
        self,
        method: str,
        source: str | PathLike[str],
        name: str | None,
        params: Mapping[str, Any] | None,
        more: Mapping[str, Any],
        own: Mapping[str, Any],
        snapshot: Snapshot,
    ) -> tuple[ReadQuery, dict[str, Any]]:
        """The read that a text holds, and its parameters."""
        from omnigraph.query.ir import ReadQuery

        given = query_source(source)
        with named_in_errors(given.filename):
            values = gathered(method, given.text, params, more, own)
            compiled = self._compile(given.text, name, snapshot.schema_digest)
        if not isinstance(compiled, ReadQuery):
            raise BadRequest(f"`{compiled.name}` is a mutation; run it with `mutate`")
        return compiled, values


def _read_match(
    store: GraphStore, snapshot: Snapshot, query: ReadQuery, params: Mapping[str, Any], *, now: datetime
) -> Any:
    """Run the `match` of a mutation on the snapshot that the mutation is prepared on."""
    from omnigraph.read.run import run_query

    catalog = store.catalog(snapshot.schema_digest)
    return run_query(store, snapshot, catalog, query, params, now=now).to_arrow()


def _result_to_spark(result: Result) -> Any:
    from omnigraph.spark.result_frames import result_frame

    return result_frame(result)
