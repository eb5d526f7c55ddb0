"""Verify: read everything and check it. Changes nothing; a read-only handle will do.

Each finding says which rule is broken, on which branch, in which table and, where there is one, for which row.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.config import settings
from omnigraph.errors import OmniGraphError
from omnigraph.ledger import snapshots
from omnigraph.ledger.branches.live_branches import is_live
from omnigraph.ledger.commit.window import lease_name
from omnigraph.ledger.history.acknowledged import lost_head
from omnigraph.ledger.history.complete_log import known_history
from omnigraph.ledger.history.rebuild_log import lost_commits
from omnigraph.ledger.manifest.manifest import OldLayout
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import MAIN, BranchRef, Snapshot, TablePin
from omnigraph.maintain.checksums import FileReport, check_files
from omnigraph.maintain.cleanup import oldest_protected
from omnigraph.maintain.survey import inventory, leftovers, orphan_forks
from omnigraph.maintain.survey.inventory import INTERNAL, TableInventory
from omnigraph.maintain.survey.must_stay import Needs, collect, read_heads
from omnigraph.maintain.survey.retention import Retention
from omnigraph.maintain.survey.unexplained_drift import drift_of_branch
from omnigraph.maintain.unreadable_indexes import unreadable_indexes
from omnigraph.schema.catalog import EdgeType

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

LOOKS, LOOK_SECONDS = 3, 0.15
"""How often, and how long after one another, what a writer at work shows too is looked at again."""

SHOWN_ROWS = 10
"""Findings about single rows that are listed for each rule and table; the rest is counted."""


class Rule(StrEnum):
    """What is checked."""

    PIN_OPENS = "pin opens"
    ROW_COUNT = "row count matches"
    UNIQUE_IDS = "ids are unique"
    ENDPOINTS = "endpoints exist"
    DRIFT = "newest version is published"
    LOGGED = "every manifest version has its commit"
    PARENTS = "every commit has its parents"
    ACKNOWLEDGED = "the newest acknowledged commit is shown"
    TAGS = "every tag has its commit"
    SIDECARS = "no unfinished write"
    LEFTOVERS = "nothing unreferenced is old"
    REFS = "every ref can be read"
    CHECKSUMS = "every file is as it was published"
    INDEXES = "every index can be read"


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule."""

    rule: Rule
    message: str
    branch: str | None = None
    table_key: str | None = None
    row_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, keys without a value left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was read and what was found; `files` when checksums were compared."""

    branches: int
    tables: int
    rows: int
    commits: int
    findings: tuple[Finding, ...]
    files: FileReport | None = None

    @property
    def ok(self) -> bool:
        """Whether every rule holds."""
        return not self.findings

    @property
    def exit_code(self) -> int:
        """0 when every rule holds, 1 otherwise."""
        return 0 if self.ok else 1

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        return {
            "ok": self.ok,
            "branches": self.branches,
            "tables": self.tables,
            "rows": self.rows,
            "commits": self.commits,
            **(
                {"files_checked": self.files.checked, "files_without_checksum": self.files.unrecorded}
                if self.files
                else {}
            ),
            "findings": [finding.to_json() for finding in self.findings],
        }


def verify(store: GraphStore, *, deep: bool = False) -> VerifyReport:
    """Check the whole graph and go on after each finding. Tables that several branches share are read once.

    `deep` also compares every file with the checksum that its commit recorded. Of a graph that has the layout of an
    older program only what its branches show is checked: it has no such log, and its first open for writing puts the
    rest in order.
    """
    found: list[Finding] = []
    checked = _Tables(store)
    branches = _branches(store, found)
    states: list[tuple[BranchRef, Snapshot]] = []
    for branch in branches:
        try:
            states.append((branch, snapshots.of_branch(store, branch)))
        except OmniGraphError as error:
            found.append(Finding(Rule.PIN_OPENS, f"the branch cannot be opened: {error.message}", branch.name))
    for branch, snapshot in states:
        found += checked.check(branch.name, snapshot)
    if store.is_old:
        found += _old_sidecars(store)
        return VerifyReport(len(branches), checked.tables, checked.rows, _commits(store), tuple(found))
    found += _tags(store, checked)
    found += [Finding(Rule.INDEXES, text, branch, key) for branch, key, text in unreadable_indexes(store, states)]
    passing = lasting(lambda: _passing(store, states, deep))
    found += _with_writers_named(store, states, passing)
    try:
        found += _leftovers(store)
    except OmniGraphError as error:
        found.append(Finding(Rule.LEFTOVERS, f"what is unreferenced cannot be told: {error.message}"))
    files = _files(store, states, found) if deep else None
    # What was found of a branch that was deleted in the middle of it is how a deletion looks.
    gone = {branch.name for branch in branches if not is_live(store, branch)}
    kept = tuple(finding for finding in found if finding.branch not in gone)
    return VerifyReport(len(branches), checked.tables, checked.rows, _commits(store), kept, files)


def _branches(store: GraphStore, found: list[Finding]) -> list[BranchRef]:
    """The branches whose refs can be read; the others are findings."""
    refs: list[BranchRef] = []
    for name in store.refs.names():
        try:
            ref = store.refs.get(name)
            refs += [ref] if ref is not None else []
        except OmniGraphError as error:
            found.append(Finding(Rule.REFS, f"the branch `{name}` cannot be told: {error.message}"))
    return refs


def _files(store: GraphStore, states: list[tuple[BranchRef, Snapshot]], found: list[Finding]) -> FileReport | None:
    try:
        report = check_files(store, states)
    except OmniGraphError as error:
        found.append(Finding(Rule.CHECKSUMS, f"files cannot be compared: {error.message}"))
        return None
    for file in report.damaged:
        branch, key = file.shown_by[0] if file.shown_by else (None, None)
        found.append(Finding(Rule.CHECKSUMS, str(file), branch, key))
    return report


def _commits(store: GraphStore) -> int:
    try:
        return len(store.commits.graph())
    except OmniGraphError:
        return 0


def lasting(look: Callable[[], list[Finding]]) -> list[Finding]:
    """What is found at every look. A writer between its commits, its publish and its log entry looks like damage, and
    a moment later it does not."""
    found = look()
    for _ in range(LOOKS):
        if not found:
            break
        time.sleep(LOOK_SECONDS)
        again = look()
        found = [finding for finding in found if finding in again]
    return found


def _passing(store: GraphStore, states: list[tuple[BranchRef, Snapshot]], deep: bool) -> list[Finding]:
    """What a writer at work shows too."""
    drift = [finding for branch, _ in states for finding in _drift(store, branch)]
    return [*drift, *_sidecars(store), *_history(store, states, deep)]


def _with_writers_named(
    store: GraphStore, states: list[tuple[BranchRef, Snapshot]], findings: list[Finding]
) -> list[Finding]:
    """The findings, with a word on those of branches on which somebody has been at work all the time."""
    held = {lease.name for lease in store.leases.list_live()} if findings else set()
    at_work = {branch.name for branch, _ in states if lease_name(branch) in held}
    hint = "; a writer is at work on the branch: look again when it is done"
    return [
        replace(finding, message=finding.message + hint) if finding.branch in at_work else finding
        for finding in findings
    ]


class _Tables:
    """The checks of tables, each version once."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self._ids: dict[tuple[str, str | None, int], pa.ChunkedArray | None] = {}
        self._findings: dict[tuple[str, str | None, int], list[tuple[Rule, str, str | None]]] = {}
        self.tables = 0
        self.rows = 0

    def check(self, branch: str | None, snapshot: Snapshot) -> list[Finding]:
        """Every table of one state."""
        found: list[Finding] = []
        for key, pin in snapshot.tables.items():
            self._read(pin)
            found += [Finding(rule, text, branch, key, row) for rule, text, row in self._findings[_place(pin)]]
        try:
            catalog = self._store.catalog(snapshot.schema_digest)
        except OmniGraphError as error:
            return [*found, Finding(Rule.PIN_OPENS, f"its schema cannot be read: {error.message}", branch)]
        for type_ in catalog.types():
            published = snapshot.tables.get(type_.table_key)
            if published is None:
                found.append(Finding(Rule.PIN_OPENS, "the schema has a type without a table", branch, type_.table_key))
            elif isinstance(type_, EdgeType) and self._ids.get(_place(published)) is not None:
                found += self._check_ends(branch, snapshot, type_, published)
        return found

    def _read(self, pin: TablePin) -> None:
        if _place(pin) in self._findings:
            return
        problems: list[tuple[Rule, str, str | None]] = []
        self._findings[_place(pin)] = problems
        self._ids[_place(pin)] = None
        table = table_of(pin)
        try:
            # Every column, so that a damaged data file shows; only the ids are kept.
            parts = [batch.column("id") for batch in self._store.tables.scan(table)]
        except (OmniGraphError, OSError, pa.ArrowException) as error:
            problems.append((Rule.PIN_OPENS, f"version {pin.version} cannot be read: {_short(error)}", None))
            return
        ids = pa.chunked_array(parts, pa.string())
        self._ids[_place(pin)] = ids
        self.tables += 1
        self.rows += len(ids)
        if len(ids) != pin.row_count:
            problems.append((Rule.ROW_COUNT, f"{pin.row_count} rows are published and {len(ids)} are there", None))
        if pc.count_distinct(ids, mode="all").as_py() != len(ids):
            counts = Counter(ids.to_pylist())
            twice = sorted(str(name) for name, number in counts.items() if number > 1)
            problems += [
                (Rule.UNIQUE_IDS, f"the id is there {counts[name]} times", name) for name in twice[:SHOWN_ROWS]
            ]
            if len(twice) > SHOWN_ROWS:
                problems.append((Rule.UNIQUE_IDS, f"{len(twice)} ids are there more than once", None))

    def _check_ends(self, branch: str | None, snapshot: Snapshot, type_: EdgeType, pin: TablePin) -> Iterable[Finding]:
        found: list[Finding] = []
        for column, node in (("src", type_.source), ("dst", type_.target)):
            end = snapshot.tables.get(f"node:{node}")
            known = self._ids.get(_place(end)) if end is not None else None
            if known is None:
                continue
            try:
                edges = self._store.tables.scan_table(table_of(pin), columns=["id", column])
            except (OmniGraphError, pa.ArrowException) as error:
                found.append(Finding(Rule.ENDPOINTS, f"cannot be read: {_short(error)}", branch, type_.table_key))
                continue
            missing = edges.filter(pc.invert(pc.is_in(edges[column], value_set=known.combine_chunks())))
            for row in missing.slice(0, SHOWN_ROWS).to_pylist():
                text = f"{column} is `{row[column]}` and there is no such {node}"
                found.append(Finding(Rule.ENDPOINTS, text, branch, type_.table_key, row["id"]))
            if missing.num_rows > SHOWN_ROWS:
                text = f"{missing.num_rows} edges have a {column} that is no {node}"
                found.append(Finding(Rule.ENDPOINTS, text, branch, type_.table_key))
        return found


