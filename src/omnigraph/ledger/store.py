"""The opened graph, and how it is opened: what every room above the ledger takes as its first argument."""

from __future__ import annotations

import logging
import os
from functools import cache, partial
from types import TracebackType
from typing import Any

from omnigraph.choices import Target
from omnigraph.errors import NotFound, StorageError
from omnigraph.ledger import snapshots
from omnigraph.ledger.branches.refs import branch_path, damaged_ref
from omnigraph.ledger.history import complete_log
from omnigraph.ledger.history.acknowledged import lost_head
from omnigraph.ledger.history.rebuild_log import ensure_log
from omnigraph.ledger.history.recorded_files import recorded_files
from omnigraph.ledger.init import init_graph
from omnigraph.ledger.layout import COPY_MARKER
from omnigraph.ledger.manifest.manifest import Manifest
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.manifest.stamp import CURRENT, LAST_SHARED, read_stamp, refuse_newer, refuse_others
from omnigraph.ledger.older.legacy import LegacyGraph, LegacyLog, LegacyRefs
from omnigraph.ledger.older.migrations import migrate
from omnigraph.ledger.older.old_recoveries import OldAudit
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.recover import recover_all
from omnigraph.ledger.values import MAIN, BranchRef, Snapshot
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.objects.object_errors import is_passing
from omnigraph.storage.uri import parse_root

_logger = logging.getLogger("omnigraph.ledger")

OTHERS_FILES = ("__schema_state.json", "_schema.ir.json")
"""What graphs of the other implementation have at their root. A graph that was migrated from one has them too."""


class GraphStore(GraphParts):
    """One graph, opened. Made by `open_store` and `create_store`."""

    def __reduce__(self) -> tuple[Any, ...]:
        # What is pickled with a value that reads from the graph, such as a difference: it is opened again, to read.
        return partial(open_store, read_only=True), (self.uri,)

    def snapshot(self, target: Target = None, *, branch: str = MAIN, operation: str = "snapshot") -> Snapshot:
        """The state that `target` names: None | branch | commit id | tag | manifest version of `branch`."""
        return snapshots.resolve(self, target, branch, operation)

    def complete_log(self) -> int:
        """Put what a crash kept out of the commit log into it, from the manifest; how many commits that were."""
        return complete_log.complete(self)

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
    store.tables.files.expected = cache(partial(recorded_files, store))
    try:
        _enter(store)
    except BaseException:
        store.leases.close()
        raise
    return store


def _enter(store: GraphStore) -> None:
    """Bring an opened graph up to date, and recover it, unless it is only read."""
    read_only = store.read_only
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
        ensure_log(store)
        recover_all(store)
        _complete_main(store, main)


def _complete_main(store: GraphStore, main: BranchRef) -> None:
    """Complete the log of `main`, and look whether it shows what was acknowledged. Damage of `main` is told and not
    raised: reads, other branches and `repair` work, and a write to `main` is refused."""
    try:
        # Whoever publishes on another branch leaves a trace until it is logged, which recovery has just looked for.
        complete_log.complete_branch(store, main)
        lost = lost_head(store, main, store.manifest.read(main))
    except StorageError as error:
        if is_passing(error):
            raise
        _logger.error("the branch `%s` is damaged: %s", main.name, error.message)
        return
    if lost is not None:
        _logger.error("%s; run `omnigraph repair`", lost)


def _stamp(store: GraphStore, *, known_to_exist: bool) -> int:
    """The internal schema stamp of the main line; `NotFound` when there is no graph.

    Graphs from before the ref objects have a manifest of an older stamp. A manifest of today's without the ref object
    of `main` is what an `init` left that died, or is still at work: no graph.
    """
    if not known_to_exist and store.root.is_inside_a_file:
        raise _no_graph(store)
    try:
        schema = store.tables.schema(store.tables.head(MANIFEST))
    except TableNotFound:
        if known_to_exist:
            raise
        raise _no_graph(store) from None
    except StorageError as error:
        if not known_to_exist or is_passing(error):
            raise
        # The newest version of `main` is damaged; each line says what it is when it is read.
        _logger.error("the manifest of `%s` cannot be read: %s", MAIN, error.message)
        return CURRENT
    stamp = read_stamp(schema)
    if stamp > LAST_SHARED:
        others = not known_to_exist and any(store.objects.exists(path) for path in OTHERS_FILES)
        refuse_others(schema, store.uri, is_ours=not others)
    refuse_newer(stamp)
    if stamp == CURRENT and not known_to_exist:
        if _was_written_to(store):
            raise damaged_ref(branch_path(MAIN), "missing")
        raise _no_graph(store)
    return stamp


def _was_written_to(store: GraphStore) -> bool:
    """Whether more was published than what `init` begins with, by no copy that is still under way: the ref of `main`,
    which both make last, was there and is lost."""
    if store.objects.exists(COPY_MARKER):
        return False
    return store.manifest.read_line(None).head.parent_commit_id is not None


def _no_graph(store: GraphStore) -> NotFound:
    """What to say of a place without a graph."""
    advice = "; make one with `omnigraph init`"
    if store.root.is_local and os.path.isfile(store.uri):
        advice = ": it is a file, and a graph is a directory"
    elif store.objects.exists(COPY_MARKER):
        advice = " yet, but an unfinished copy of one: carry it on by the same `omnigraph copy`, or remove it"
    return NotFound(f"there is no graph at {store.uri}{advice}", uri=store.uri)


def _read_as_it_is(store: GraphStore) -> None:
    """Read a graph of an older version without changing it."""
    store.is_old = True
    graph = LegacyGraph(store.objects, store.tables, store.schemas)
    store.refs = LegacyRefs(store.objects, graph)
    store.manifest = Manifest(store.tables, graph.read)
    store.commits = LegacyLog(store.tables, graph, store.manifest)
    store.audit = OldAudit(store.tables, graph)
