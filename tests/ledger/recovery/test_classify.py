"""Classification of one table: every state that page 04 names, and what must not be guessed."""

from __future__ import annotations

import itertools

import pytest

from omnigraph.ledger.recovery.classify import LandedCommit, TableClass, TableEvidence, TableState, classify
from omnigraph.ledger.recovery.sidecars import SidecarTable
from omnigraph.ledger.values import TablePin

OURS = "op-ours"
BASE = 5


def pin(version: int = BASE, branch: str | None = None) -> TablePin:
    return TablePin("node:Person", "t1", "nodes/t1", branch, version, 10, "inc")


def table(branch: str | None = None, recorded: TablePin | None = None, transactions: int = 1) -> SidecarTable:
    ids = tuple(f"tx{i}" for i in range(transactions))
    return SidecarTable("node:Person", "t1", "nodes/t1", branch, BASE, recorded, ids, 11)


OWNED = table(recorded=pin())
FORKED = table(branch="f-1", recorded=pin())
REGISTERED = table(recorded=None)


def ours(version: int, number: int = 0) -> LandedCommit:
    return LandedCommit(version, f"tx{number}", OURS, False, False)


def rollback(version: int) -> LandedCommit:
    return LandedCommit(version, f"r{version}", OURS, True, False)


def reinstate(version: int) -> LandedCommit:
    return LandedCommit(version, f"r{version}", OURS, True, False)


def foreign(version: int, operation_id: str | None = "op-other") -> LandedCommit:
    return LandedCommit(version, "x", operation_id, False, False)


def neutral(version: int) -> LandedCommit:
    return LandedCommit(version, None, None, False, True)


def state(
    of: SidecarTable, at: TablePin | None, *landed: LandedCommit, head: int | None = -1, preserves: bool = False
) -> TableState:
    newest = landed[-1].version if landed else BASE
    evidence = TableEvidence(of, at, newest if head == -1 else head, landed)
    return classify(evidence, OURS, preserves_content=preserves)


def test_no_movement_when_head_is_the_pin_and_none_of_ours_landed() -> None:
    found = state(OWNED, pin())
    assert found.table_class is TableClass.NO_MOVEMENT
    assert not found.needs_restore
    assert not found.drifted


def test_rolled_past_expected_when_all_of_ours_landed() -> None:
    found = state(OWNED, pin(), ours(6))
    assert found.table_class is TableClass.ROLLED_PAST_EXPECTED
    assert found.needs_restore
    assert found.drifted


def test_neutral_commits_between_and_above_ours_do_not_matter() -> None:
    for landed in ((neutral(6), ours(7)), (ours(6), neutral(7)), (neutral(6), ours(7), neutral(8), neutral(9))):
        assert state(OWNED, pin(), *landed).table_class is TableClass.ROLLED_PAST_EXPECTED


def test_partial_when_not_all_of_ours_landed() -> None:
    two = table(recorded=pin(), transactions=2)
    found = state(two, pin(), ours(6))
    assert found.table_class is TableClass.PARTIAL
    assert found.needs_restore
    assert state(two, pin(), ours(6), ours(7, 1)).table_class is TableClass.ROLLED_PAST_EXPECTED


def test_ownership_is_by_operation_id_and_transaction_not_by_count() -> None:
    stranger_with_our_tag = LandedCommit(6, "not-announced", OURS, False, False)
    assert state(OWNED, pin(), stranger_with_our_tag).table_class is TableClass.PARTIAL
    assert state(OWNED, pin(), foreign(6)).table_class is TableClass.UNEXPECTED
    assert state(OWNED, pin(), foreign(6, None)).table_class is TableClass.UNEXPECTED


@pytest.mark.parametrize(
    "landed", [(foreign(6),), (ours(6), foreign(7)), (foreign(6), ours(7)), (neutral(6), foreign(7))]
)
def test_unexpected_when_something_above_the_pin_is_not_ours(landed: tuple[LandedCommit, ...]) -> None:
    found = state(OWNED, pin(), *landed)
    assert found.table_class is TableClass.UNEXPECTED
    assert found.foreign_versions == tuple(c.version for c in landed if c.operation_id == "op-other")
    assert not found.needs_restore


def test_foreign_commits_that_were_published_do_not_count() -> None:
    assert state(OWNED, pin(7), foreign(6), foreign(7)).table_class is TableClass.NO_MOVEMENT


def test_already_published_when_the_manifest_names_our_result() -> None:
    found = state(OWNED, pin(6), ours(6))
    assert found.table_class is TableClass.ALREADY_PUBLISHED
    assert not found.drifted


def test_already_published_and_written_on_by_others_since() -> None:
    assert state(OWNED, pin(7), ours(6), foreign(7)).table_class is TableClass.ALREADY_PUBLISHED
    drifted = state(OWNED, pin(7), ours(6), foreign(7), neutral(8))
    assert drifted.table_class is TableClass.ALREADY_PUBLISHED
    assert drifted.drifted


def test_invariant_violation_when_head_is_below_the_pin() -> None:
    assert state(OWNED, pin(9), head=8).table_class is TableClass.INVARIANT_VIOLATION
    assert state(OWNED, pin(9), head=None).table_class is TableClass.INVARIANT_VIOLATION
    assert state(FORKED, pin(), head=4).table_class is TableClass.INVARIANT_VIOLATION


