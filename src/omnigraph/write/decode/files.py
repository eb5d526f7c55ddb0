"""Files to load, on a local disk or on an object store: found by name, directory or glob, read whole or in parts.

A file is a plain value that pickles, so that a Spark task on another machine can read its part. It holds no
credentials: whoever reads takes them from the environment.
"""

from __future__ import annotations

import glob
import io
import os
import re
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from omnigraph.errors import BadRequest, NotFound, StorageError, StorageKind
from omnigraph.storage.objects.objects import ObjectStore, open_objects
from omnigraph.storage.uri import Root, Scheme, path_of_file_uri
from omnigraph.write.decode.sources import COMPRESSIONS, JSON_SUFFIXES, TABLE_SUFFIXES, decompressed

_OBJECT_SCHEMES = ("s3://", "s3a://")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_READ_AHEAD = 8 << 20
"""What one request to an object store brings: fewer would be slow, more would wait in memory for nothing."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file. `name` is what violations call it, as the caller wrote it.

    `path` is where it is: absolute on a local disk, since an executor works in another directory; the key of an object
    in `bucket` otherwise.
    """

    name: str
    size: int
    path: str
    bucket: str | None = None

    @property
    def suffix(self) -> str:
        """What kind of file it says it is: the extension without that of a compression."""
        return _suffix(self.name)

    def open(self, start: int = 0, end: int | None = None) -> Any:
        """The content from `start` to `end`; a whole file is decompressed by what it is, not by what it is called."""
        if end is not None:
            return _Window(self, start, end)
        return decompressed(self.open_raw())

    def open_raw(self) -> Any:
        """The bytes as they are, seekable."""
        if self.bucket is not None:
            return io.BufferedReader(_Window(self, 0, self.size), _READ_AHEAD)
        try:
            return open(self.path, "rb")
        except FileNotFoundError:
            raise NotFound(f"there is no file {self.name} to load") from None
        except OSError as error:
            raise StorageError(f"{self.name} cannot be read: {error.strerror}", StorageKind.PERMANENT) from error

    def read(self, start: int, end: int) -> bytes:
        """Some of the raw bytes."""
        with _Window(self, start, end) as window:
            return bytes(window.read())


class _Window(io.RawIOBase):
    """Bytes `start` to `end` of a file, as a file."""

    def __init__(self, file: InputFile, start: int, end: int) -> None:
        self._file = file
        self._start = start
        self._end = min(end, file.size)
        self._at = start
        self._local = open(file.path, "rb") if file.bucket is None else None  # noqa: SIM115 - closed with this

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: self._start, io.SEEK_CUR: self._at, io.SEEK_END: self._end}[whence]
        self._at = origin + offset
        return self._at - self._start

    def tell(self) -> int:
        return self._at - self._start

    def read(self, size: int = -1) -> bytes:
        left = max(self._end - self._at, 0)
        wanted = left if size < 0 else min(size, left)
        if not wanted:
            return b""
        if self._local is not None:
            self._local.seek(self._at)
            data = self._local.read(wanted)
        else:
            assert self._file.bucket is not None
            data = _bucket(self._file.bucket).get_range(self._file.path, self._at, self._at + wanted)
        self._at += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self._local is not None:
            self._local.close()
        super().close()


def find_files(data: str | os.PathLike[str]) -> list[InputFile]:
    """The files that a path, a directory or a glob names, sorted by name."""
    text = os.fspath(data)
    if text.startswith(_OBJECT_SCHEMES):
        return _objects(text)
    found = _local_files(_local_path(text))
    return [InputFile(str(path), path.stat().st_size, os.path.abspath(path)) for path in found]


def kept_file(file: InputFile, stack: ExitStack) -> InputFile:
    """The same file, or a copy of one that gives its content only once: a pipe, standard input, a device."""
    if file.bucket is not None or os.path.isfile(file.path):
        return file
    copy = stack.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115 - the stack closes it
    with file.open_raw() as stream:
        shutil.copyfileobj(stream, copy, 1 << 20)
    copy.flush()
    return replace(file, path=copy.name, size=os.path.getsize(copy.name))


