"""Small objects (schemas, references, sidecars, leases) on any store, with the same promises everywhere.

One adapter over `obstore`. What the local file system lacks is put-if-match: there every call that changes an object
takes an operating-system lock for that object first, so that compare and swap are one step across threads and
processes. Lock files are a fixed number, shared by hash, and are never removed.

What object stores lack is delete-if-match. There such a delete puts a tombstone in the object's place by put-if-match.
A tombstone counts as nothing: it is not read, not listed, and put-if-absent takes its place. `cleanup` removes those
that are old: it announces each removal in the tombstone by put-if-match, and put-if-absent waits for an announced
removal, so the two never meet at normal speed.

Durability: a put that returned has been written to a temporary file and renamed, or accepted by the object store; it
survives the death of any process. It is not flushed to the platter on a local disk: a power cut may lose the last
writes, as it may lose Lance's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import obstore

from omnigraph.errors import StorageKind
from omnigraph.failpoints import declare, failpoint
from omnigraph.storage.constants import OS_LOCK_DIRECTORY
from omnigraph.storage.objects.backends import open_backend
from omnigraph.storage.objects.local_files import read_file, write_file
from omnigraph.storage.objects.object_errors import LostPrecondition, ObjectExists, ObjectNotFound, storage_errors
from omnigraph.storage.objects.os_locks import exclusive
from omnigraph.storage.objects.unchanged_files import UnchangedFiles
from omnigraph.storage.uri import Root, clean_path

TOMBSTONE = b'{"omnigraph": "deleted"}\n'
"""What stands for an object that is deleted, where the store cannot compare and delete in one step."""

LEAVING = b'{"omnigraph": "removed"}\n'
"""A tombstone that somebody is about to remove. As long as the other, so that a listing shows both alike."""

LEAVING_SECONDS = 60.0
"""How long an announced removal may take, with every retry of its request. After that its remover counts as dead, and
the name can be taken again."""

PIECE_BYTES = 8 << 20
"""Large objects go from store to store in pieces of this size."""

declare("objects.tombstone_leaving", "The removal of a tombstone is announced; the tombstone is still there")

DEAD_TEMPORARY_SECONDS = 600.0
"""A temporary file that is younger may be one that a living writer is about to rename: a put takes an instant."""

_LOCK_FILES = 64
_TEMPORARY = re.compile(r"#\d+$")


def is_temporary(name: str) -> bool:
    """Whether a file on local disk is one that a put has begun and not named yet: it is no object."""
    return _TEMPORARY.search(name) is not None


@dataclass(frozen=True, slots=True)
class Token:
    """Which content of an object was read or written. Only good for `put_if_match` on the same store."""

    value: str


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object in a listing."""

    path: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class _Tombstone:
    """What stands in the place of a deleted object; `age` in seconds."""

    token: Token
    is_leaving: bool
    age: float


def open_objects(root: Root) -> ObjectStore:
    """The object store below a graph's root. Creates nothing: a local directory comes with the first put."""
    return ObjectStore(root)


