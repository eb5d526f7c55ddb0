"""The opened graph: what every room's functions take as their first argument.

It holds the parts (objects, tables, refs, manifest, commit log, schemas, sidecars, windows) and nothing else; what is
done with them is in the modules of the rooms. Safe to share between threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from omnigraph.config import settings
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, NotFound
from omnigraph.ledger import completion, snapshots
from omnigraph.ledger.audit import RecoveryAudit
from omnigraph.ledger.commits import CommitLog
from omnigraph.ledger.init import init_graph
from omnigraph.ledger.legacy import LegacyGraph, LegacyLog, LegacyRefs
from omnigraph.ledger.manifest import Manifest
from omnigraph.ledger.manifest_rows import MANIFEST
from omnigraph.ledger.migrations import migrate
from omnigraph.ledger.names import refuse_system_name
from omnigraph.ledger.publish_marks import PublishMarks
from omnigraph.ledger.recovery import recover_all
from omnigraph.ledger.refs import Refs
from omnigraph.ledger.schemas import SchemaStore
from omnigraph.ledger.sidecars import Sidecars
from omnigraph.ledger.stamp import CURRENT, read_stamp, refuse_newer
from omnigraph.ledger.values import MAIN, BranchRef, Snapshot
from omnigraph.ledger.window import CommitWindows
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.leases import Leases, LeaseTimes
from omnigraph.storage.objects import open_objects
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import Root, parse_root

if TYPE_CHECKING:
    from omnigraph.ledger.intents import WriteIntent


class GraphStore:
    """One graph, opened. Made by `open_store` and `create_store`.

    `after_commit` is called with each intent that was committed through this store, and must return at once; `on_close`
    is called when it is closed. Rooms above hook their upkeep in there.
    """

    def __init__(self, root: Root, *, read_only: bool) -> None:
        self.root = root
        self.uri = root.uri
        self.read_only = read_only
        self.graph_id = ""
        self.is_old = False
        self.objects = open_objects(root)
        self.tables = TableStore(root)
        times = LeaseTimes(settings().lease_seconds, settings().lease_renewal_seconds)
        self.leases = Leases(root, self.objects, times)
        self.refs = Refs(self.objects)
        self.schemas = SchemaStore(self.objects)
        self.manifest = Manifest(self.tables)
        self.commits = CommitLog(self.tables)
        self.sidecars = Sidecars(self.objects)
        self.publish_marks = PublishMarks(self.objects)
        self.audit = RecoveryAudit(self.tables)
        self.windows = CommitWindows(self.uri, self.leases)
        self.after_commit: list[Callable[[WriteIntent], None]] = []
        self.on_close: list[Callable[[], None]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        # What is pickled with a value that reads from the graph, such as a difference: it is opened again, to read.
        return partial(open_store, read_only=True), (self.uri,)

    def catalog(self, digest: str) -> Catalog:
        """The compiled schema of that digest; immutable and cached."""
        return self.schemas.get(digest)[1]

    def branch(self, name: str, operation: str = "open branch") -> BranchRef:
        """The branch of that name as it is now; `NotFound` with a suggestion otherwise. System names are refused."""
        refuse_system_name(name, operation)
        ref = self.refs.get(name)
        if ref is None:
            hint = did_you_mean(name, self.refs.names())
            raise NotFound(f"there is no branch `{name}`{f'; {hint}' if hint else ''}", branch=name)
        return ref

    def snapshot(self, target: snapshots.Target = None, *, branch: str = MAIN, operation: str = "snapshot") -> Snapshot:
        """The state that `target` names: None | branch | commit id | tag | manifest version of `branch`."""
        return snapshots.resolve(self, target, branch, operation)

    def complete_log(self) -> int:
        """Put what a crash kept out of the commit log into it, from the manifest; how many commits that were."""
        return completion.complete(self)

    def refuse_if_read_only(self, operation: str) -> None:
        """Every write starts with this."""
        if self.read_only:
            raise BadRequest(f"{operation}: the graph was opened read-only; open it for writing")

    def close(self) -> None:
        """Let go of caches. Nothing is pending: a write is finished when its call returns."""
        while self.on_close:
            self.on_close.pop()()
        self.after_commit.clear()
        self.manifest.forget()

    def __enter__(self) -> GraphStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def create_store(uri: str | os.PathLike[str], schema_source: str, *, actor: str | None = None) -> GraphStore:
    """Make a graph and open it for writing. Refuses a path that holds one."""
    root = parse_root(uri)
    init_graph(root, schema_source, actor=actor)
    return open_store(uri)


def open_store(uri: str | os.PathLike[str], *, read_only: bool = False) -> GraphStore:
    """Open a graph. For writing: internal migration, then recovery of unfinished writes, then the commit log.

    Read-only writes not one byte and reads graphs of older versions as they are.
    """
    store = GraphStore(parse_root(uri), read_only=read_only)
    stored = store.refs.read(MAIN)
    stamp = _stamp(store, known_to_exist=stored is not None)
    if stamp < CURRENT and not read_only:
        migrate(store)
        stored = store.refs.read(MAIN)
    elif stamp < CURRENT:
        _read_as_it_is(store)
    main = stored.ref if stored is not None else store.branch(MAIN)
    store.graph_id = (stored and stored.graph_id) or main.incarnation
    if not read_only:
        recover_all(store)
        # Whoever publishes on another branch leaves a trace until it is logged, which recovery has just looked for.
        completion.complete_branch(store, main)
    return store


def _stamp(store: GraphStore, *, known_to_exist: bool) -> int:
    """The internal schema stamp of the main line; `NotFound` when there is no graph.

    Graphs from before the ref objects have a manifest of an older stamp. A manifest of today's without the ref object
    of `main` is what an `init` left that died, or is still at work: no graph.
    """
    advice = "; make one with `omnigraph init`"
    if store.root.is_local and os.path.isfile(store.uri):
        advice = ": it is a file, and a graph is a directory"
    nothing = NotFound(f"there is no graph at {store.uri}{advice}", uri=store.uri)
    try:
        stamp = read_stamp(store.tables.schema(store.tables.head(MANIFEST)))
    except TableNotFound:
        if known_to_exist:
            raise
        raise nothing from None
    refuse_newer(stamp)
    if stamp == CURRENT and not known_to_exist:
        raise nothing
    return stamp


def _read_as_it_is(store: GraphStore) -> None:
    """Read a graph of an older version without changing it."""
    store.is_old = True
    graph = LegacyGraph(store.objects, store.tables, store.schemas)
    store.refs = LegacyRefs(store.objects, graph)
    store.manifest = Manifest(store.tables, graph.read)
    store.commits = LegacyLog(store.tables, graph, store.manifest)
