"""Writing down where a moved graph lies now.

A moved graph works without this. But versions that were written elsewhere still name that place: comparing two of them
costs more, and programs that read the tables by themselves, without OmniGraph, would look there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.errors import OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.history.held_history import history_held
from omnigraph.ledger.history.recorded_files import note_relocated, recorded_files
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.maintain.survey.inventory import locations
from omnigraph.storage.handles.manifest_files import relocated
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.published_files import checksum_of

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("relocate.noted", "The checksums of relocated files are kept; no file is rewritten")
declare("relocate.file", "One more file is rewritten")


@dataclass(frozen=True, slots=True)
class RelocateReport:
    """How many versions of forks named another place, in how many tables; `damaged` files were left as they are."""

    preview: bool
    versions: int
    tables: int
    damaged: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "damaged": list(self.damaged)}


@dataclass(frozen=True, slots=True)
class _Misplaced:
    """A file that names another place, of a table: what it says, and what it should say."""

    path: str
    location: str
    data: bytes
    changed: bytes


def relocate(store: GraphStore, *, confirm: bool = False) -> RelocateReport:
    """Make every version name the place where the graph lies; without `confirm`, only tell how many do not."""
    if confirm:
        store.refuse_if_read_only("relocate")
    recorded = recorded_files(store)
    damaged: list[str] = []
    found: dict[str, _Misplaced] = {}
    for one in _misplaced(store, damaged):
        if one.path in recorded and checksum_of(one.data) not in recorded[one.path].split():
            damaged.append(one.path)
        else:
            found[one.path] = one
    if confirm and found:
        note_relocated(store.objects, {p: checksum_of(one.changed) for p, one in found.items() if p in recorded})
        failpoint("relocate.noted")
        for one in found.values():
            _rewrite(store, one)
        store.tables.forget_misplaced()
    return RelocateReport(not confirm, len(found), len({one.location for one in found.values()}), tuple(damaged))


def _misplaced(store: GraphStore, damaged: list[str]) -> Iterator[_Misplaced]:
    """The files that name another place."""
    for location in sorted({MANIFEST, *locations(store)}):
        if not store.tables.exists(location):
            continue
        for fork in store.tables.list_forks(location):
            uri = store.root.child(f"{location}/tree/{fork.name}")
            for entry in store.objects.list(f"{location}/tree/{fork.name}/_versions"):
                if not entry.path.endswith(".manifest"):
                    continue
                try:
                    data, _ = store.objects.get(entry.path)
                    changed = relocated(data, uri, fork.name)
                except ObjectNotFound:
                    continue
                except (ValueError, IndexError, OmniGraphError):
                    damaged.append(entry.path)
                    continue
                if changed is not None:
                    yield _Misplaced(entry.path, location, data, changed)


def _rewrite(store: GraphStore, one: _Misplaced) -> None:
    """Replace one file, unless cleanup has removed it: a version that is gone must not come back."""
    with history_held(store, "relocate"):
        if store.objects.head(one.path) is not None:
            store.objects.put(one.path, one.changed)
    failpoint("relocate.file")
