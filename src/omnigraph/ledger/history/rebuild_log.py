"""Making the commit log anew when it is damaged or gone: it is derived, so this is never a reason to stop writing.

Every head that was ever published is in a version of the manifest, with its commit and its pins; those of versions that
`cleanup` removed, and of lines that are gone, are only in the log, so what can still be read of the damaged one is
taken over too. The damaged log is set aside first. What is lost all the same is said, and written down, so that
`verify` does not complain of it for ever.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import orjson
import pyarrow as pa
from ulid import ULID

from omnigraph.config import settings
from omnigraph.errors import OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.history.log_rows import (
    ID,
    LOG,
    SCHEMA,
    LogDamaged,
    LogEntry,
    commit_of_row,
    in_todays_columns,
    log_damaged,
    row_of,
)
from omnigraph.ledger.manifest.manifest_rows import MANIFEST, files_of
from omnigraph.ledger.manifest.pins import Pins, decode_files, decode_pins
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import GraphCommit
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.values import TableVersion

SET_ASIDE = "__set_aside/logs"
LOST = "__set_aside/lost_commits.json"
REBUILD_LEASE = "rebuild-log"

Known = tuple[GraphCommit, Pins | None, Mapping[str, str]]
"""A commit, its pins and the checksums of its files."""

_logger = logging.getLogger("omnigraph.ledger")

declare("rebuild_log.read", "Everything that can be told of the history is read; the damaged log is in its place")
declare("rebuild_log.set_aside", "The damaged log is set aside; there is no log")


@dataclass(frozen=True, slots=True)
class RebuiltLog:
    """What the new log holds, where the damaged one is, and what could not be recovered: the ids of commits that others
    name as parents, and how many commits have no pins any more."""

    commits: int
    from_manifest: int
    from_old_log: int
    lost: tuple[str, ...]
    without_pins: int
    set_aside: str | None

    def to_json(self) -> dict[str, object]:
        """Plain JSON data."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        kept = f"; the damaged one is kept at {self.set_aside}" if self.set_aside else ""
        lost = f" {len(self.lost)} commits could not be recovered ({', '.join(self.lost[:3])})." if self.lost else ""
        return (
            f"the commit log was rebuilt: {self.commits} commits, {self.from_manifest} of them from the manifest and "
            f"{self.from_old_log} from what could be read of the old log{kept}.{lost}"
        )


def ensure_log(store: GraphParts, *, deep: bool = False) -> RebuiltLog | None:
    """Rebuild the log if it is damaged or gone; what was done. `deep` reads all of it instead of its tail, and looks
    whether it has every commit that another one names as its parent."""
    try:
        _check(store, deep)
        return None
    except LogDamaged as damage:
        _logger.error("%s", damage.message)
    with store.leases.acquire(REBUILD_LEASE, "rebuild of the commit log", wait=settings().lease_wait_seconds):
        try:
            # Somebody else may have been quicker.
            store.commits.forget()
            _check(store, deep)
            return None
        except LogDamaged:
            return _rebuild(store)


def _check(store: GraphParts, deep: bool) -> None:
    store.commits.check(deep=deep)
    if not deep:
        return
    graph = store.commits.graph()
    parents = {parent for commit in graph for parent in (commit.parent_commit_id, commit.merged_parent_commit_id)}
    holes = sorted(one for one in parents if one is not None and one not in graph)
    known = lost_commits(store) if holes else frozenset()
    holes = [one for one in holes if one not in known]
    if holes:
        raise log_damaged(f"it lacks {len(holes)} commits that others name as parents: {', '.join(holes[:3])}")


def lost_commits(store: GraphParts) -> frozenset[str]:
    """The commits that an earlier rebuild could not recover."""
    try:
        return frozenset(orjson.loads(store.objects.get(LOST)[0]))
    except (ObjectNotFound, ValueError):
        return frozenset()


def note_lost(store: GraphParts, commit_ids: Iterable[str]) -> None:
    """Remember commits that others name as parents and that nobody has any more."""
    lost = frozenset(commit_ids)
    if lost:
        store.objects.put(LOST, orjson.dumps(sorted(lost_commits(store) | lost)))


def _rebuild(store: GraphParts) -> RebuiltLog:
    salvaged = _salvage(store)
    published = dict(_published(store))
    # The old log knows more files of a commit than its head row, which cannot hold the checksum of its own file.
    found = {**published, **{one: known for one, known in salvaged.items() if known[1] is not None}}
    found = {**salvaged, **found}
    ordered = _in_order([commit for commit, *_ in found.values()])
    parents = {parent for c in ordered for parent in (c.parent_commit_id, c.merged_parent_commit_id) if parent}
    lost = tuple(sorted(parents - found.keys()))
    failpoint("rebuild_log.read")
    aside = _set_aside(store)
    failpoint("rebuild_log.set_aside")
    note_lost(store, lost)
    depths: dict[str, int | None] = {}
    rows = []
    for commit in ordered:
        parent = commit.parent_commit_id or ""
        _, pins, files = found[commit.graph_commit_id]
        entry = LogEntry(commit, pins, found[parent][1] if parent in found else None, files)
        row = row_of(entry, depths.get(parent))
        depths[commit.graph_commit_id] = row["pins_depth"]
        rows.append(row)
    store.tables.create(LOG, SCHEMA, rows=pa.Table.from_pylist(rows, schema=SCHEMA))
    store.commits.forget()
    without = sum(1 for _, pins, _ in found.values() if pins is None)
    done = RebuiltLog(len(rows), len(published), len(found) - len(published), lost, without, aside)
    _logger.warning("%s", done)
    return done


