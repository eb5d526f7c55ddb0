"""Which files of a table no version of any of its lines refers to: what crashed or abandoned writes left.

File names are unique across the lines of a table (a fork refers to its parent's files by the same names), so names are
compared and not paths. Manifests and references are never judged here.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.values import TableVersion

_DATA = "data"
_DELETIONS = "_deletions"
_INDEXES = "_indices"
_TRANSACTIONS = "_transactions"


def referenced_names(handles: Handles, versions: Iterable[TableVersion]) -> frozenset[tuple[str, str]]:
    """The (directory, name) pairs of data files, deletion vectors and indexes that these versions use."""
    used: set[tuple[str, str]] = set()
    for table in versions:
        handle = handles.at(table)
        with lance_errors("reading the files of", table):
            for fragment in handle.get_fragments():
                metadata = fragment.metadata
                used.update((_DATA, str(file.path).removesuffix(".lance")) for file in metadata.files)
                if metadata.deletion_file is not None:
                    path = str(metadata.deletion_file.path(fragment.fragment_id))
                    used.add((_DELETIONS, path.rsplit("/", 1)[-1]))
            for index in handle.describe_indices():
                used.update((_INDEXES, str(segment.uuid)) for segment in index.segments)
    return frozenset(used)


def name_of(path: str, location: str) -> tuple[str | None, str, str] | None:
    """The line, directory and name of a file below a table; None for files that are not judged by name."""
    below = path.removeprefix(f"{location}/").split("/")
    line: str | None = None
    if below[0] == "tree" and len(below) > 2:
        line, below = below[1], below[2:]
    if len(below) < 2:
        return None
    directory, name = below[0], below[1]
    if directory == _DATA:
        return line, directory, name.removesuffix(".lance")
    if directory in (_DELETIONS, _INDEXES, _TRANSACTIONS):
        return line, directory, name
    return None


def is_needed(named: tuple[str | None, str, str], used: frozenset[tuple[str, str]], oldest: int | None) -> bool:
    """Whether a file is used. The transaction of a version was read at the version before it: those below go."""
    _, directory, name = named
    if directory != _TRANSACTIONS:
        return (directory, name) in used
    read_version = name.split("-", 1)[0]
    return oldest is None or not read_version.isdigit() or int(read_version) + 1 >= oldest
