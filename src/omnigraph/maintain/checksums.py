"""Every file that is there against the checksum that its commit recorded, for `verify --deep`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.config import settings
from omnigraph.errors import OmniGraphError
from omnigraph.ledger.history.recorded_files import recorded_files
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import BranchRef, Snapshot
from omnigraph.maintain.survey.inventory import locations
from omnigraph.storage.objects.object_errors import ObjectNotFound

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A file that is not what was published, and the branches and tables that show it now."""

    path: str
    why: str
    shown_by: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        shown = ", ".join(f"{table_key} on `{branch}`" for branch, table_key in self.shown_by)
        used = f"it is part of {shown}" if shown else "no branch that can be read shows it"
        return f"the file {self.path} {self.why}; {used}"


@dataclass(frozen=True, slots=True)
class FileReport:
    """How many files were compared, how many have no checksum, and those that differ."""

    checked: int
    unrecorded: int
    damaged: tuple[DamagedFile, ...]


def check_files(store: GraphStore, states: list[tuple[BranchRef, Snapshot]]) -> FileReport:
    """Compare every file of tables and manifest that is there with what was recorded for it."""
    recorded = recorded_files(store)
    there = [entry for files in locations(store).values() for entry in files if _counts(entry.path)]
    known = [entry.path for entry in there if entry.path in recorded]

    def differs(path: str) -> str | None:
        try:
            found = store.tables.files.checksum(path)
        except ObjectNotFound:
            # Cleanup was quicker.
            return None
        except OmniGraphError as error:
            return f"cannot be read ({error.message})"
        if found in recorded[path].split():
            return None
        return f"has the checksum {found} and was published with {recorded[path]}"

    with ThreadPoolExecutor(max(1, settings().maintenance_concurrency), "omnigraph-checksums") as pool:
        bad = [(path, why) for path, why in zip(known, pool.map(differs, known)) if why is not None]
    users = _users(store, states) if bad else {}
    # States before an index was built anew do without it for good: nothing of theirs is lost.
    told = [(path, why) for path, why in bad if path in users or "/_indices/" not in path]
    damaged = tuple(DamagedFile(path, why, tuple(users.get(path, ()))) for path, why in told)
    return FileReport(len(known), len(there) - len(known), damaged)


def _counts(path: str) -> bool:
    """Whether a file is one that commits record: data, deletion vectors, indexes, manifests."""
    recorded = ("data", "_deletions", "_indices", "_versions")
    return any(f"/{part}/" in path for part in recorded) and not path.endswith(".json")


def _users(store: GraphStore, states: list[tuple[BranchRef, Snapshot]]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for branch, snapshot in states:
        for key, pin in snapshot.tables.items():
            try:
                for path in store.tables.files.files(table_of(pin)):
                    found.setdefault(path, []).append((branch.name, key))
            except OmniGraphError:
                continue
    return found