def _in_order(commits: list[GraphCommit]) -> list[GraphCommit]:
    """Parents first, and as they came otherwise: what lies behind a gap in the history stays behind it."""
    by_id = {commit.graph_commit_id: commit for commit in commits}
    children: dict[str, list[GraphCommit]] = {}
    awaited: dict[str, int] = {}
    for commit in commits:
        known = {p for p in (commit.parent_commit_id, commit.merged_parent_commit_id) if p is not None and p in by_id}
        awaited[commit.graph_commit_id] = len(known)
        for parent in known:
            children.setdefault(parent, []).append(commit)
    ready = [(c.created_at, c.graph_commit_id) for c in commits if not awaited[c.graph_commit_id]]
    heapq.heapify(ready)
    ordered: list[GraphCommit] = []
    while ready:
        _, commit_id = heapq.heappop(ready)
        ordered.append(by_id[commit_id])
        for child in children.get(commit_id, ()):
            awaited[child.graph_commit_id] -= 1
            if not awaited[child.graph_commit_id]:
                heapq.heappush(ready, (child.created_at, child.graph_commit_id))
    return ordered


def _published(store: GraphParts) -> Iterator[tuple[str, Known]]:
    """Every commit that a version of the manifest holds, of lines of deleted branches too."""
    lines: list[str | None] = [None, *(fork.name for fork in store.tables.list_forks(MANIFEST))]
    for line in lines:
        try:
            versions = [info.version for info in store.tables.versions(MANIFEST, line)]
        except OmniGraphError as error:
            _logger.error("a line of the manifest cannot be read, its commits are lost: %s", error)
            continue
        for version in versions:
            try:
                state = store.manifest.read_line(line, version)
            except OmniGraphError as error:
                _logger.error("version %d of the manifest cannot be read, its commit is lost: %s", version, error)
                continue
            yield state.head.graph_commit_id, (state.head, state.tables, files_of(state.rows))


def _salvage(store: GraphParts) -> dict[str, Known]:
    """What can be read of the damaged log, and of those that were set aside earlier: fragment by fragment, version by
    version, the newest first."""
    rows: dict[str, dict[str, object]] = {}
    for location in _places(store):
        for version in _versions(store, location):
            whole = _take_fragments(store, TableVersion(location, None, version), rows)
            if whole:
                break
    found: dict[str, Known] = {}
    for commit_id in rows:
        _decode(rows, commit_id, found)
    return found


def _decode(rows: dict[str, dict[str, object]], commit_id: str, found: dict[str, Known]) -> None:
    """Take a row's commit over, with its pins when the rows that they build on are there too."""
    chain: list[str] = []
    current: object = commit_id
    while isinstance(current, str) and current in rows and current not in found:
        chain.append(current)
        if not rows[current]["pins_depth"]:
            break
        current = rows[current]["parent_commit_id"]
    for one in reversed(chain):
        row = rows[one]
        depth, parent = row["pins_depth"], str(row["parent_commit_id"])
        base = found[parent][1] if depth and parent in found else None
        pins: Pins | None = None
        if isinstance(row["pins"], bytes) and depth is not None and (depth == 0 or base is not None):
            pins = decode_pins(row["pins"], base)
        files = decode_files(row["pins"]) if isinstance(row["pins"], bytes) else {}
        found[one] = (commit_of_row(row), pins, files)


def _take_fragments(store: GraphParts, table: TableVersion, rows: dict[str, dict[str, object]]) -> bool:
    """Take over the rows of every fragment that reads; whether all did."""
    try:
        fragments = store.tables.fragments(table)
    except OmniGraphError:
        return False
    whole = True
    for fragment in fragments:
        try:
            found = store.tables.scan_table(table, fragments=[fragment.id])
            for row in in_todays_columns(found, SCHEMA.names).cast(SCHEMA).to_pylist():
                commit_of_row(row)
                rows.setdefault(row[ID], row)
        except (OmniGraphError, pa.ArrowException, ValueError, TypeError, KeyError):
            whole = False
    return whole


def _places(store: GraphParts) -> list[str]:
    """Where logs lie: in their place, and set aside."""
    aside = {"/".join(entry.path.split("/")[:4]) for entry in store.objects.list(SET_ASIDE)}
    return [LOG, *sorted(aside, reverse=True)]


def _versions(store: GraphParts, location: str) -> list[int]:
    """The versions of a log by the names of their files, newest first: Lance needs the newest one to list them."""
    names = [entry.path.rpartition("/")[2] for entry in store.objects.list(f"{location}/_versions")]
    numbers = [int(name.removesuffix(".manifest")) for name in names if name.removesuffix(".manifest").isdigit()]
    return sorted((2**64 - 1 - number for number in numbers), reverse=True)


def _set_aside(store: GraphParts) -> str | None:
    """Move the damaged log away, file by file; where it is. What cannot be read stays behind, and goes."""
    files = store.objects.list(LOG)
    if not files:
        return None
    place = f"{SET_ASIDE}/{ULID()}"
    for entry in files:
        try:
            store.objects.put(f"{place}/{entry.path}", store.objects.get(entry.path)[0])
        except OmniGraphError as error:
            _logger.error("a file of the damaged commit log could not be kept: %s", error)
    store.objects.delete_prefix(LOG)
    store.tables.forget(LOG)
    return f"{place}/{LOG}"
