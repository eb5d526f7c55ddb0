"""What lies below a graph's root: the tables, their lines, the versions of each, and every file with its age."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from omnigraph.ledger.history.log_rows import LOG
from omnigraph.ledger.layout import EDGES, NODES, RECOVERIES
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.objects.objects import ObjectInfo
from omnigraph.storage.values import ForkInfo

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

INTERNAL = (LOG, RECOVERIES)
"""The graph's own tables without branches: they prune their versions themselves."""


@dataclass(frozen=True, slots=True)
class TableInventory:
    """One table as it was found. `versions` by line (None: the main line); no line at all when it is no table (yet)."""

    location: str
    forks: Mapping[str, ForkInfo]
    versions: Mapping[str | None, tuple[int, ...]]
    files: tuple[ObjectInfo, ...]

    @property
    def is_table(self) -> bool:
        """Whether there is a table; otherwise it is what a writer left that died while making one."""
        return None in self.versions

    @property
    def newest_file(self) -> datetime | None:
        """When the last file was written."""
        return max((file.modified for file in self.files), default=None)

    @property
    def half_made(self) -> frozenset[str]:
        """Lines with files and without a reference: their maker died between the two.

        Forks of older programs have names with slashes; what lies beside such a fork is left alone.
        """
        prefix = f"{self.location}/tree/"
        names = {file.path[len(prefix) :].split("/", 1)[0] for file in self.files if file.path.startswith(prefix)}
        return frozenset(names - {name.split("/", 1)[0] for name in self.forks})


def locations(store: GraphStore) -> dict[str, list[ObjectInfo]]:
    """Every table's directory with its files; one listing for each of the graph's own directories."""
    found: dict[str, list[ObjectInfo]] = {}
    for kind in (NODES, EDGES):
        for entry in store.objects.list(kind):
            parts = entry.path.split("/")
            if len(parts) > 2:
                found.setdefault(f"{kind}/{parts[1]}", []).append(entry)
    for location in (MANIFEST, *INTERNAL):
        files = store.objects.list(location)
        if files:
            found[location] = files
    return found


def take(store: GraphStore, location: str, files: list[ObjectInfo]) -> TableInventory:
    """The inventory of one table."""
    if not store.tables.exists(location):
        return TableInventory(location, {}, {}, tuple(files))
    forks = {fork.name: fork for fork in store.tables.list_forks(location)}
    lines: list[str | None] = [None, *sorted(forks)]
    versions = {line: found for line in lines if (found := versions_of(store, location, line)) is not None}
    kept = {name: fork for name, fork in forks.items() if name in versions}
    return TableInventory(location, kept, versions, tuple(files))


def versions_of(store: GraphStore, location: str, line: str | None) -> tuple[int, ...] | None:
    """The versions of a line that was listed; None when it has been deleted since then."""
    try:
        return tuple(info.version for info in store.tables.versions(location, line))
    except TableNotFound:
        if line is None or any(fork.name == line for fork in store.tables.list_forks(location)):
            raise
        return None


def versions_by_name(store: GraphStore, location: str, line: str | None) -> list[int]:
    """The versions of a line by the names of their files, oldest first: one listing, no version is read."""
    base = f"{location}/tree/{line}" if line else location
    names = [entry.path.rpartition("/")[2] for entry in store.objects.list(f"{base}/_versions")]
    numbers = [int(name.removesuffix(".manifest")) for name in names if name.removesuffix(".manifest").isdigit()]
    # Lance counts versions down in names, so that the newest sorts first; graphs of older programs count up.
    return sorted(2**64 - 1 - number if number >= 2**63 else number for number in numbers)
