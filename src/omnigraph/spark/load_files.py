"""Input files that executors read themselves: on a disk that all of them see, or on an object store."""

from __future__ import annotations

import fnmatch
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.errors import NotFound
from omnigraph.storage.uri import parse_root
from omnigraph.write.decode.sources import (
    COMPRESSIONS,
    JSON_SUFFIXES,
    TABLE_SUFFIXES,
    decompressed,
    find_files,
)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file by its address. `name` is what violations call it."""

    name: str
    size: int
    bucket: str | None = None

    @property
    def suffix(self) -> str:
        """What kind of file it says it is: the extension without that of a compression."""
        suffixes = [suffix.lower() for suffix in Path(self.name).suffixes]
        while suffixes and suffixes[-1] in COMPRESSIONS:
            suffixes.pop()
        return suffixes[-1] if suffixes else ""

    def read(self, start: int, end: int) -> bytes:
        """Some of the raw bytes."""
        if self.bucket is None:
            with open(self.name, "rb") as file:
                file.seek(start)
                return file.read(end - start)
        if start >= min(end, self.size):
            return b""
        import obstore

        return bytes(obstore.get_range(_object_store(self.bucket), self._key, start=start, end=min(end, self.size)))

    def open(self, start: int = 0, end: int | None = None) -> Any:
        """The content from `start` to `end`; a whole file is decompressed by what it is."""
        if end is not None:
            return _Window(self, start, end)
        return decompressed(self.open_raw())

    def open_raw(self) -> Any:
        """The bytes as they are, seekable."""
        if self.bucket is None:
            return open(self.name, "rb")
        return io.BufferedReader(_Window(self, 0, self.size), 8 << 20)

    @property
    def _key(self) -> str:
        return self.name.split("://", 1)[1].partition("/")[2]


class _Window(io.RawIOBase):
    """Bytes `start` to `end` of a file, as a file."""

    def __init__(self, file: InputFile, start: int, end: int) -> None:
        self._file = file
        self._start = start
        self._end = end
        self._at = start
        self._local = open(file.name, "rb") if file.bucket is None else None  # noqa: SIM115 - closed with this

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
            data = self._file.read(self._at, self._at + wanted)
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


def input_files(data: Any) -> list[InputFile] | None:
    """The files that a path, a directory, a glob or several of them name; None when `data` is something else."""
    if isinstance(data, str | os.PathLike):
        return _named(os.fspath(data))
    if isinstance(data, list | tuple) and data and all(isinstance(item, str | os.PathLike) for item in data):
        return [file for item in data for file in _named(os.fspath(item))]
    return None


def _named(text: str) -> list[InputFile]:
    if text.startswith(("s3://", "s3a://")):
        return _objects(text)
    return [InputFile(str(file.path), file.path.stat().st_size) for file in find_files(text)]


def _objects(uri: str) -> list[InputFile]:
    """Objects by name, below a prefix, or matching a glob, sorted by name."""
    import obstore

    bucket, _, key = uri.split("://", 1)[1].partition("/")
    fixed = key.split("*")[0].split("?")[0].split("[")[0]
    pattern = key if fixed != key else None
    prefix = fixed if pattern is None else fixed.rpartition("/")[0]
    found: dict[str, int] = {}
    for batch in obstore.list(_object_store(bucket), prefix=prefix or None):
        for entry in _entries(batch):
            found[str(entry["path"])] = int(entry["size"])
    if pattern is None and not found:
        exact = _exact(bucket, key)
        found = {key: exact} if exact is not None else {}
    chosen = [
        InputFile(f"s3://{bucket}/{path}", size, bucket)
        for path, size in sorted(found.items())
        if (fnmatch.fnmatch(path, pattern) if pattern else path == key or _is_input(path))
    ]
    if not chosen:
        raise NotFound(f"no object matches {uri}")
    return chosen


def _exact(bucket: str, key: str) -> int | None:
    import obstore

    try:
        return int(obstore.head(_object_store(bucket), key)["size"])
    except FileNotFoundError:
        return None


def _entries(batch: Any) -> Iterable[Any]:
    return batch if isinstance(batch, list) else [batch]


def _is_input(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return not name.startswith((".", "_")) and InputFile(path, 0).suffix in (*JSON_SUFFIXES, *TABLE_SUFFIXES)


def _object_store(bucket: str) -> Any:
    from obstore.store import S3Store

    options = {
        name.removeprefix("aws_"): value for name, value in parse_root(f"s3://{bucket}").storage_options().items()
    }
    client = {"allow_http": True} if options.pop("allow_http", "").lower() in ("true", "1", "yes") else None
    return S3Store(bucket, config=options, client_options=client)