def test_our_own_restore_means_undone_and_needs_no_second_restore() -> None:
    found = state(OWNED, pin(), ours(6), rollback(7))
    assert found.table_class is TableClass.PARTIAL
    assert found.drifted
    assert not found.needs_restore
    assert not state(OWNED, pin(), ours(6), rollback(7), neutral(8)).needs_restore


def test_a_published_rollback_is_no_movement() -> None:
    assert state(OWNED, pin(7), ours(6), rollback(7)).table_class is TableClass.NO_MOVEMENT


def test_a_reinstated_commit_of_somebody_else_stays_unexpected() -> None:
    assert state(OWNED, pin(), ours(6), foreign(7), rollback(8), reinstate(9)).table_class is TableClass.UNEXPECTED


def test_ours_after_our_own_rollback_still_needs_a_restore() -> None:
    found = state(OWNED, pin(), ours(6), rollback(7), ours(8))
    assert found.table_class is TableClass.PARTIAL
    assert found.needs_restore


class TestForks:
    """The write made the line for itself: nothing on it is visible, so nothing has to be restored."""

    def test_all_landed(self) -> None:
        found = state(FORKED, pin(), ours(6))
        assert found.table_class is TableClass.ROLLED_PAST_EXPECTED
        assert not found.needs_restore
        assert not found.drifted

    def test_nothing_landed(self) -> None:
        assert state(FORKED, pin()).table_class is TableClass.NO_MOVEMENT

    def test_fork_that_is_gone(self) -> None:
        assert state(FORKED, pin(), head=None).table_class is TableClass.NO_MOVEMENT

    def test_another_writer_published_its_own_fork_meanwhile(self) -> None:
        assert state(FORKED, pin(6, "f-2"), ours(6)).table_class is TableClass.NO_MOVEMENT

    def test_published(self) -> None:
        assert state(FORKED, pin(6, "f-1"), ours(6)).table_class is TableClass.ALREADY_PUBLISHED

    def test_version_numbers_of_other_lines_are_not_compared(self) -> None:
        assert state(FORKED, pin(60), ours(6)).table_class is TableClass.NO_MOVEMENT


class TestRegistered:
    """A table that the write brings into being has no pin before it."""

    def test_all_landed(self) -> None:
        assert state(REGISTERED, None, ours(6)).table_class is TableClass.ROLLED_PAST_EXPECTED

    def test_published(self) -> None:
        assert state(REGISTERED, pin(6), ours(6)).table_class is TableClass.ALREADY_PUBLISHED

    def test_never_made(self) -> None:
        assert state(REGISTERED, None, head=None).table_class is TableClass.NO_MOVEMENT

    def test_a_table_dropped_meanwhile_has_nothing_to_move(self) -> None:
        assert state(OWNED, None, ours(6)).table_class is TableClass.NO_MOVEMENT


class TestContentPreservingWriters:
    """Optimize and EnsureIndices: some of their commits carry no tag, and any stretch of them is a valid result."""

    def test_whatever_landed_is_landed(self) -> None:
        for landed in ((neutral(6),), (ours(6),), (neutral(6), ours(7), neutral(8))):
            found = state(OWNED, pin(), *landed, preserves=True)
            assert found.table_class is TableClass.ROLLED_PAST_EXPECTED

    def test_nothing_landed(self) -> None:
        assert state(OWNED, pin(), preserves=True).table_class is TableClass.NO_MOVEMENT

    def test_published(self) -> None:
        assert state(OWNED, pin(7), neutral(6), neutral(7), preserves=True).table_class is TableClass.ALREADY_PUBLISHED

    def test_content_of_somebody_else(self) -> None:
        assert state(OWNED, pin(), neutral(6), foreign(7), preserves=True).table_class is TableClass.UNEXPECTED


def test_every_short_history_is_classified_by_the_rules_of_the_table() -> None:
    """All sequences of up to four commits, against the definitions read off the page."""
    two = table(recorded=pin(), transactions=2)
    for length in range(5):
        for symbols in itertools.product("abnfx", repeat=length):
            landed = []
            for offset, symbol in enumerate(symbols, start=1):
                version = BASE + offset
                made = {
                    "a": ours(version, 0),
                    "b": ours(version, 1),
                    "n": neutral(version),
                    "f": foreign(version),
                    "x": foreign(version, None),
                }
                landed.append(made[symbol])
            for published in range(length + 1):
                above, below = symbols[published:], symbols[:published]
                found = state(two, pin(BASE + published), *landed).table_class
                if {"f", "x"} & set(above):
                    expected = TableClass.UNEXPECTED
                elif not {"a", "b"} & set(above):
                    if not {"a", "b"} & set(below):
                        expected = TableClass.NO_MOVEMENT
                    else:
                        expected = TableClass.ALREADY_PUBLISHED if {"a", "b"} <= set(below) else TableClass.PARTIAL
                elif {"a", "b"} <= set(above) and not {"a", "b"} & set(below):
                    expected = TableClass.ROLLED_PAST_EXPECTED
                else:
                    expected = TableClass.PARTIAL
                assert found is expected, (symbols, published)