def _drift(store: GraphStore, branch: BranchRef) -> list[Finding]:
    try:
        drifted = drift_of_branch(store, branch)
    except OmniGraphError as error:
        return [Finding(Rule.DRIFT, error.message, branch.name)]
    return [
        Finding(
            Rule.DRIFT,
            f"version {drift.pinned} is published and {drift.head} is there ({drift.verdict.value}: "
            f"{', '.join(drift.transactions)}); run `omnigraph repair`",
            branch.name,
            drift.table_key,
        )
        for drift in drifted
    ]


def _sidecars(store: GraphStore) -> list[Finding]:
    return [finding for one in store.sidecars.list() if (finding := _sidecar(store, one)) is not None]


def _sidecar(store: GraphStore, operation_id: str) -> Finding | None:
    try:
        stored = store.sidecars.get(operation_id)
    except OmniGraphError as error:
        return Finding(Rule.SIDECARS, error.message)
    if stored is None:
        return None
    text = f"the write {operation_id} is not finished; open the graph for writing, or run `omnigraph repair`"
    return Finding(Rule.SIDECARS, text, stored.sidecar.branch)


def _old_sidecars(store: GraphStore) -> list[Finding]:
    text = "an older program did not finish the write {}; open the graph for writing, which brings it up to date"
    return [Finding(Rule.SIDECARS, text.format(one)) for one in store.sidecars.list()]


