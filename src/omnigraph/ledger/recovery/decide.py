"""What recovery does with a sidecar, as a pure function of the classes of its tables: all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.ledger.recovery.classify import TableClass, TableState
from omnigraph.ledger.recovery.sidecars import CONTENT_PRESERVING_KINDS
from omnigraph.ledger.values import WriterKind


class Action(StrEnum):
    """The ways a sidecar is resolved, or not."""

    DISCARD_ORPHAN = "discard_orphan"
    COMPLETE = "complete"
    ROLL_FORWARD = "roll_forward"
    PUBLISH_LANDED = "publish_landed"
    NOTHING_LANDED = "nothing_landed"
    ROLL_BACK = "roll_back"
    REFUSE = "refuse"
    INVARIANT_BROKEN = "invariant_broken"


@dataclass(frozen=True, slots=True)
class Decision:
    """The action, and the tables that it publishes."""

    action: Action
    states: tuple[TableState, ...]
    publish: tuple[TableState, ...] = ()

    @property
    def restores(self) -> tuple[TableState, ...]:
        """The tables that have to be restored to their pin: only under the window, never in a heal."""
        return tuple(s for s in self.publish if s.needs_restore) if self.action is Action.ROLL_BACK else ()

    @property
    def blocks(self) -> bool:
        """Whether the sidecar stays, for a person."""
        return self.action in (Action.REFUSE, Action.INVARIANT_BROKEN)


def decide(
    kind: WriterKind,
    states: Sequence[TableState],
    *,
    branch_exists: bool,
    commit_published: bool,
    base_holds: bool,
) -> Decision:
    """Choose the action.

    `branch_exists`: the sidecar's branch incarnation is in the list of refs. `commit_published`: the history has the
    sidecar's commit. `base_holds`: the schema and every table that the write only read are still as it saw them; if
    not, publishing it now could break what it had validated, so it is rolled back.
    """
    found = tuple(states)
    if not branch_exists:
        return Decision(Action.DISCARD_ORPHAN, found)
    if commit_published:
        return Decision(Action.COMPLETE, found)
    classes = [state.table_class for state in found]
    if TableClass.INVARIANT_VIOLATION in classes:
        return Decision(Action.INVARIANT_BROKEN, found)
    if kind in CONTENT_PRESERVING_KINDS:
        return _decide_per_table(found)
    if TableClass.UNEXPECTED in classes:
        return Decision(Action.REFUSE, found)
    if not found or all(c is TableClass.NO_MOVEMENT for c in classes):
        return Decision(Action.NOTHING_LANDED, found)
    if all(c is TableClass.ALREADY_PUBLISHED for c in classes):
        return Decision(Action.COMPLETE, found)
    if base_holds and all(c is TableClass.ROLLED_PAST_EXPECTED for c in classes):
        return Decision(Action.ROLL_FORWARD, found, found)
    return Decision(Action.ROLL_BACK, found, tuple(s for s in found if s.drifted))


def _decide_per_table(found: tuple[TableState, ...]) -> Decision:
    """Content did not change, so what landed is published and the rest is forgotten, whatever the other tables did.

    A table with somebody else's commit above its pin is forgotten too: without a sidecar over it, it is drift that the
    next write reports and `repair` resolves.
    """
    landed = tuple(s for s in found if s.table_class is TableClass.ROLLED_PAST_EXPECTED)
    if landed:
        return Decision(Action.PUBLISH_LANDED, found, landed)
    if found and any(s.table_class is TableClass.ALREADY_PUBLISHED for s in found):
        return Decision(Action.COMPLETE, found)
    return Decision(Action.NOTHING_LANDED, found)
