"""Data files that attempts at a distributed write left behind: a killed task cannot say what it had written."""

from __future__ import annotations

from datetime import datetime

from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.staging.staged_files import line_directory
from omnigraph.storage.values import TableVersion


def recent_files(handles: Handles, line: TableVersion, since: datetime) -> list[str]:
    """The data files of a table's line that were written at or after `since`, below the graph's root."""
    prefix = f"{line_directory(line)}/data/"
    return [entry.path for entry in open_objects(handles.root).list(prefix) if entry.modified >= since]


def unreferenced(handles: Handles, line: TableVersion, paths: list[str]) -> list[str]:
    """Of these files those that no version of the line refers to, from `line` to its newest one."""
    used: set[str] = set()
    newest = int(handles.newest(line.location, line.branch).version)
    for version in range(line.version, newest + 1):
        with lance_errors("reading the fragments of", line):
            for fragment in handles.at(line.at(version)).get_fragments():
                for file in fragment.metadata.files:
                    used.add(str(file.path).removesuffix(".lance"))
    return [path for path in paths if not any(name in used for name in _names(path))]


def remove_files(handles: Handles, paths: list[str]) -> int:
    """Remove files; how many went."""
    objects = open_objects(handles.root)
    for path in paths:
        objects.delete(path)
    return len(paths)


def _names(path: str) -> tuple[str, ...]:
    """What a fragment would call the file: its own name, or, for a blob beside it, that of its directory."""
    below = path.split("/data/", 1)[1]
    return (below.removesuffix(".lance"), below.split("/", 1)[0])
