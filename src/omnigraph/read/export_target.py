"""Where an export may go: nothing that is there is replaced unless the caller says so."""

from __future__ import annotations

import os

from omnigraph.errors import BadRequest, Conflict
from omnigraph.storage.objects import open_objects
from omnigraph.storage.uri import Root, Scheme, parse_root


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


def _has_entries(path: str) -> bool:
    return os.path.isdir(path) and any(os.scandir(path))


def _occupied(path: str) -> Conflict:
    return Conflict(f"export: there is something at {path} already; choose another path, or overwrite it (--overwrite)")
