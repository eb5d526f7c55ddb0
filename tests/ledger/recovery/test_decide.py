"""The decision table of page 04, over every combination of classes."""

from __future__ import annotations

import itertools

import pytest

from omnigraph.ledger.recovery.classify import TableClass, TableState
from omnigraph.ledger.recovery.decide import Action, decide
from omnigraph.ledger.recovery.sidecars import CONTENT_PRESERVING_KINDS, SidecarTable
from omnigraph.ledger.values import WriterKind

DATA_WRITERS = [WriterKind.MUTATION, WriterKind.LOAD, WriterKind.SCHEMA_APPLY, WriterKind.BRANCH_MERGE]


def state(table_class: TableClass, number: int = 0, *, owned: bool = True) -> TableState:
    moved = table_class in (TableClass.PARTIAL, TableClass.ROLLED_PAST_EXPECTED)
    table = SidecarTable(f"node:T{number}", f"t{number}", f"nodes/t{number}", None, 5, None, ("tx",), 1)
    return TableState(table, table_class, 6, None, needs_restore=moved and owned, drifted=moved and owned)


def combinations() -> list[tuple[TableClass, ...]]:
    return [c for size in range(4) for c in itertools.product(TableClass, repeat=size)]


def action(kind: WriterKind, classes: tuple[TableClass, ...], **facts: bool) -> Action:
    given = {"branch_exists": True, "commit_published": False, "base_holds": True} | facts
    return decide(kind, [state(c, i) for i, c in enumerate(classes)], **given).action


def expected_for_data(classes: tuple[TableClass, ...]) -> Action:
    if TableClass.INVARIANT_VIOLATION in classes:
        return Action.INVARIANT_BROKEN
    if TableClass.UNEXPECTED in classes:
        return Action.REFUSE
    if set(classes) <= {TableClass.NO_MOVEMENT}:
        return Action.NOTHING_LANDED
    if set(classes) == {TableClass.ALREADY_PUBLISHED}:
        return Action.COMPLETE
    if set(classes) == {TableClass.ROLLED_PAST_EXPECTED}:
        return Action.ROLL_FORWARD
    return Action.ROLL_BACK


@pytest.mark.parametrize("kind", DATA_WRITERS)
def test_all_or_nothing_for_writers_of_data(kind: WriterKind) -> None:
    for classes in combinations():
        assert action(kind, classes) is expected_for_data(classes), classes


@pytest.mark.parametrize("kind", sorted(CONTENT_PRESERVING_KINDS))
def test_optimize_and_ensure_indices_decide_per_table(kind: WriterKind) -> None:
    for classes in combinations():
        states = [state(c, i) for i, c in enumerate(classes)]
        decision = decide(kind, states, branch_exists=True, commit_published=False, base_holds=False)
        landed = tuple(s for s in states if s.table_class is TableClass.ROLLED_PAST_EXPECTED)
        if TableClass.INVARIANT_VIOLATION in classes:
            assert decision.action is Action.INVARIANT_BROKEN
        elif landed:
            assert decision.action is Action.PUBLISH_LANDED
            assert decision.publish == landed
        elif TableClass.ALREADY_PUBLISHED in classes:
            assert decision.action is Action.COMPLETE
        else:
            assert decision.action is Action.NOTHING_LANDED
        assert decision.restores == ()


@pytest.mark.parametrize("kind", [*DATA_WRITERS, *sorted(CONTENT_PRESERVING_KINDS)])
def test_an_orphaned_branch_comes_before_everything(kind: WriterKind) -> None:
    for classes in combinations():
        for published in (True, False):
            assert action(kind, classes, branch_exists=False, commit_published=published) is Action.DISCARD_ORPHAN


@pytest.mark.parametrize("kind", [*DATA_WRITERS, *sorted(CONTENT_PRESERVING_KINDS)])
def test_a_published_commit_only_needs_its_traces_removed(kind: WriterKind) -> None:
    for classes in combinations():
        assert action(kind, classes, commit_published=True) is Action.COMPLETE


def test_a_write_whose_premises_moved_is_rolled_back_not_forward() -> None:
    classes = (TableClass.ROLLED_PAST_EXPECTED, TableClass.ROLLED_PAST_EXPECTED)
    assert action(WriterKind.MUTATION, classes, base_holds=False) is Action.ROLL_BACK


def test_roll_forward_publishes_every_table() -> None:
    states = [state(TableClass.ROLLED_PAST_EXPECTED, 0), state(TableClass.ROLLED_PAST_EXPECTED, 1, owned=False)]
    decision = decide(WriterKind.LOAD, states, branch_exists=True, commit_published=False, base_holds=True)
    assert decision.publish == tuple(states)
    assert decision.restores == ()


def test_roll_back_restores_moved_tables_and_leaves_forks_alone() -> None:
    owned, fork = state(TableClass.ROLLED_PAST_EXPECTED, 0), state(TableClass.PARTIAL, 1, owned=False)
    still = state(TableClass.NO_MOVEMENT, 2)
    decision = decide(
        WriterKind.LOAD, [owned, fork, still], branch_exists=True, commit_published=False, base_holds=True
    )
    assert decision.action is Action.ROLL_BACK
    assert decision.restores == (owned,)
    assert decision.publish == (owned,)


def test_only_refusals_keep_the_sidecar() -> None:
    for classes in combinations():
        states = [state(c, i) for i, c in enumerate(classes)]
        decision = decide(WriterKind.LOAD, states, branch_exists=True, commit_published=False, base_holds=True)
        assert decision.blocks == (decision.action in (Action.REFUSE, Action.INVARIANT_BROKEN))
