"""The merge bases of every pair of heads: the same as pair by pair, and quick."""

import itertools
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.ledger.history.bases_of_heads import bases_of_heads
from omnigraph.ledger.history.dag import CommitGraph, merge_bases
from tests.ledger.history.test_dag import commit, graph, histories


def test_bases_of_heads_covers_every_pair():
    g = graph(("a",), ("b", "a"), ("x", "a"), ("y", "b"), ("z", "b"))
    assert bases_of_heads(g, ["x", "y", "z"]) == {"a", "b"}


def test_bases_of_heads_covers_the_bases_of_a_criss_cross_and_their_own_base():
    g = graph(("root",), ("a", "root"), ("b", "root"), ("c", "a", "b"), ("d", "b", "a"))
    assert bases_of_heads(g, ["c", "d"]) == {"a", "b", "root"}


def pair_by_pair(g, heads):
    """The definition: the bases of each pair, and of those that a pair has at once, and so on."""
    pairs = list(itertools.combinations(sorted(set(heads)), 2))
    seen, found = set(pairs), set()
    while pairs:
        bases = merge_bases(g, *pairs.pop())
        found.update(bases)
        deeper = set(itertools.combinations(sorted(bases), 2)) - seen
        seen |= deeper
        pairs += deeper
    return found


@given(histories(), st.data())
@settings(max_examples=200, deadline=None)
def test_bases_of_heads_are_those_of_each_pair(rows, data):
    g = graph(*rows)
    heads = data.draw(st.lists(st.sampled_from([row[0] for row in rows]), max_size=8))
    assert bases_of_heads(g, heads) == pair_by_pair(g, heads)


def test_heads_that_are_not_known_have_no_base():
    assert bases_of_heads(graph(("a",), ("b", "a")), ["a", "b", "nowhere"]) == {"a"}
    assert bases_of_heads(graph(("a",)), []) == set()


def test_a_thousand_branches_along_a_long_history_take_no_minutes():
    """Pair by pair, a hundred took 18 s."""
    g = CommitGraph(commit(f"m{n}", f"m{n - 1}" if n else None, at=n) for n in range(2000))
    for n in range(1000):
        g.add(commit(f"b{n}", f"m{2 * n}"))
    start = time.perf_counter()
    found = bases_of_heads(g, ["m1999", *(f"b{n}" for n in range(1000))])
    assert len(found) == 1000
    assert time.perf_counter() - start < 60


def test_a_commit_that_every_two_heads_have_past_a_newer_one_is_no_base():
    """Each two of the heads meet at a child of `x`, and no two of them at `x` itself."""
    g = graph(("x",), ("a", "x"), ("b", "x"), ("c", "x"), ("ac", "a", "c"), ("ab", "a", "b"), ("bc", "b", "c"))
    assert bases_of_heads(g, ["ac", "ab", "bc"]) == {"a", "b", "c"}