class ObjectStore:
    """Objects by path relative to the root. Safe to share between threads.

    `on_call`, when set, is called with the name of each request that goes to the store (tests count with it).
    """

    def __init__(self, root: Root) -> None:
        self.root = root
        self.on_call: Callable[[str], None] | None = None
        self._local = root.is_local
        self._opened: Any = None
        self._unchanged = UnchangedFiles()
        self._tombstone_tags: set[str] = set()

    def put(self, path: str, data: bytes) -> Token:
        """Store `data`, replacing what was there. A reader sees the old object or the new one, never a part."""
        return self._write(path, data, "overwrite", "put")

    def put_if_absent(self, path: str, data: bytes) -> Token:
        """Store `data` if nothing is there; `ObjectExists` otherwise. Exactly one of many callers wins."""
        try:
            return self._write(path, data, "create", "put_if_absent")
        except ObjectExists:
            if self._local and self._drop_strange_tombstone(clean_path(path)):
                return self._write(path, data, "create", "put_if_absent")
            tombstone = None if self._local else self._tombstone(clean_path(path))
            if tombstone is None:
                raise
        while tombstone is not None and tombstone.is_leaving and tombstone.age < LEAVING_SECONDS:
            time.sleep(0.02)
            tombstone = self._tombstone(clean_path(path))
        if tombstone is None:
            return self._write(path, data, "create", "put_if_absent")
        try:
            return self._write(path, data, {"e_tag": tombstone.token.value}, "put_if_match")
        except ObjectNotFound:
            # Cleanup has just removed the tombstone.
            return self._write(path, data, "create", "put_if_absent")
        except LostPrecondition as lost:
            raise ObjectExists(f"{self._shown(path)} exists already", StorageKind.PRECONDITION) from lost

    def put_if_match(self, path: str, data: bytes, token: Token) -> Token:
        """Store `data` if the object still is what `token` says; `LostPrecondition` otherwise."""
        path = clean_path(path)
        if not self._local:
            try:
                return self._write(path, data, {"e_tag": token.value}, "put_if_match")
            except ObjectNotFound as missing:
                raise self._lost(path) from missing
        self._called("put_if_match")
        with storage_errors("replacing", self._shown(path)), self._held_unchanged(path, token):
            write_file(f"{self.root.path}/{path}", data, replace=True)
        return Token(_digest(data))

    def get(self, path: str) -> tuple[bytes, Token]:
        """The object and the token of what was read; `ObjectNotFound` when there is none."""
        path = clean_path(path)
        self._called("get")
        with storage_errors("reading", self._shown(path)):
            if self._local:
                data = self._read(path, self._unchanged.read)
                token = Token(_digest(data))
            else:
                found, data = self._get(path)
                token = _token(found)
            if data in (TOMBSTONE, LEAVING):
                raise FileNotFoundError(path)
            return data, token

    def copy(self, path: str, to: str) -> None:
        """Make a copy of an object that is never changed, by the store itself; `ObjectNotFound` when there is none.

        On a local disk both are names of one file, which counts as written now.
        """
        path, to = clean_path(path), clean_path(to)
        self._called("copy")
        with storage_errors("copying", self._shown(path)):
            obstore.copy(self._store(), path, to)
            if self._local:
                os.utime(Path(self.root.path, to))

    def read_stream(self, path: str) -> Iterator[bytes]:
        """The content of an object of any size, in pieces; `ObjectNotFound` when there is none."""
        path = clean_path(path)
        self._called("get")
        with storage_errors("reading", self._shown(path)):
            yield from (bytes(piece) for piece in obstore.get(self._store(), path).stream(min_chunk_size=PIECE_BYTES))

    def write_stream(self, path: str, pieces: Iterator[bytes]) -> None:
        """Store what comes in pieces. It is there whole or not at all."""
        path = clean_path(path)
        first = next(pieces, b"")
        if len(first) < PIECE_BYTES:
            first += b"".join(pieces)
            self.put(path, first)
            return
        self._called("put")
        with storage_errors("writing", self._shown(path)):
            # Not `put` with an iterator, which cannot read from the library's own stream. And not as a context: an
            # error would close the writer, which makes what it has an object.
            writer = obstore.open_writer(self._store(), path, buffer_size=PIECE_BYTES)
            for piece in chain((first,), pieces):
                writer.write(piece)
            writer.close()

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """The bytes from `start` to `end` of a large object; `ObjectNotFound` when there is none."""
        path = clean_path(path)
        self._called("get_range")
        with storage_errors("reading", self._shown(path)):
            return bytes(obstore.get_range(self._store(), path, start=start, end=end))

    def head(self, path: str) -> ObjectInfo | None:
        """Size and time of an object, or None when there is none."""
        path = clean_path(path)
        self._called("head")
        if not self._there():
            return None
        try:
            with storage_errors("looking up", self._shown(path)):
                meta = obstore.head(self._store(), path)
                if self._is_tombstone(meta):
                    return None
        except ObjectNotFound:
            return None
        return ObjectInfo(path, int(meta["size"]), meta["last_modified"])

    def names(self) -> list[str]:
        """What lies directly below the root, objects and directories alike, sorted. One request, however much it is."""
        self._called("list")
        with storage_errors("listing", self.root.uri):
            if not self._there():
                return []
            if self._local:
                return sorted(os.listdir(self.root.path))
            found = obstore.list_with_delimiter(self._store(), None)
        objects = [str(meta["path"]) for meta in found["objects"] if not self._is_tombstone(meta)]
        return sorted([*objects, *(str(prefix).rstrip("/") for prefix in found["common_prefixes"])])

    def list(self, prefix: str = "") -> list[ObjectInfo]:
        """Every object below `prefix`, sorted by path. `a/b` does not catch `a/bc`; temporary files are left out."""
        prefix = clean_path(prefix)
        self._called("list")
        with storage_errors("listing", self._shown(prefix)):
            if not self._there():
                return []
            if self._local:
                return _local_list(Path(self.root.path), prefix)
            found = obstore.list(self._store(), prefix or None).collect()
            found = [meta for meta in found if not self._is_tombstone(meta)]
        objects = [ObjectInfo(str(meta["path"]), int(meta["size"]), meta["last_modified"]) for meta in found]
        return sorted((entry for entry in objects if not _is_lock_file(entry.path)), key=lambda entry: entry.path)

    def exists(self, path: str) -> bool:
        """Whether there is an object at `path` or below it. An empty directory does not exist."""
        path = clean_path(path)
        if path and self.head(path) is not None:
            return True
        self._called("list")
        with storage_errors("listing", self._shown(path)):
            if not self._there():
                return False
            for chunk in obstore.list(self._store(), path or None):
                if any(not _is_lock_file(str(meta["path"])) and not self._is_tombstone(meta) for meta in chunk):
                    return True
        return False

    def delete(self, path: str) -> None:
        """Remove an object. Removing what is not there is no error."""
        path = clean_path(path)
        self._called("delete")
        try:
            with storage_errors("deleting", self._shown(path)):
                if not self._there():
                    return
                if self._local:
                    with exclusive(self._lock_file(path)):
                        os.unlink(Path(self.root.path, path))
                else:
                    obstore.delete(self._store(), path)
        except ObjectNotFound:
            return

    def delete_if_match(self, path: str, token: Token) -> None:
        """Remove an object if it still is what `token` says; `LostPrecondition` otherwise."""
        path = clean_path(path)
        if not self._local:
            self.put_if_match(path, TOMBSTONE, token)
            return
        self._called("delete_if_match")
        with storage_errors("deleting", self._shown(path)), self._held_unchanged(path, token):
            obstore.delete(self._store(), path)

    def delete_prefix(self, prefix: str) -> int:
        """Remove every object below `prefix`; how many there were. Running it again removes nothing more."""
        found = self.list(prefix)
        for entry in found:
            self.delete(entry.path)
        self.remove_empty_folders(prefix)
        return len(found)

    def remove_empty_folders(self, below: str) -> None:
        """Remove folders at and below `below` that have no file in them, also while others put objects there.

        Only local disk has such. They are no objects, and every listing goes through all of them.
        """
        below = clean_path(below)
        if not self._local or not below:
            return
        for directory, _, _ in os.walk(Path(self.root.path, below), topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)

    def remove_tombstones(self, prefix: str, older_than: float) -> int:
        """Remove what `delete_if_match` left below `prefix`, once it is this many seconds old; how many.

        Each removal is announced first, by put-if-match, and put-if-absent waits until an announced removal is over. So
        it can hit a later object only if it stops for longer than `LEAVING_SECONDS` between these two requests, and the
        name is taken again meanwhile: so let `older_than` be large.
        """
        if self._local:
            return 0
        removed = 0
        with storage_errors("removing tombstones below", self._shown(prefix)):
            for meta in obstore.list(self._store(), clean_path(prefix) or None).collect():
                old = time.time() - meta["last_modified"].timestamp() > older_than
                if old and self._is_tombstone(meta) and self._announce_removal(str(meta["path"])):
                    failpoint("objects.tombstone_leaving")
                    self.delete(str(meta["path"]))
                    removed += 1
        return removed

    def remove_temporaries(self, older_than: float, below: str = "") -> int:
        """Remove files that a process which died was writing, once they are this many seconds old; how many.

        Only local disk has such files (`name#1`): they are never listed and never read.
        """
        if not self._local:
            return 0
        removed = 0
        with storage_errors("removing temporary files below", self.root.uri):
            for directory, _, names in os.walk(Path(self.root.path, below)):
                for name in names:
                    path = Path(directory, name)
                    if is_temporary(name) and _is_older(path, older_than):
                        path.unlink(missing_ok=True)
                        removed += 1
        return removed

    def _lost(self, path: str) -> LostPrecondition:
        return LostPrecondition(
            f"{self._shown(path)} was changed by somebody else; read it again and retry", StorageKind.PRECONDITION
        )

    def _write(self, path: str, data: bytes, mode: Any, call: str) -> Token:
        path = clean_path(path)
        self._called(call)
        with storage_errors("writing", self._shown(path)):
            if self._local:
                with exclusive(self._lock_file(path)):
                    write_file(f"{self.root.path}/{path}", data, replace=mode == "overwrite")
                return Token(_digest(data))
            return Token(str(obstore.put(self._store(), path, data, mode=mode, use_multipart=False)["e_tag"]))

    @contextmanager
    def _held_unchanged(self, path: str, token: Token) -> Iterator[None]:
        """Hold a local object's lock, in which it still is what `token` says; `LostPrecondition` otherwise."""
        with exclusive(self._lock_file(path)):
            try:
                current = _digest(self._read(path))
            except FileNotFoundError:
                current = None
            if current != token.value:
                raise self._lost(path)
            yield

    def _get(self, path: str) -> tuple[Any, bytes]:
        found = obstore.get(self._store(), path)
        return found, bytes(found.bytes())

    def _tombstone(self, path: str) -> _Tombstone | None:
        """The tombstone at `path`, if there is one."""
        try:
            with storage_errors("reading", self._shown(path)):
                found, data = self._get(path)
        except ObjectNotFound:
            return None
        if data not in (TOMBSTONE, LEAVING):
            return None
        return _Tombstone(_token(found), data == LEAVING, time.time() - found.meta["last_modified"].timestamp())

    def _announce_removal(self, path: str) -> bool:
        """Make a tombstone a leaving one; False when it is gone, or an object has taken its place."""
        found = self._tombstone(path)
        if found is None:
            return False
        try:
            self._write(path, LEAVING, {"e_tag": found.token.value}, "put_if_match")
        except (LostPrecondition, ObjectNotFound):
            return False
        return True

    def _is_tombstone(self, meta: Any) -> bool:
        """Whether an entry of a listing is one. Equal objects mostly have equal tags: then only the first is read."""
        if int(meta["size"]) != len(TOMBSTONE):
            return False
        if self._local:
            return _holds_tombstone(Path(self.root.path, str(meta["path"])))
        if meta["e_tag"] not in self._tombstone_tags:
            found = self._tombstone(str(meta["path"]))
            if found is None:
                return False
            self._tombstone_tags.add(found.token.value)
        return True

    def _drop_strange_tombstone(self, path: str) -> bool:
        """Remove a tombstone from a local disk, where none is ever made: it came with a copy of an object store."""
        place = Path(self.root.path, path)
        with exclusive(self._lock_file(path)):
            if not _holds_tombstone(place):
                return False
            place.unlink()
        return True

    def _read(self, path: str, read: Callable[[str], bytes] = read_file) -> bytes:
        # Without a lock: a put renames a whole file into place, so what is opened is one whole object. And without the
        # library, whose threads cost more than the file does: a small write reads several of these.
        try:
            return read(f"{self.root.path}/{path}")
        except (IsADirectoryError, NotADirectoryError):
            raise FileNotFoundError(path) from None

    def _store(self) -> Any:
        if self._opened is None:
            self._opened = open_backend(self.root)
        return self._opened

    def _there(self) -> bool:
        """Whether the root can be looked into: a local directory that is missing holds no objects."""
        return not self._local or Path(self.root.path).is_dir()

    def _lock_file(self, path: str) -> Path:
        number = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=2).digest()) % _LOCK_FILES
        return Path(self.root.path, OS_LOCK_DIRECTORY, f"objects-{number:02d}")

    def _shown(self, path: str) -> str:
        return f"{self.root.uri.rstrip('/')}/{path}"

    def _called(self, name: str) -> None:
        if self.on_call is not None:
            self.on_call(name)


