"""The parts of an opened graph: what the functions of the ledger take as their first argument.

Objects, tables, refs, manifest, commit log, schemas, sidecars, windows, and nothing else: what is done with them is in
the modules of the rooms. `store.GraphStore` is these parts with what a caller above the ledger asks for most. Safe to
share between threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from omnigraph.config import settings
from omnigraph.diagnostics import did_you_mean
from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.errors import BadRequest, BranchNotFound
from omnigraph.ledger.branches.names import refuse_system_name
from omnigraph.ledger.branches.refs import Refs
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.commit.queue import WriteQueue
from omnigraph.ledger.commit.window import CommitWindows
from omnigraph.ledger.history.commit_log import CommitLog
from omnigraph.ledger.history.publish_marks import PublishMarks
from omnigraph.ledger.history.unlogged import Unlogged
from omnigraph.ledger.manifest.manifest import Manifest
from omnigraph.ledger.recovery.audit import RecoveryAudit
from omnigraph.ledger.recovery.sidecars import Sidecars
from omnigraph.ledger.schema_store import SchemaStore
from omnigraph.ledger.values import MAIN, BranchRef
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.leases.leases import Leases, LeaseTimes
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import Root

LOOKERS = 16
"""Threads for looks at an object store that do not depend on each other."""


class GraphParts:
    """The parts of one opened graph.

    `after_commit` is called with each intent that was committed through this store, and must return at once; `on_close`
    is called when it is closed. Rooms above hook their upkeep in there. `seen_versions` are the manifest versions that
    branches (by incarnation) had when this handle last wrote to them, `lines` the lines of the manifest that they (by
    name) had then; `writer_names` are names of leases of its writes that are over. `embedding` is the provider of this
    graph, None for the one that the environment names; `blob_bases` are places that its blobs may be read from, besides
    those that are allowed to all graphs.
    """

    def __init__(self, root: Root, *, read_only: bool) -> None:
        self.root = root
        self.uri = root.uri
        self.read_only = read_only
        self.graph_id = ""
        self.is_old = False
        self.embedding: EmbeddingSettings | None = None
        self.blob_bases: tuple[str, ...] = ()
        self.objects = open_objects(root)
        self.tables = TableStore(root)
        times = LeaseTimes(settings().lease_seconds, settings().lease_renewal_seconds)
        self.leases = Leases(root, self.objects, times)
        self.refs = Refs(self.objects)
        self.schemas = SchemaStore(self.objects)
        self.manifest = Manifest(self.tables)
        self.commits = CommitLog(self.tables)
        self.unlogged = Unlogged()
        self.commits.before_use = self.unlogged.flush
        self.sidecars = Sidecars(self.objects)
        self.publish_marks = PublishMarks(self.objects)
        self.audit = RecoveryAudit(self.tables)
        self.windows = CommitWindows(self.uri, self.leases)
        self.queue = WriteQueue(self.uri)
        self.seen_versions: dict[str, int] = {}
        self.lines: dict[str, str | None] = {MAIN: None}
        self.writer_names: list[str] = []
        self.after_commit: list[Callable[[WriteIntent], None]] = []
        self.on_close: list[Callable[[], None]] = []
        self._last_schemas: dict[str, str] = {}
        self._lookers: ThreadPoolExecutor | None = None

    def catalog(self, digest: str) -> Catalog:
        """The compiled schema of that digest; immutable and cached."""
        return self.schemas.get(digest)[1]

    def branch(self, name: str, operation: str = "open branch") -> BranchRef:
        """The branch of that name as it is now; `NotFound` with a suggestion otherwise. System names are refused."""
        refuse_system_name(name, operation)
        ref = self.refs.get(name)
        if ref is None:
            hint = did_you_mean(name, self.refs.names())
            raise BranchNotFound(f"there is no branch `{name}`{f'; {hint}' if hint else ''}", branch=name)
        return ref

    def last_schema(self, branch: str) -> str:
        """The digest of the schema that a branch had when it was last read here; looked up the first time."""
        known = self._last_schemas.get(branch)
        if known is None:
            known = self.manifest.read(self.branch(branch)).schema_digest
            self.note_schema(branch, known)
        return known

    def note_schema(self, branch: str, digest: str) -> None:
        """Take note of the schema that a branch has now."""
        self._last_schemas[branch] = digest

    def at_once(self, *work: Callable[[], Any]) -> list[Any]:
        """What several independent looks at the store give. Where each takes a round trip they take one together."""
        if self.root.is_local or len(work) < 2:
            return [one() for one in work]
        others = [self._pool().submit(one) for one in work[1:]]
        try:
            first = work[0]()
        finally:
            wait(others)
        return [first, *(other.result() for other in others)]

    def refuse_if_read_only(self, operation: str) -> None:
        """Every write starts with this."""
        if self.read_only:
            raise BadRequest(f"{operation}: the graph was opened read-only; open it for writing")

    def later(self, work: Callable[[], object]) -> None:
        """Do something for which nobody need wait; closing the graph does."""
        self._pool().submit(work)

    def _pool(self) -> ThreadPoolExecutor:
        if self._lookers is None:
            self._lookers = ThreadPoolExecutor(LOOKERS, thread_name_prefix="omnigraph-looks")
        return self._lookers

    def close(self) -> None:
        """Let go of caches. Nothing but the log is pending: a write is finished when its call returns."""
        self.unlogged.close()
        while self.on_close:
            self.on_close.pop()()
        self.after_commit.clear()
        if self._lookers is not None:
            self._lookers.shutdown()
            self._lookers = None
        self.windows.close()
        self.leases.close()
        self.manifest.forget()
