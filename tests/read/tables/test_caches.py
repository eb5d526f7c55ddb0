"""What reads keep: built once, bounded, reported, and never stale."""

from __future__ import annotations

import threading
import time

import pytest

from omnigraph.config import override
from omnigraph.query.ir import Direction
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.run import run_on
from omnigraph.read.tables.cache import Budget, SingleFlightCache
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import ArrowTables
from omnigraph.read.tables.topology import build_topology
from tests.read.asking import graph
from tests.read.graphs import CATALOG, arrow_tables


def test_threads_that_miss_the_same_key_build_it_once():
    cache: SingleFlightCache[int] = SingleFlightCache(8, lambda value: 1)
    built: list[int] = []
    barrier = threading.Barrier(8)

    def build() -> int:
        built.append(1)
        time.sleep(0.02)
        return 7

    def ask() -> None:
        barrier.wait()
        results.append(cache.get("key", build))

    results: list[int] = []
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1]
    assert results == [7] * 8


def test_a_failed_build_is_told_and_not_kept():
    cache: SingleFlightCache[int] = SingleFlightCache(8, lambda value: 1)

    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.get("key", fail)
    assert cache.get("key", lambda: 3) == 3


def test_the_least_recently_used_entry_goes_first():
    cache: SingleFlightCache[str] = SingleFlightCache(2, len)
    for key in ("a", "b", "a", "c"):
        cache.get(key, lambda key=key: key)
    assert cache.peek("b") is None
    assert cache.peek("a") == "a"
    assert cache.report().evictions == 1


def test_entries_go_when_they_take_too_many_bytes():
    cache: SingleFlightCache[str] = SingleFlightCache(100, len, max_bytes=10)
    for key in range(5):
        cache.get(key, lambda: "x" * 4)
    assert cache.report().bytes <= 10
    assert cache.peek(4) == "xxxx"


def test_topology_reports_the_memory_of_what_was_made():
    topology = build_topology(arrow_tables(graph("a b c", "ab ab bc"))["edge:Knows"], one_kind=True)
    before = topology.nbytes
    adjacency = topology.adjacency(Direction.OUT)
    assert topology.nbytes == before + adjacency.nbytes
    assert adjacency.targets.tolist() == [1, 2]
    assert topology.adjacency(Direction.OUT, by_edge=True).edges.tolist() == [0, 1, 2]


def run(reader: ArrowTables, caches: ReadCaches, text: str):
    return run_on(reader, CATALOG, caches, compile_query(f"query q() {{ {text} }}", CATALOG))


def test_readers_of_one_state_share_a_topology_and_another_state_has_its_own():
    caches = ReadCaches()
    text = "match { $p: Person  $p knows $q } return { $q.name }"
    with override(traversal_mode="csr"):
        before = ArrowTables(arrow_tables(graph("a b", "ab")))
        assert run(before, caches, text).rows() == [{"q.name": "b"}]
        assert run(before, caches, text).rows() == [{"q.name": "b"}]
        assert caches.report()["topologies"].misses == 1
        after = ArrowTables(arrow_tables(graph("a b", "ab ba")))
        assert len(run(after, caches, text)) == 2
        assert run(before, caches, text).rows() == [{"q.name": "b"}]
    assert caches.report()["topologies"].entries == 2
    assert caches.report()["topologies"].bytes > 0


def test_at_most_eight_topologies_are_kept():
    caches = ReadCaches()
    with override(traversal_mode="csr"):
        for _ in range(10):
            reader = ArrowTables(arrow_tables(graph("a b", "ab")))
            run(reader, caches, "match { $p: Person  $p knows $q } return { $q.name }")
    assert caches.report()["topologies"].entries == 8


def test_plans_are_cached_for_a_query_and_a_state():
    caches = ReadCaches()
    reader = ArrowTables(arrow_tables(graph("a b", "ab")))
    compiled = compile_query("query q() { match { $p: Person } return { $p.name } }", CATALOG)
    for _ in range(3):
        run_on(reader, CATALOG, caches, compiled)
    assert caches.plans.report().misses == 1
    assert caches.plans.report().hits == 2


def test_a_plan_is_kept_while_the_tables_have_about_as_many_rows():
    caches = ReadCaches()
    compiled = compile_query("query q() { match { $p: Person } return { count($p) as n } }", CATALOG)

    def plans(count):
        reader = ArrowTables(arrow_tables(graph([f"p{number}" for number in range(count)], "")))
        assert run_on(reader, CATALOG, caches, compiled).rows() == [{"n": count}]
        return caches.plans.report().misses

    assert [plans(count) for count in (100, 101, 102, 300, 301, 100)] == [1, 1, 1, 2, 2, 2]


def test_a_plan_that_knows_how_rare_a_word_is_is_one_for_these_very_tables():
    caches = ReadCaches()
    text = 'query q() { match { $p: Person  $p knows $q  search($q.name, "b") } return { $p.name } }'
    compiled = compile_query(text, CATALOG)
    for misses in (1, 2):
        reader = ArrowTables(arrow_tables(graph("a b", "ab")))
        run_on(reader, CATALOG, caches, compiled)
        assert caches.plans.report().misses == misses


def test_caches_of_one_budget_let_go_of_what_was_used_longest_ago_in_any_of_them():
    budget = Budget(lambda: 100)
    one = SingleFlightCache(10, len, budget=budget)
    two = SingleFlightCache(10, len, budget=budget)
    one.get("a", lambda: bytes(40))
    two.get("b", lambda: bytes(40))
    one.get("a", lambda: b"")
    two.get("c", lambda: bytes(40))
    assert (one.peek("a") is not None, two.peek("b"), two.peek("c") is not None) == (True, None, True)
    two.get("large", lambda: bytes(500))
    assert budget.held() == 500
    assert two.peek("large") is not None


def test_an_entry_is_weighed_once_however_many_come_after_it():
    weighed: list[str] = []

    def size(value: str) -> int:
        weighed.append(value)
        return len(value)

    cache: SingleFlightCache[str] = SingleFlightCache(100, size, max_bytes=20)
    for key in range(50):
        cache.get(key, lambda key=key: f"{key:04d}")
    assert len(weighed) == 50
    assert cache.report().entries == 5
    cache.clear()
    cache.get("large", lambda: "x" * 18)
    cache.get("small", lambda: "yy")
    assert cache.report().entries == 2, "what was cleared weighs nothing"


def test_entries_that_have_grown_go_when_they_are_counted_again():
    cache: SingleFlightCache[list[int]] = SingleFlightCache(100, len, max_bytes=10)
    for key in range(3):
        cache.get(key, lambda: [1, 2, 3])
    grown = cache.peek(2)
    assert grown is not None
    grown += [4, 5, 6]
    cache.trim()
    assert cache.peek(0) is None
    assert cache.report().bytes == 9