def _local_list(root: Path, prefix: str) -> list[ObjectInfo]:
    """The objects below a directory, sorted. One look at a directory: every write lists one that is mostly empty."""
    found: list[ObjectInfo] = []
    pending = [root / prefix if prefix else root]
    while pending:
        directory = pending.pop()
        try:
            entries = list(os.scandir(directory))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            if entry.is_dir():
                pending.append(Path(entry.path))
                continue
            path = Path(entry.path).relative_to(root).as_posix()
            if is_temporary(entry.name) or _is_lock_file(path):
                continue
            with contextlib.suppress(FileNotFoundError):
                about = entry.stat()
                if about.st_size == len(TOMBSTONE) and _holds_tombstone(Path(entry.path)):
                    continue
                found.append(ObjectInfo(path, about.st_size, datetime.fromtimestamp(about.st_mtime, UTC)))
    return sorted(found, key=lambda entry: entry.path)


def _holds_tombstone(place: Path) -> bool:
    try:
        return place.read_bytes() in (TOMBSTONE, LEAVING)
    except OSError:
        return False


def _is_older(path: Path, seconds: float) -> bool:
    """Whether a file is that old; False when it is gone: whoever was writing it has renamed it into place."""
    try:
        return time.time() - path.stat().st_mtime > seconds
    except FileNotFoundError:
        return False


def _token(found: Any) -> Token:
    return Token(str(found.meta["e_tag"]))


def _is_lock_file(path: str) -> bool:
    return path.startswith(f"{OS_LOCK_DIRECTORY}/")


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
