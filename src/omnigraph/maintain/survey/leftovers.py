"""Files that nothing refers to: staged and abandoned, of tables that were never published, of types that are gone.

Only what is older than the grace period, and older than every live writer, is ever looked at: anything younger may be
about to be published.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from omnigraph.errors import OmniGraphError
from omnigraph.maintain.survey.inventory import TableInventory, versions_of
from omnigraph.maintain.survey.must_stay import Needs
from omnigraph.storage.clearing.unreferenced import is_needed, name_of, referenced_names
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.objects.objects import ObjectInfo
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

_LOOKS = 20
"""How often a fork may go while the files in use are listed."""


def is_abandoned(table: TableInventory, needs: Needs, before: float) -> bool:
    """Whether a whole table can go: no branch, no tag and no retained commit names it, and its last file is old."""
    newest = table.newest_file
    return not needs.needs_table(table.location) and newest is not None and newest < datetime.fromtimestamp(before, UTC)


def unreferenced_files(store: GraphStore, table: TableInventory, before: float) -> list[ObjectInfo]:
    """The files of a table that no version of any of its lines refers to and that are old enough. Reads versions only
    when there is a file that could be one."""
    cutoff = datetime.fromtimestamp(before, UTC)
    candidates = [
        (file, named)
        for file in table.files
        if file.modified < cutoff and (named := name_of(file.path, table.location)) is not None
    ]
    if not candidates:
        return []
    existing, used = _in_use(store, table)
    oldest: dict[str | None, int] = {}
    for version in existing:
        oldest[version.branch] = min(version.version, oldest.get(version.branch, version.version))
    return [file for file, named in candidates if named[0] in oldest and not is_needed(named, used, oldest[named[0]])]


def remove_files(store: GraphStore, files: list[ObjectInfo]) -> tuple[int, int, str | None]:
    """Remove files: how many, their bytes, and what went wrong."""
    removed = freed = 0
    try:
        for file in files:
            if store.objects.head(file.path) is None:
                continue
            store.objects.delete(file.path)
            removed += 1
            freed += file.size
    except (OmniGraphError, OSError) as error:
        return removed, freed, str(error)
    return removed, freed, None


def _in_use(store: GraphStore, table: TableInventory) -> tuple[list[TableVersion], frozenset[tuple[str, str]]]:
    """Every version and the names that they use; looked up again when a fork goes in the middle of it."""
    for _ in range(_LOOKS):
        existing = _versions_now(store, table)
        try:
            return existing, referenced_names(store.tables.handles, existing)
        except TableNotFound:
            continue
    existing = _versions_now(store, table)
    return existing, referenced_names(store.tables.handles, existing)


def _versions_now(store: GraphStore, table: TableInventory) -> list[TableVersion]:
    """Every version of every line, read afresh: what was committed meanwhile may refer to what was listed before."""
    lines: list[str | None] = [None, *(fork.name for fork in store.tables.list_forks(table.location))]
    return [
        TableVersion(table.location, line, version)
        for line in lines
        for version in versions_of(store, table.location, line) or ()
    ]
