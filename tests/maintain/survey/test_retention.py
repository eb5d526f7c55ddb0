"""Which commits a retention keeps, on histories written down by hand."""

from __future__ import annotations

from omnigraph.ledger.history.dag import CommitGraph
from omnigraph.ledger.values import GraphCommit, WriterKind
from omnigraph.maintain.survey.retention import Retention, heads_since, kept_of_branch


def commit(name: str, parent: str | None = None, merged: str | None = None, at: float = 0.0) -> GraphCommit:
    return GraphCommit(
        graph_commit_id=name,
        manifest_branch=None,
        manifest_version=1,
        parent_commit_id=parent,
        merged_parent_commit_id=merged,
        actor_id=None,
        created_at=int(at * 1e6),
        kind=WriterKind.MUTATION,
        changes_data=True,
        branch="main",
        incarnation="i",
        schema_digest="d",
    )


LINE = CommitGraph([commit("a", at=10), commit("b", "a", at=20), commit("x", "a", at=25), commit("c", "b", "x", at=30)])


def test_numbers_count_along_the_branchs_own_line() -> None:
    assert kept_of_branch(LINE, "c", Retention(keep_versions=2), 100.0) == {"c", "b"}


def test_ages_look_at_everything_the_branch_can_reach() -> None:
    assert kept_of_branch(LINE, "c", Retention(older_than=76.0), 100.0) == {"c", "x"}


def test_with_both_a_commit_goes_only_if_it_is_past_both() -> None:
    assert kept_of_branch(LINE, "c", Retention(2, 76.0), 100.0) == {"c", "b", "x"}


def test_the_head_always_stays() -> None:
    assert kept_of_branch(LINE, "c", Retention(older_than=0.0), 100.0) == {"c"}


def test_heads_since_include_the_one_that_was_head_at_that_time() -> None:
    assert heads_since(LINE, "c", 25.0) == {"c", "b"}
