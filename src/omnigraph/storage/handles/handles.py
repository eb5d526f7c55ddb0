"""Open tables: a bounded cache of Lance handles by (location, branch, version), shared by threads.

A version never changes once it is committed, so a handle stays right for ever; the oldest unused ones are dropped.
Handles share Lance's own caches of metadata and indexes (`sessions`).

The branch of a table is itself a dataset below `tree/<branch>`: opening it there costs one look, where going through
the main line costs two.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager

import lance
from lance.dataset import LanceDataset

from omnigraph.errors import BadRequest
from omnigraph.storage.constants import HANDLE_CACHE_SIZE, ID_COLUMN
from omnigraph.storage.handles.base_paths import at_home
from omnigraph.storage.handles.fragment_ids import FragmentIds
from omnigraph.storage.handles.newest import NewestVersions
from omnigraph.storage.handles.sessions import Sessions
from omnigraph.storage.handles.shared_lookups import SharedLookups
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.uri import Root, Scheme, clean_path
from omnigraph.storage.values import TableVersion

Hook = Callable[[str, str], None]


class Handles:
    """Lance handles of one graph. `on_call`, when set, hears of each open and commit: `("open", location)`.
    `before_read` is called with each version whose rows are about to be read, and raises if they cannot be trusted."""

    def __init__(self, root: Root, cache_size: int = HANDLE_CACHE_SIZE) -> None:
        if root.scheme is Scheme.MEMORY:
            raise BadRequest("memory:// holds small objects only: keep the tables of a graph on a local path or s3://")
        self.root = root
        self.on_call: Hook | None = None
        self.before_read: Callable[[TableVersion], None] = lambda version: None
        self._storage_options = root.storage_options() or None
        self.sessions = Sessions()
        self._cache_size = max(1, cache_size)
        self._cached: OrderedDict[TableVersion, LanceDataset] = OrderedDict()
        self._newest = NewestVersions(root)
        self._seen: dict[tuple[str, str | None], int] = {}
        self._written_elsewhere: set[TableVersion] = set()
        self.fragment_ids = FragmentIds()
        self.shared_lookups = SharedLookups(ID_COLUMN)
        self._lock = threading.Lock()

    def uri(self, location: str, branch: str | None) -> str:
        """The address of one line of a table, for Lance."""
        location = clean_path(location)
        return self.root.child(f"{location}/tree/{branch}" if branch else location)

    def _line(self, location: str, branch: str | None) -> str:
        """The directory of one line on a local disk; elsewhere a name for it."""
        return self.root.local_child(f"{location}/tree/{branch}" if branch else location)

    def at(self, version: TableVersion) -> LanceDataset:
        """The handle of a pinned version, cached."""
        with self._lock:
            found = self._cached.get(version)
            if found is not None:
                self._cached.move_to_end(version)
                return found
        self.called("open", version.location)
        with lance_errors("opening", version):
            opened = self._open(version.location, version.branch, version.version)
        return self.remember(version, opened)

    def _open(self, location: str, branch: str | None, version: int | None = None) -> LanceDataset:
        opened = lance.dataset(
            self.uri(location, branch),
            version=version,
            storage_options=self._storage_options,
            session=self.sessions.of(location),
        )
        return self._at_home(TableVersion(clean_path(location), branch, int(opened.version)), opened)

    def _at_home(self, version: TableVersion, handle: LanceDataset) -> LanceDataset:
        """The handle, with what a fork shares with its parents looked for below this root and nowhere else."""
        uri = self.uri(version.location, version.branch)
        moved = at_home(handle, uri, version.branch, self._storage_options, self.sessions.of(version.location))
        if moved is None:
            return handle
        self._written_elsewhere.add(version)
        return moved

    def written_elsewhere(self, version: TableVersion) -> bool:
        """Whether a version says of its parents, on disk, that they lie somewhere else than below this root.

        Handles from here know better; but Lance must not be left to open such a version by itself.
        """
        self.at(version)
        return version in self._written_elsewhere

    def readable(self, version: TableVersion) -> LanceDataset:
        """The handle of a version whose rows are about to be read."""
        self.before_read(version)
        return self.at(version)

    def known_newest(self, location: str, branch: str | None) -> int | None:
        """The newest version of one line, if it can be told without opening or listing anything."""
        return self._newest.known(self._line(location, branch))

    def newest(self, location: str, branch: str | None) -> LanceDataset:
        """The handle of the newest version of one line, always looked up afresh."""
        line = self._line(location, branch)
        known = self._newest.known(line)
        if known is not None:
            return self.at(TableVersion(clean_path(location), branch, known))
        changed = self._newest.changed(line)
        known = self._listed(clean_path(location), branch)
        if known is not None:
            self._newest.note(line, changed, known)
            return self.at(TableVersion(clean_path(location), branch, known))
        self.called("open", location)
        with lance_errors("opening", f"{location}@{branch}" if branch else location):
            opened = self._open(location, branch)
        self._newest.note(line, changed, int(opened.version))
        self._seen[clean_path(location), branch] = int(opened.version)
        return self.remember(TableVersion(clean_path(location), branch, int(opened.version)), opened)

    def _listed(self, location: str, branch: str | None) -> int | None:
        """The newest version of a line that was opened before: a listing says it, and no manifest is read again."""
        seen = self._seen.get((location, branch))
        handle = self._cached.get(TableVersion(location, branch, seen)) if seen is not None else None
        if handle is None:
            return None
        try:
            version = int(handle.latest_version)
        except Exception:
            # The line may be gone, or be another one by now: opening it anew tells, in the right words.
            return None
        self._seen[location, branch] = version
        return version

    def newest_version(self, version: TableVersion) -> int:
        """The newest version of the line that `version` is on, looked up afresh."""
        line = self._line(version.location, version.branch)
        known = self._newest.known(line)
        if known is None:
            changed = self._newest.changed(line)
            known = int(self.at(version).latest_version)
            self._newest.note(line, changed, known)
        return known

    def committing(self, base: TableVersion) -> AbstractContextManager[None]:
        """While it is open, the caller commits to the line of `base`, which was its newest version just before."""
        return self._newest.committing(self._line(base.location, base.branch), base.version)

    def landed(self, version: TableVersion, handle: LanceDataset) -> None:
        """Take note of a version that was just committed."""
        handle = self._at_home(version, handle)
        line = self._line(version.location, version.branch)
        self._newest.note(line, self._newest.changed(line), version.version)
        self._seen[version.location, version.branch] = version.version
        self.remember(version, handle)

    def private(self, version: TableVersion) -> LanceDataset:
        """A handle of a pinned version that no other thread has.

        Some of Lance's calls (reading a transaction, making and deleting a branch) lock the handle for themselves, and
        any other use of it meanwhile, even asking for its version, fails in the other thread. The copy costs no look
        at the store.
        """
        return copy.copy(self.at(version))

    def remember(self, version: TableVersion, handle: LanceDataset) -> LanceDataset:
        """Put a handle into the cache; the one that all threads share is returned."""
        with self._lock:
            if version not in self._cached and self.sessions.met(version.location):
                for key in [one for one in self._cached if not self.sessions.is_ledger(one.location)]:
                    del self._cached[key]
            if not self.sessions.has(version.location, handle):
                handle = self._adopted(version, handle)
            shared = self._cached.setdefault(version, handle)
            self._cached.move_to_end(version)
            while len(self._cached) > self._cache_size:
                self._cached.popitem(last=False)
        return shared

    def _adopted(self, version: TableVersion, handle: LanceDataset) -> LanceDataset:
        """The same version as a handle of the session of today; nothing is read for it."""
        return LanceDataset(
            self.uri(version.location, version.branch),
            version=version.version,
            storage_options=self._storage_options,
            session=self.sessions.of(version.location),
            serialized_manifest=handle._ds.serialized_manifest(),
        )

    def forget_misplaced(self) -> None:
        """Drop handles of versions that named another place: their files have been rewritten."""
        with self._lock:
            for key in self._written_elsewhere:
                self._cached.pop(key, None)
            self._written_elsewhere.clear()

    def forget(self, location: str, branch: str | None, versions: frozenset[int] | None = None) -> None:
        """Drop handles of a line that was removed, or of some of its versions."""
        with self._lock:
            for key in list(self._cached):
                if (key.location, key.branch) == (location, branch) and (versions is None or key.version in versions):
                    del self._cached[key]
            if versions is None:
                self._seen.pop((location, branch), None)

    def cached(self) -> int:
        """How many handles are kept."""
        return len(self._cached)

    @property
    def storage_options(self) -> dict[str, str] | None:
        """The options that every call of Lance below this root takes."""
        return self._storage_options

    def called(self, name: str, location: str) -> None:
        """Tell the hook."""
        if self.on_call is not None:
            self.on_call(name, location)
