"""The files that a version of a table consists of, and their checksums.

Lance writes files and does not check them when it reads them: a flipped bit in a data file is another value, one in a
deletion vector can end the process. So each commit records the checksums of the files that it adds (the ledger keeps
them), computed while they are still in the system's memory. Data files are summed when they are staged, before the
commit window is entered. Which files a commit adds is told by what was staged: to compare two versions of a table takes
as long as the table has fragments.
"""

from __future__ import annotations

import os
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from omnigraph.config import settings
from omnigraph.errors import StorageKind
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import FileDamaged, lance_errors
from omnigraph.storage.objects.local_files import read_pieces
from omnigraph.storage.objects.object_errors import ObjectNotFound, storage_errors
from omnigraph.storage.objects.objects import is_temporary, open_objects
from omnigraph.storage.staging.staged_files import line_directory, vector_of
from omnigraph.storage.values import StagedWrite, TableVersion

Checksums = Mapping[str, str]
"""Paths below the graph's root, with `size-crc32` of each; two of them, with a blank between, where either is right."""

_NOTED = 65_536
_VERSIONS = 4_096
"""Versions that are known to be sound. Every commit makes some, and only the last ones are read."""

_STEPS = 1_024


class PublishedFiles:
    """Sums files of one graph, and checks them when that is asked for. Safe to share between threads."""

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        self._noted: OrderedDict[str, str] = OrderedDict()
        self._steps: OrderedDict[TableVersion, tuple[TableVersion, tuple[str, ...]]] = OrderedDict()
        self._published: OrderedDict[TableVersion, None] = OrderedDict()
        self._sound: OrderedDict[str, None] = OrderedDict()
        self._sound_versions: OrderedDict[str, None] = OrderedDict()
        self._asking = False
        self.expected: Callable[[], Checksums] | None = None
        """Where the recorded checksums come from; set by whoever keeps them."""

    @property
    def sums(self) -> bool:
        """Whether commits record checksums here: object stores check what they keep by themselves."""
        mode = settings().checksums
        return mode == "all" or (mode == "local" and self._handles.root.is_local)

    def note(self, paths: Iterable[str]) -> None:
        """Sum files that were just staged, so that the commit need not."""
        if self.sums:
            for path in paths:
                if not path.endswith("/"):
                    self._remember(path, self.checksum(path))

    def added(self, before: TableVersion | None, after: TableVersion) -> dict[str, str]:
        """The checksums of the files of `after` that `before` does not have, its own manifest included."""
        if not self.sums:
            return {}
        new = self._told(before, after)
        if new is None:
            known = set(self.files(before)) if before is not None else set()
            new = [path for path in self.files(after) if path not in known]
        return {path: self._noted.pop(path, "") or self.checksum(path) for path in new}

    def manifest(self, table: TableVersion) -> dict[str, str]:
        """The checksum of a version's own manifest, which nothing that it publishes can hold; none when it is gone."""
        try:
            return {_manifest(table): self.checksum(_manifest(table))} if self.sums else {}
        except ObjectNotFound:
            return {}

    def landed(self, write: StagedWrite, after: TableVersion) -> None:
        """Take note of what a staged write of this process added when it was committed."""
        if write.new_vectors is None:
            return
        added = (*write.new_files, *write.new_vectors)
        self._steps[after] = write.base, added
        while len(self._steps) > _STEPS:
            self._steps.popitem(last=False)
        if added and str(write.base) in self._sound_versions:
            # What it adds was written a moment ago, by Lance itself. What puts an older version back adds nothing, and
            # shows other files than its base.
            self._judged(str(after))

    def published_before(self, table: TableVersion) -> None:
        """Take note that a version which is about to be published has been so before: nothing of it is new."""
        self._published[table] = None
        while len(self._published) > _STEPS:
            self._published.popitem(last=False)

    def _told(self, before: TableVersion | None, after: TableVersion) -> list[str] | None:
        """The files that the commits from one version to another added, if this process made all of them."""
        if after in self._published:
            return []
        found = [_manifest(after)]
        if before is None:
            # Of a table that comes back as it was, all files but this one were published before.
            put_back = after in self._steps and not self._steps[after][1]
            return found if put_back else None
        step = after
        while step != before:
            made = self._steps.get(step)
            if made is None:
                return None
            step, paths = made
            for path in paths:
                found += self._below(path) if path.endswith("/") else [path]
        return found

    def files(self, table: TableVersion) -> list[str]:
        """The files that a version keeps on its own line: data, blobs beside them, deletion vectors, indexes, its
        manifest."""
        base = line_directory(table)
        found = [_manifest(table)]
        handle = self._handles.at(table)
        with lance_errors("reading the files of", table):
            for fragment in handle.get_fragments():
                metadata = fragment.metadata
                for file in metadata.files:
                    if file.base_id is None:
                        # `path` makes a new class at each call.
                        path = f"{base}/data/{file._path}"
                        found += [path, *self._below(f"{path.removesuffix('.lance')}/")]
                vector = vector_of(table, metadata)
                found += [vector] if vector is not None else []
            for index in handle.describe_indices():
                for segment in index.segments:
                    found += self._below(f"{base}/_indices/{segment.uuid}/")
        return found

    def names(self, table: TableVersion) -> set[str]:
        """The names of the data files (without their ending) and indexes that a version has, on its own line or on
        those that it was made from. They are never used again, so each stands for one thing."""
        handle = self._handles.at(table)
        with lance_errors("reading the files of", table):
            data = {
                file._path.removesuffix(".lance")
                for fragment in handle.get_fragments()
                for file in fragment.metadata.files
            }
            return data | {str(segment.uuid) for index in handle.describe_indices() for segment in index.segments}

    def vectors(self, table: TableVersion) -> list[str]:
        """The deletion vectors that a version keeps on its own line."""
        handle = self._handles.at(table)
        with lance_errors("reading the files of", table):
            found = [vector_of(table, fragment.metadata) for fragment in handle.get_fragments()]
        return [path for path in found if path is not None]

    def checksum(self, path: str) -> str:
        """The size and CRC-32 of a file as it is now."""
        size = crc = 0
        if self._handles.root.is_local:
            with storage_errors("reading", path):
                for piece in read_pieces(f"{self._handles.root.path}/{path}"):
                    size, crc = size + len(piece), zlib.crc32(piece, crc)
        else:
            data, _ = open_objects(self._handles.root).get(path)
            size, crc = len(data), zlib.crc32(data)
        return f"{size}-{crc:08x}"

    def differing(self, directory: str, recorded: Checksums) -> list[str]:
        """The files of a directory on local disk that are there and not what was recorded."""
        known = [path for path in self._below(directory) if path in recorded]
        return [path for path in known if self.checksum(path) not in recorded[path].split()]

    def check(self, table: TableVersion) -> None:
        """`FileDamaged` for a version that is about to be read, if one of its files is known not to be sound.

        Deletion vectors on local disk are always looked into, once each: Lance ends the process on some that are
        damaged. With `OMNIGRAPH_CHECK_FILES` every file is compared with its checksum, once each.
        """
        whole = settings().check_files == "all" and self.expected is not None and not self._asking
        if not whole and not self._handles.root.is_local:
            return
        # A version is judged once; what it shares with others, once too.
        key = str(table) + ("!" if whole else "")
        if key in self._sound_versions:
            return
        recorded = self._recorded() if whole else {}
        for path in self.files(table) if whole else self.vectors(table):
            if whole and path in recorded and f"{path}!" not in self._sound:
                self._compare(path, recorded[path])
                self._mark(f"{path}!")
            if path.endswith(".arrow") and "/_deletions/" in path and path not in self._sound:
                self._check_vector(path)
                self._mark(path)
        self._judged(key)

    def _recorded(self) -> Checksums:
        """What was recorded. To look it up reads tables too, which cannot wait for it."""
        self._asking = True
        try:
            return self.expected() if self.expected is not None else {}
        finally:
            self._asking = False

    def _compare(self, path: str, recorded: str) -> None:
        found = self.checksum(path)
        if found not in recorded.split():
            raise damaged(path, f"it has the checksum {found} and was published with {recorded}")

    def _check_vector(self, path: str) -> None:
        with storage_errors("reading", path):
            data = Path(self._handles.root.path, path).read_bytes()
        try:
            ipc.open_file(pa.BufferReader(data)).read_all().validate(full=True)
        except (pa.ArrowException, OSError, ValueError, IndexError) as error:
            raise damaged(path, f"it is no deletion vector ({str(error).splitlines()[0]})") from error

    def _below(self, directory: str) -> list[str]:
        """The files of a directory (of an index, of blobs beside a data file), where that can be told without asking a
        store for each."""
        if not self._handles.root.is_local:
            return []
        try:
            with os.scandir(os.path.join(self._handles.root.path, directory)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_file())
                return [f"{directory}{name}" for name in names if not is_temporary(name)]
        except FileNotFoundError:
            return []

    def _remember(self, path: str, checksum: str) -> None:
        self._noted[path] = checksum
        while len(self._noted) > _NOTED:
            self._noted.popitem(last=False)

    def _judged(self, version: str) -> None:
        self._sound_versions[version] = None
        while len(self._sound_versions) > _VERSIONS:
            self._sound_versions.popitem(last=False)

    def _mark(self, key: str) -> None:
        self._sound[key] = None
        while len(self._sound) > _NOTED:
            self._sound.popitem(last=False)


def _manifest(table: TableVersion) -> str:
    return f"{line_directory(table)}/_versions/{2**64 - 1 - table.version:020d}.manifest"


def checksum_of(data: bytes) -> str:
    """The size and CRC-32 of what a file holds."""
    return f"{len(data)}-{zlib.crc32(data):08x}"


def damaged(path: str, why: str) -> FileDamaged:
    """The error for a file that is not what was published."""
    return FileDamaged(
        f"the file {path} is damaged: {why}. Put it back from a copy; other tables, and versions without it, can be "
        "read, and `omnigraph salvage` takes out what can be",
        StorageKind.PERMANENT,
        path=path,
    )
