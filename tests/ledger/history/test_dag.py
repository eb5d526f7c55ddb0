"""The commit DAG: merge bases with several candidates, ancestry, the order of a log, growth."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.ledger.history.dag import (
    CommitGraph,
    ancestors,
    changed_data_since,
    first_parents,
    is_ancestor,
    log,
    made_from,
    merge_bases,
)
from omnigraph.ledger.values import GraphCommit, WriterKind


def commit(name, parent=None, merged=None, *, at=0, data=True):
    return GraphCommit(name, None, 1, parent, merged, None, at, WriterKind.MUTATION, data, "main", "i", "d")


def graph(*rows):
    """Rows of (id, parent, merged parent), oldest first; time is the position."""
    return CommitGraph(commit(*row, at=index) for index, row in enumerate(rows))


def test_merge_base_of_a_plain_fork_is_the_fork_point():
    g = graph(("a",), ("b", "a"), ("m", "b"), ("x", "b"))
    assert merge_bases(g, "m", "x") == ("b",)
    assert merge_bases(g, "b", "x") == ("b",)
    assert merge_bases(g, "x", "x") == ("x",)


def test_merge_base_counts_merged_parents():
    g = graph(("a",), ("x1", "a"), ("m1", "a", "x1"), ("x2", "x1"), ("m2", "m1"))
    assert merge_bases(g, "m2", "x2") == ("x1",)


def test_criss_cross_has_two_bases_newest_first():
    g = graph(("a",), ("l", "a"), ("r", "a"), ("l2", "l", "r"), ("r2", "r", "l"))
    assert merge_bases(g, "l2", "r2") == ("r", "l")
    assert merge_bases(g, "r2", "l2") == ("r", "l")


def test_unrelated_and_unknown_commits_have_no_base():
    g = graph(("a",), ("z",))
    assert merge_bases(g, "a", "z") == ()
    assert merge_bases(g, "a", "nowhere") == ()


def test_a_parent_that_comes_in_after_its_child_is_counted():
    g = CommitGraph([commit("b", "a", at=1), commit("x", "a", at=2)])
    assert merge_bases(g, "b", "x") == ()
    g.add(commit("a", at=0))
    assert merge_bases(g, "b", "x") == ("a",)
    assert g.generation("b") == 2


def test_adding_a_commit_twice_changes_nothing():
    g = CommitGraph([commit("a")])
    assert g.add(commit("a", "b")) is False
    assert g.get("a").parent_commit_id is None


def test_log_is_newest_first_and_never_shows_a_parent_before_its_child():
    clock_went_back = [commit("a", at=5), commit("b", "a", at=3), commit("c", "b", at=4), commit("s", "a", at=9)]
    g = CommitGraph([*clock_went_back, commit("m", "c", "s", at=8)])
    assert [c.graph_commit_id for c in log(g, "m")] == ["m", "s", "c", "b", "a"]
    assert [c.graph_commit_id for c in log(g, "m", limit=2)] == ["m", "s"]
    assert [c.graph_commit_id for c in log(g, "m", keep=lambda c: c.created_at < 5)] == ["c", "b"]
    assert log(g, "nowhere") == []


def test_first_parents_is_the_line_of_the_branch():
    g = graph(("a",), ("s", "a"), ("b", "a"), ("m", "b", "s"))
    assert [c.graph_commit_id for c in first_parents(g, "m")] == ["m", "b", "a"]


def test_changed_data_since_sees_through_layout_commits_and_merges():
    g = CommitGraph([commit("a"), commit("o", "a", data=False), commit("o2", "o", data=False), commit("w", "o2")])
    assert changed_data_since(g, "o2", "a") is False
    assert changed_data_since(g, "w", "a") is True
    assert changed_data_since(g, "a", "w") is True, "not an ancestor: unknown, so assume the worst"
    g.add(commit("s", "a"))
    g.add(commit("m", "o", "s", data=False))
    assert changed_data_since(g, "m", "o") is True


def test_made_from_follows_merges():
    g = graph(("a",), ("b", "a"), ("x", "a"), ("y", "x"), ("m", "b", "y"), ("z", "b"))
    assert made_from(g, ["x", "nowhere"]) == {"x", "y", "m"}


@st.composite
def histories(draw):
    size = draw(st.integers(2, 24))
    rows = [("c0",)]
    for index in range(1, size):
        parent = draw(st.integers(0, index - 1))
        merged = draw(st.none() | st.integers(0, index - 1))
        rows.append((f"c{index}", f"c{parent}", f"c{merged}" if merged is not None else None))
    return rows


@given(histories())
@settings(max_examples=150, deadline=None)
def test_merge_bases_and_ancestry_agree_with_their_definition(rows):
    g = graph(*rows)
    ids = [row[0] for row in rows]
    reach = {i: ancestors(g, i) for i in ids}
    for left, right in itertools.islice(itertools.combinations(ids, 2), 60):
        common = reach[left] & reach[right]
        best = {c for c in common if not any(c != other and c in reach[other] for other in common)}
        assert set(merge_bases(g, left, right)) == best
        assert is_ancestor(g, left, right) == (left in reach[right])


def test_a_long_history_needs_no_recursion():
    g = CommitGraph(commit(f"c{i}", f"c{i - 1}" if i else None, at=i) for i in range(20_000))
    g.add(commit("x", "c19000"))
    assert merge_bases(g, "c19999", "x") == ("c19000",)
    assert len(log(g, "c19999")) == 20_000


def test_ancestry_looks_at_each_commit_once(monkeypatch):
    """Two branches that merge each other again and again: twice as many ways with each round."""
    rows = [("root",), ("elsewhere",), ("l0", "root"), ("r0", "root")]
    for n in range(1, 40):
        rows += [(f"l{n}", f"l{n - 1}", f"r{n - 1}"), (f"r{n}", f"r{n - 1}", f"l{n - 1}")]
    g = graph(*rows)
    assert (g.generation("elsewhere"), g.generation("l39")) == (1, 41)
    looked_at = []
    parents = CommitGraph.parents

    def noted(self, commit_id):
        looked_at.append(commit_id)
        assert len(looked_at) < 1000
        return parents(self, commit_id)

    monkeypatch.setattr(CommitGraph, "parents", noted)
    assert not is_ancestor(g, "elsewhere", "l39")
    assert sorted(looked_at) == sorted({"root", *(f"{side}{n}" for side in "lr" for n in range(40))} - {"r39"})
