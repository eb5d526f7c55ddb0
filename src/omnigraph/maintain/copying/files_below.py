"""Which files below a graph's root belong to a cut.

A line's data, deletion vectors and indexes never change and are taken as they are, with what a writer may be staging
there: nothing refers to that. Of its versions and transactions only those up to the cut are taken. So what a writer has
staged and given up again can be gone before it is copied, and nobody misses it; what a version names must be there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from omnigraph.ledger.graph_choices import CHOICES
from omnigraph.ledger.history.rebuild_log import LOST
from omnigraph.ledger.history.recorded_files import RELOCATED
from omnigraph.ledger.layout import EDGES, NODES, REFS
from omnigraph.maintain.copying.cut import Cut, Line
from omnigraph.maintain.survey.inventory import locations
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.objects.objects import ObjectInfo
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

_LARGEST = 2**64 - 1


def files_of(store: GraphStore, cut: Cut) -> list[ObjectInfo]:
    """Every file of the cut but for references to branches and tags, and the log, which are made anew."""
    found = list(_root_files(store))
    tables = locations(store)
    for location in sorted({location for location, _ in cut.lines}):
        lines = _with_parents(store, location, cut.lines)
        found += [file for file in tables.get(location, ()) if _belongs(file.path, location, lines)]
    return found


def are_missed(store: GraphStore, cut: Cut, files: Collection[ObjectInfo], gone: Collection[str]) -> bool:
    """Whether one of the files that have vanished from the source belongs to a version of the cut, or may do so.

    Otherwise it was staged by a writer that lost a race, or came to other rows than when it was prepared ahead. Every
    version is looked into for that, which is only done when something has vanished.
    """
    for location in sorted({location for location, _ in cut.lines}):
        lines = _with_parents(store, location, cut.lines)
        lost = {_given_up(path, location, lines) for path in gone if path.startswith(f"{location}/")}
        if None in lost:
            return True
        try:
            versions = _versions_in(files, location, lines) if lost else ()
            if any(not lost.isdisjoint(store.tables.files.names(version)) for version in versions):
                return True
        except TableNotFound:
            # Cleanup is at work: a version has gone, and these may be its files.
            return True
    return False


def is_version(path: str) -> bool:
    """Whether a file says that a version, or a line, exists: it must go when that is gone."""
    return "/_versions/" in path or "/_refs/branches/" in path


def _root_files(store: GraphStore) -> Iterable[ObjectInfo]:
    """Schemas, choices and the like. What begins with two underscores belongs to work in progress."""
    for name in store.objects.names():
        if not name.startswith(("__", REFS)) and not name.endswith(".lance") and name not in (NODES, EDGES):
            info = store.objects.head(name)
            yield from [info] if info is not None else store.objects.list(name)
    yield from (info for path in (LOST, RELOCATED, CHOICES) if (info := store.objects.head(path)) is not None)


def _with_parents(store: GraphStore, location: str, cut: Mapping[Line, int]) -> dict[str | None, int]:
    """The lines of a table that belong to the cut, with those that they share files with."""
    lines = {line: version for (place, line), version in cut.items() if place == location}
    forks = {fork.name: fork for fork in store.tables.list_forks(location)}
    pending = list(lines)
    while pending:
        fork = forks.get(pending.pop() or "")
        if fork is not None:
            if fork.parent_branch not in lines:
                pending.append(fork.parent_branch)
            lines[fork.parent_branch] = max(fork.parent_version, lines.get(fork.parent_branch, 0))
    lines.setdefault(None, 0)
    return lines


def _belongs(path: str, location: str, lines: Mapping[str | None, int]) -> bool:
    below = path.removeprefix(f"{location}/")
    if below.startswith("_refs/branches/"):
        return unquote(below.removeprefix("_refs/branches/").removesuffix(".json")) in lines
    found = _in_line(path, location, lines)
    if found is None:
        return False
    line, directory, name = found
    if name.rpartition("/")[2].startswith("."):
        # Lance writes a file under such a name and gives it its own when it is whole.
        return False
    if directory == "_versions":
        version = _version(name)
        return version is not None and version <= lines[line]
    if directory == "_transactions":
        read, _, _ = name.partition("-")
        return not read.isdigit() or int(read) < lines[line]
    return True


def _in_line(path: str, location: str, lines: Collection[str | None]) -> tuple[str | None, str, str] | None:
    """The line that a file of a table belongs to, its directory there, and its name below that; None for another line
    than these."""
    below = path.removeprefix(f"{location}/")
    line: str | None = None
    if below.startswith("tree/"):
        below = below.removeprefix("tree/")
        owners = [name for name in lines if name is not None and below.startswith(f"{name}/")]
        if not owners:
            return None
        line = max(owners, key=len)
        below = below.removeprefix(f"{line}/")
    directory, _, name = below.partition("/")
    return line, directory, name


def _versions_in(files: Iterable[ObjectInfo], location: str, lines: Collection[str | None]) -> Iterator[TableVersion]:
    """The versions of a table that are among some files."""
    for file in files:
        found = _in_line(file.path, location, lines) if file.path.startswith(f"{location}/") else None
        if found is not None and found[1] == "_versions" and (version := _version(found[2])) is not None:
            yield TableVersion(location, found[0], version)


def _given_up(path: str, location: str, lines: Collection[str | None]) -> str | None:
    """The name by which a version would know a file of a kind that writers give up; None for other files."""
    found = _in_line(path, location, lines)
    if found is None or found[1] not in ("data", "_indices"):
        return None
    # The blobs beside a data file, and the files of an index, lie in a directory of that name.
    return found[2].partition("/")[0].removesuffix(".lance")


def _version(name: str) -> int | None:
    """The version that a file describes; None for a hint at the newest one, which is another in the copy."""
    number = name.removesuffix(".manifest")
    if number == name or not number.isdigit():
        return None
    return _LARGEST - int(number) if int(number) >= 2**63 else int(number)