def _tags(store: GraphStore, checked: _Tables) -> list[Finding]:
    found: list[Finding] = []
    for name in store.refs.tag_names():
        try:
            found += checked.check(f"tag {name}", store.snapshot(name))
        except OmniGraphError as error:
            found.append(Finding(Rule.TAGS, f"the tag `{name}` cannot be opened: {error.message}"))
    return found


def _history(store: GraphStore, states: list[tuple[BranchRef, Snapshot]], deep: bool) -> list[Finding]:
    """The log against the manifest's versions that still exist, and every commit against its parents.

    A version that the log names is read only when `deep`: history may be long, and what it shows is in no branch.
    """
    try:
        graph = store.commits.graph()
        for branch, _ in states:
            if branch.name == MAIN:
                # Small writes are logged after they were acknowledged: what `main` shows last may come a moment later.
                graph = known_history(store, store.manifest.read(branch))
    except OmniGraphError as error:
        return [Finding(Rule.LOGGED, error.message)]
    found: list[Finding] = []
    logged = {(commit.manifest_branch, commit.manifest_version) for commit in graph}
    for branch, _ in states:
        try:
            lost = lost_head(store, branch, store.manifest.read(branch))
            if lost is not None:
                found.append(Finding(Rule.ACKNOWLEDGED, f"{lost}; run `omnigraph repair`", branch.name))
            versions = inventory.versions_by_name(store, MANIFEST, branch.manifest_branch)
        except OmniGraphError as error:
            found.append(Finding(Rule.LOGGED, f"its manifest cannot be listed: {error.message}", branch.name))
            continue
        for version in versions:
            if not deep and (branch.manifest_branch, version) in logged:
                continue
            try:
                head = store.manifest.read(branch, version).head
            except OldLayout:
                # From before the graph was migrated: the log took in what it had of commits.
                continue
            except OmniGraphError as error:
                text = f"manifest version {version} cannot be read: {error.message}"
                found.append(Finding(Rule.LOGGED, text, branch.name))
                continue
            if graph.get(head.graph_commit_id) is None:
                text = f"manifest version {version} was published by {head.graph_commit_id}, which the log lacks"
                found.append(Finding(Rule.LOGGED, text, branch.name))
    known_lost = lost_commits(store)
    for commit in graph:
        found += [
            Finding(Rule.PARENTS, f"commit {commit.graph_commit_id} has the parent {parent}, which the log lacks")
            for parent in (commit.parent_commit_id, commit.merged_parent_commit_id)
            if parent is not None and parent not in graph and parent not in known_lost
        ]
    return found


