"""What an unfinished write did to one table, as a pure function of what can be read.

Ownership is proved by the operation id that every commit of a write carries in its transaction properties, never
guessed from version arithmetic. Commits that cannot carry it change no content and are neutral.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.ledger.recovery.sidecars import SidecarTable
from omnigraph.ledger.values import TablePin


class TableClass(StrEnum):
    """The six states a table of a sidecar can be found in."""

    NO_MOVEMENT = "NoMovement"
    ROLLED_PAST_EXPECTED = "RolledPastExpected"
    PARTIAL = "Partial"
    UNEXPECTED = "Unexpected"
    ALREADY_PUBLISHED = "AlreadyPublished"
    INVARIANT_VIOLATION = "InvariantViolation"


@dataclass(frozen=True, slots=True)
class LandedCommit:
    """One commit found on a table's line above the version the write was prepared on.

    `restores` is true for the commit by which recovery took a write back: it carries the write's operation id too.
    """

    version: int
    transaction: str | None
    operation_id: str | None
    restores: bool
    preserves_content: bool


@dataclass(frozen=True, slots=True)
class TableEvidence:
    """All that classification looks at: the pin published now, HEAD of the line (None: no such line), and the commits
    above the expected version, oldest first."""

    table: SidecarTable
    pin: TablePin | None
    head: int | None
    landed: tuple[LandedCommit, ...]


@dataclass(frozen=True, slots=True)
class TableState:
    """The class of one table, with what a recoverer needs in order to act on it.

    `needs_restore` is true when commits of the write are visible above the pin on the line that the manifest names.
    `drifted` is true when HEAD of that line is above the pin for whatever reason.
    """

    table: SidecarTable
    table_class: TableClass
    head: int | None
    pin: TablePin | None
    needs_restore: bool = False
    drifted: bool = False
    foreign_versions: tuple[int, ...] = ()


def classify(evidence: TableEvidence, operation_id: str, *, preserves_content: bool = False) -> TableState:
    """The state of one table of the sidecar of `operation_id`.

    `preserves_content` is for the writers that change no data (Optimize, EnsureIndices): any stretch of their commits
    is a valid result, and some of their commits carry no tag, so everything of theirs that landed counts as landed.
    """
    table, pin, head = evidence.table, evidence.pin, evidence.head
    on_line = pin is not None and pin.location == table.location and pin.lance_branch == table.lance_branch
    if on_line and pin is not None:
        floor = pin.version
        if head is None or head < floor:
            return TableState(table, TableClass.INVARIANT_VIOLATION, head, pin)
    else:
        # The write made this line for itself. If the manifest has moved on, nothing on the line can be published.
        if head is None or not table.builds_on(pin):
            return TableState(table, TableClass.NO_MOVEMENT, head, pin)
        floor = table.expected_version
        if head < floor:
            return TableState(table, TableClass.INVARIANT_VIOLATION, head, pin)

    def state(table_class: TableClass, *, needs_restore: bool = False, foreign: Sequence[int] = ()) -> TableState:
        return TableState(
            table, table_class, head, pin, needs_restore and on_line, on_line and head > floor, tuple(foreign)
        )

    above = [commit for commit in evidence.landed if commit.version > floor]
    foreign = [c.version for c in above if c.operation_id != operation_id and not c.preserves_content]
    if foreign:
        return state(TableClass.UNEXPECTED, foreign=foreign)
    if preserves_content:
        if above:
            return state(TableClass.ROLLED_PAST_EXPECTED)
        return state(TableClass.ALREADY_PUBLISHED if floor > table.expected_version else TableClass.NO_MOVEMENT)

    ours_above = [c for c in above if c.operation_id == operation_id]
    ours_below = [c for c in evidence.landed if c.version <= floor and c.operation_id == operation_id]
    if not ours_above:
        if not ours_below or _undone(ours_below):
            return state(TableClass.NO_MOVEMENT)
        return state(TableClass.ALREADY_PUBLISHED if _all_landed(table, ours_below) else TableClass.PARTIAL)
    if _undone(ours_above):
        return state(TableClass.PARTIAL)
    if not ours_below and _all_landed(table, ours_above):
        return state(TableClass.ROLLED_PAST_EXPECTED, needs_restore=True)
    return state(TableClass.PARTIAL, needs_restore=True)


def _undone(ours: Sequence[LandedCommit]) -> bool:
    """Whether the newest of our commits is the restore that took the others back."""
    return ours[-1].restores


def _all_landed(table: SidecarTable, ours: Sequence[LandedCommit]) -> bool:
    written = [c.transaction for c in ours if not c.restores]
    return len(written) == len(ours) and set(table.transactions) == set(written)
