"""Where an export may go: nothing that is there is replaced unless the caller says so, and then all of it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from omnigraph.errors import BadRequest, Conflict
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import Root, Scheme, parse_root

_FOLDER = re.compile(r"(?:node|edge)-[^/]+")
_PART = re.compile(r"[^/]+/part-\d{5,}\.(?:jsonl|parquet)")


def refuse_occupied(path: str, *, as_file: bool, overwrite: bool) -> None:
    """Refuse a target that cannot take the export: JSON lines go to a file, everything else to a directory."""
    if path == "-":
        return
    scheme, separator, _ = path.partition("://")
    if separator and scheme.lower() not in ("file", "s3", "s3a", "memory"):
        raise BadRequest(f"export: {path}: files are written to a local path, file:// or s3://, not to {scheme}://")
    root = parse_root(path)
    if root.scheme is not Scheme.LOCAL:
        # An object of that name, or anything below it.
        directory, _, name = root.path.rpartition("/")
        parent = Root(root.scheme, directory) if directory else root
        if not overwrite and open_objects(parent).exists(name if directory else ""):
            raise _occupied(path)
        return
    if as_file and os.path.isdir(root.path):
        raise BadRequest(
            f"export: {path} is a directory; name the file that takes the JSON lines, such as {path}/graph.jsonl"
        )
    if not as_file and os.path.exists(root.path) and not os.path.isdir(root.path):
        raise BadRequest(f"export: {path} is a file, and this export writes a directory; choose another path")
    if not overwrite and (os.path.isfile(root.path) or _has_entries(root.path)):
        raise _occupied(path)


@contextmanager
def replacing_parts(path: str, parts: Collection[str]) -> Iterator[None]:
    """The parts of an export that are written below a directory or prefix in this block are all that stay there.

    A part of an earlier export would be loaded back with them: rows that are gone, or twice. Of an export that fails
    nothing stays but what stands in the place of an earlier part.
    """
    earlier = _parts_below(path)
    try:
        yield
    except BaseException:
        _remove(set(parts) - earlier)
        raise
    _remove(earlier - set(parts))


def _parts_below(path: str) -> set[str]:
    objects = open_objects(parse_root(path))
    folders = [name for name in objects.names() if _FOLDER.fullmatch(name)]
    found = (entry.path for folder in folders for entry in objects.list(folder))
    return {f"{path.rstrip('/')}/{name}" for name in found if _PART.fullmatch(name)}


def _remove(parts: Collection[str]) -> None:
    for part in sorted(parts):
        directory, _, name = part.rpartition("/")
        root = parse_root(directory)
        if root.scheme is not Scheme.LOCAL:
            open_objects(root).delete(name)
            continue
        with suppress(FileNotFoundError, NotADirectoryError):
            Path(root.path, name).unlink()
        with suppress(OSError):  # others are left
            Path(root.path).rmdir()


def _has_entries(path: str) -> bool:
    return os.path.isdir(path) and any(os.scandir(path))


def _occupied(path: str) -> Conflict:
    return Conflict(f"export: there is something at {path} already; choose another path, or overwrite it (--overwrite)")