def named_files(data: Any) -> list[InputFile] | None:
    """The files that a path or several of them name; None when `data` is something else."""
    if isinstance(data, str | os.PathLike):
        return find_files(data)
    if isinstance(data, list | tuple) and data and all(isinstance(item, str | os.PathLike) for item in data):
        return [file for item in data for file in find_files(item)]
    return None


# --- on a local disk -------------------------------------------------------------------------------------------------


def _local_files(text: str) -> list[Path]:
    if os.path.isdir(text):
        root = Path(text)
        every = sorted(Path(folder, name) for folder, _, names in os.walk(root) for name in names)
        found = [path for path in every if path.is_file() and _is_input(path.relative_to(root).parts)]
        if not found:
            raise BadRequest(f"the directory {text} holds nothing to load ({', '.join(JSON_SUFFIXES)})")
        return found
    if os.path.exists(text):
        return [Path(text)]
    if glob.has_magic(text) and "\n" not in text:
        matching = [Path(name) for name in sorted(glob.glob(text, recursive=True)) if os.path.isfile(name)]
        if not matching:
            raise NotFound(f"no file matches {text}")
        return matching
    if "\n" in text or text.lstrip().startswith(("{", "[")):
        raise BadRequest("the name of a file is needed here, and this is text to load; give it as bytes")
    raise NotFound(f"there is no file {text} to load")


def _local_path(text: str) -> str:
    scheme = _SCHEME.match(text)
    if scheme is None:
        return text
    if scheme[1].lower() == "file":
        return path_of_file_uri(text)
    raise BadRequest(
        f"{text}: files are loaded from a local path, file:// or s3://; read {scheme[1]}:// with Spark and load "
        "the frame"
    )


# --- on an object store ----------------------------------------------------------------------------------------------


def _objects(uri: str) -> list[InputFile]:
    bucket, _, key = uri.split("://", 1)[1].partition("/")
    store = _bucket(bucket)
    exact = store.head(key) if key and not key.endswith("/") else None
    if exact is None and glob.has_magic(key):
        fixed = re.split(r"[*?[]", key, maxsplit=1)[0].rpartition("/")[0]
        matches = re.compile(_as_pattern(key)).fullmatch
        found = [entry for entry in store.list(fixed) if matches(entry.path)]
        missing: Exception = NotFound(f"no object matches {uri}")
    else:
        below = PurePosixPath(key).parts
        found = (
            [exact]
            if exact is not None
            else [entry for entry in store.list(key) if _is_input(PurePosixPath(entry.path).parts[len(below) :])]
        )
        missing = NotFound(f"there is no object {uri}, and nothing below it to load ({', '.join(JSON_SUFFIXES)})")
    if not found:
        raise missing
    return [InputFile(f"s3://{bucket}/{entry.path}", entry.size, entry.path, bucket) for entry in found]


def read_object(uri: str) -> bytes:
    """The content of one object. Raises ObjectNotFound."""
    bucket, _, key = uri.split("://", 1)[-1].partition("/")
    return _bucket(bucket).get(key)[0]


def _as_pattern(wildcards: str) -> str:
    """A glob as a regular expression, as on a local disk: `*` stays within a directory, `**/` is any number of them."""
    parts = []
    for part in re.split(r"(\*\*/|\*\*|\*|\?|\[!?[^]]+\])", wildcards):
        match part:
            case "**/":
                parts.append("(?:.*/)?")
            case "**":
                parts.append(".*")
            case "*":
                parts.append("[^/]*")
            case "?":
                parts.append("[^/]")
            case _ if part.startswith("["):
                parts.append(part.replace("[!", "[^", 1))
            case _:
                parts.append(re.escape(part))
    return "".join(parts)


@cache
def _bucket(name: str) -> ObjectStore:
    return open_objects(Root(Scheme.S3, name))


def _is_input(parts: tuple[str, ...]) -> bool:
    """Whether a file in a directory is to be loaded: hidden ones, logs and markers are not."""
    if not parts or any(part.startswith((".", "_")) for part in parts):
        return False
    return _suffix(parts[-1]) in (*JSON_SUFFIXES, *TABLE_SUFFIXES)


def _suffix(name: str) -> str:
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    while suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