def _leftovers(store: GraphStore) -> list[Finding]:
    """What cleanup would take because nothing refers to it, whatever the retention."""
    now = time.time()
    before = read_heads(store)
    found = [inventory.take(store, location, files) for location, files in inventory.locations(store).items()]
    needs = collect(store, before, Retention(older_than=now), now)
    cutoff = oldest_protected(needs, now)
    findings: list[Finding] = []
    for table in found:
        findings += _leftovers_of(store, table, needs, cutoff)
    return findings


def _leftovers_of(store: GraphStore, table: TableInventory, needs: Needs, cutoff: float) -> list[Finding]:
    key = needs.table_keys.get(table.location, table.location)
    if table.location not in INTERNAL and leftovers.is_abandoned(table, needs, cutoff):
        return [Finding(Rule.LEFTOVERS, f"nothing refers to the {len(table.files)} files of {table.location}")]
    if not table.is_table:
        return []
    found = [
        Finding(Rule.LEFTOVERS, f"the fork {name} belongs to no branch; run `omnigraph cleanup`", None, key)
        for name in (*orphan_forks.orphans(table, needs, cutoff), *orphan_forks.half_made(table, needs, cutoff))
    ]
    try:
        files = leftovers.unreferenced_files(store, table, cutoff)
    except OmniGraphError as error:
        return [*found, Finding(Rule.LEFTOVERS, f"its files cannot be told apart: {error.message}", None, key)]
    if files:
        text = (
            f"{len(files)} files that nothing refers to are older than {settings().cleanup_grace:g} s, such as "
            f"{files[0].path}; run `omnigraph cleanup`"
        )
        found.append(Finding(Rule.LEFTOVERS, text, None, key))
    return found


def _place(pin: TablePin) -> tuple[str, str | None, int]:
    return pin.location, pin.lance_branch, pin.version


def _short(error: Exception) -> str:
    return error.message if isinstance(error, OmniGraphError) else str(error).splitlines()[0]
