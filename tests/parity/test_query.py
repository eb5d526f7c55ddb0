"""Queries give equal rows in equal order, to the last bit, on both engines."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from omnigraph.errors import BadRequest, Cancelled, QueryTimeout
from omnigraph.ledger.store import GraphStore
from omnigraph.query import ir
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.run import run_query as run_in_process
from omnigraph.read.state.control import CancelToken
from tests.parity.graphs import make_graph

pytestmark = pytest.mark.spark

QUERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "all properties": ("{ match { $p: Person } return { $p } }", {}),
    "filters on each type": (
        """($n: I32, $u: U64, $d: Date, $t: DateTime, $f: F64) {
            match { $p: Person  $p.age > $n  $p.big <= $u  $p.born >= $d or $p.seen < $t or $p.score != $f }
            return { $p.slug, $p.age > 30 as older, $p.big, $p.total } }""",
        {"n": 20, "u": str(2**64 - 2), "d": "1992-01-01", "t": "2026-01-05T00:00:00Z", "f": 0.1},
    ),
    "floats compare alike": (
        "{ match { $p: Person  $p.score < 0.3  $p.ratio >= 0.5 } return { $p.slug, $p.ratio, $p.score } }",
        {},
    ),
    "the first year and an old calendar": (
        """($d: [Date], $t: DateTime, $u: DateTime) {
            match { $p: Person  $p.born in $d or $p.seen > $t  not $p.seen < $u }
            return { $p.slug, $p.born in $d as found, $t < $p.seen as later, $u as u } }""",
        {"d": ["0001-01-01", "1992-01-01"], "t": "0999-03-01T12:00:00.25Z", "u": "0001-01-01T00:00:00Z"},
    ),
    "null tests": ("{ match { $p: Person  $p.age = null  $p.bio != null } return { $p.slug, $p.age } }", {}),
    "text predicates": (
        '{ match { $p: Person  $p.slug starts_with "p1"  $p.bio contains "ra" } return { $p.slug, $p.bio } }',
        {},
    ),
    "lists": (
        '($in: [String]) { match { $p: Person  $p.tags contains "a"  $p.mood in $in  not $p.active } '
        "return { $p.slug, $p.tags, $p.mood, $p.active } }",
        {"in": ["sad", "glad"]},
    ),
    "one hop": ("{ match { $p: Person  $p knows $q } return { $p.slug, $q.slug, $q.age } }", {}),
    "against the edge": ('{ match { $p: Person { slug: "p03" }  $q knows $p } return { $q.slug } }', {}),
    "either direction": ('{ match { $p: Person { slug: "p03" }  $p <knows> $q } return { $q.slug } }', {}),
    "two types": (
        "{ match { $p: Person  $p livesIn $c  $c.people > 2 } return { $p.slug, $c.name } order { $c.name desc } }",
        {},
    ),
    "edges bound": (
        "{ match { $p: Person  $p $k:knows $q  $k.weight > 0.1 } return { $p.slug, $k.since, $k.weight, $q.slug } "
        "order { $k.since desc, $k.weight } limit 9 }",
        {},
    ),
    "edges bound either way": ("{ match { $p: Person  $p $k:<knows> $q } return { $k, $p.slug, $q.slug } }", {}),
    "paths by distance": ("{ match { $p: Person  $p knows{1,3} $q } return { $p.slug, $q.slug } }", {}),
    "paths from two on": ("{ match { $p: Person  $p knows{2,3} $q  $q.age > 30 } return { $p.slug, $q.slug } }", {}),
    "undirected paths": (
        '{ match { $p: Person { slug: "p02" }  $p <knows>{1,2} $q } return { $q.slug, $q.mood } }',
        {},
    ),
    "self-loops": ("{ match { $p: Person  $p knows $p } return { $p.slug } }", {}),
    "triangles": (
        "{ match { $a: Person  $a knows $b  $b knows $c  $c knows $a } return { $a.slug, $b.slug, $c.slug } }",
        {},
    ),
    "negation": ("{ match { $p: Person  not { $p knows $q  $q.age > 40 } } return { $p.slug } }", {}),
    "negation of a pair": (
        "{ match { $p: Person  $p knows $q  not { $q knows $p } } return { $p.slug, $q.slug } }",
        {},
    ),
    "counts of walks": ("{ match { $a: Person  $a $e:knows $b  $b $f:knows $c } return { count($f) as n } }", {}),
    "counts of edges either way": ("{ match { $a: Person  $a $e:<knows> $b } return { count($e) as n } }", {}),
    "edges by their own property": (
        "{ match { $a: Person  $a $e:knows $b } return { $e.weight, count($a) as n, count(distinct $b) as m } }",
        {},
    ),
    "edges by what they lead from": (
        "{ match { $a: Person  $a $e:knows $b  $a.age > 20 } return { $a.mood, count($e) as n, max($b.age) as m } }",
        {},
    ),
    "pairs from anywhere": ("{ match { $a: Person  $a knows $b } return { count($b) as n, min($a.id) as m } }", {}),
    "counts of what is optional": (
        "{ match { $a: Person  optional { $a $e:knows $b } } return { $a.mood, count($a) as n, count($e) as m } }",
        {},
    ),
    "edges of anywhere to some": (
        '{ match { $a: Person  $a $e:livesIn $c  $c.name = "Oslo" } return { count($e) as n, sum($e.rent) as r } }',
        {},
    ),
    "counts of a walk against the edge": (
        "{ match { $c: City  $p $l:livesIn $c  $p $e:knows $q } return { count($e) as n, count($c) as m } }",
        {},
    ),
    "edges from anywhere but": (
        "{ match { $a: Person  $a $e:knows $b  not { $b knows $a } } return { count($e) as n } }",
        {},
    ),
    "product": ('{ match { $p: Person { mood: "sad" }  $c: City } return { $p.slug, $c.name } limit 7 }', {}),
    "groups": (
        "{ match { $p: Person } return { $p.mood, count($p) as n, count($p.age) as ages, sum($p.age) as s, "
        "avg($p.total) as m, min($p.bio) as b, max($p.seen) as t } order { n desc } }",
        {},
    ),
    "float sums to the last bit": (
        "{ match { $p: Person  $p knows $q } return { $p.mood, sum($q.score) as s, avg($q.ratio) as r, "
        "max($q.big) as b, count($q) as n, min($q.active) as a } }",
        {},
    ),
    "groups by an entity": (
        "{ match { $p: Person  $p livesIn $c } return { $c, count($p) as n } order { n desc } limit 2 }",
        {},
    ),
    "aggregates over nothing": (
        '{ match { $p: Person { slug: "nobody" } } return { count($p) as n, sum($p.age) as s, max($p.bio) as b } }',
        {},
    ),
    "float aggregates over nothing": (
        '{ match { $p: Person { slug: "nobody" } } return { count($p) as n, sum($p.score) as s, min($p.born) as b } }',
        {},
    ),
    "groups over nothing": (
        '{ match { $p: Person { slug: "nobody" } } return { $p.mood, sum($p.score) as s } }',
        {},
    ),
    "order by several, nulls smallest": (
        "{ match { $p: Person } return { $p.slug, $p.age, $p.mood } order { $p.mood desc, $p.age } limit 11 }",
        {},
    ),
    "limit by parameter": ("($k: I64) { match { $p: Person } return { $p.slug } limit $k }", {"k": 4}),
    "limit zero": ("{ match { $p: Person } return { $p.slug } limit 0 }", {}),
    "search": ('{ match { $p: Person  search($p.bio, "spark river") } return { $p.slug, $p.bio } }', {}),
    "phrases": ('{ match { $p: Person  match_text($p.bio, "graph") } return { $p.slug } }', {}),
    "fuzzy": ('{ match { $p: Person  fuzzy($p.bio, "grahp stine") } return { $p.slug, $p.bio } }', {}),
    "bm25": (
        '{ match { $p: Person } return { $p.slug, bm25($p.bio, "graph stone café") as s } order { s desc } limit 12 }',
        {},
    ),
    "nearest after a filter": (
        "($v: Vector(3)) { match { $p: Person  $p.age > 25 } return { $p.slug, nearest($p.face, $v) as d } "
        "order { nearest($p.face, $v) } limit 8 }",
        {"v": [0.5, 1.0, -0.25]},
    ),
    "nearest after a traversal": (
        "($v: Vector(3)) { match { $p: Person  $p knows $q } return { $p.slug, $q.slug } "
        "order { nearest($q.face, $v) } limit 15 }",
        {"v": [1.0, 0.0, 0.0]},
    ),
    "fusion": (
        "($v: Vector(3)) { match { $p: Person } "
        'return { $p.slug, rrf(nearest($p.face, $v), bm25($p.bio, "river")) as s } '
        'order { rrf(nearest($p.face, $v), bm25($p.bio, "river")) } limit 20 }',
        {"v": [1.0, 0.0, 0.5]},
    ),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    return make_graph(tmp_path_factory.mktemp("parity") / "graph.omni")


def both(spark: Any, graph: GraphStore, text: str, values: dict[str, Any]) -> tuple[Any, Any]:
    from omnigraph.spark.query.run import run_query as run_on_spark

    snapshot = graph.snapshot()
    catalog = graph.catalog(snapshot.schema_digest)
    compiled = compile_query(f"query q{text if text.startswith('(') else '() ' + text}", catalog)
    assert isinstance(compiled, ir.ReadQuery)
    in_process = run_in_process(graph, snapshot, catalog, compiled, values)
    return in_process, run_on_spark(spark, graph, snapshot, compiled, values)


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_equal_rows_in_equal_order(spark: Any, graph: GraphStore, name: str) -> None:
    in_process, on_spark = both(spark, graph, *QUERIES[name])
    assert on_spark.rows() == in_process.rows()
    assert on_spark.schema == in_process.schema
    assert on_spark.to_arrow().equals(in_process.to_arrow())


def test_most_cases_have_rows(spark: Any, graph: GraphStore) -> None:
    snapshot = graph.snapshot()
    catalog = graph.catalog(snapshot.schema_digest)
    empty = []
    for name, (text, values) in QUERIES.items():
        compiled = compile_query(f"query q{text if text.startswith('(') else '() ' + text}", catalog)
        assert isinstance(compiled, ir.ReadQuery)
        if len(run_in_process(graph, snapshot, catalog, compiled, values)) == 0:
            empty.append(name)
    assert sorted(empty) == ["groups over nothing", "limit zero"]


def test_a_bad_parameter_is_the_same_error(spark: Any, graph: GraphStore) -> None:
    text = "($v: Vector(3)) { match { $p: Person } return { $p.slug } order { nearest($p.face, $v) } limit 2 }"
    with pytest.raises(BadRequest, match=r"parameter `\$v`"):
        both(spark, graph, text, {"v": [1.0]})


def test_a_result_stays_a_frame_on_spark(spark: Any, graph: GraphStore) -> None:
    from omnigraph.spark.query.run import query_frame

    snapshot = graph.snapshot()
    compiled = compile_query(
        "query q() { match { $p: Person  $p livesIn $c } return { $c, count($p) as n } order { n } }",
        graph.catalog(snapshot.schema_digest),
    )
    assert isinstance(compiled, ir.ReadQuery)
    frame = query_frame(spark, graph, snapshot, compiled)
    assert frame.columns == ["c", "n"]
    rows = frame.select("c.@id", "n").collect()
    assert [row.n for row in rows] == sorted(row.n for row in rows)
    assert {row["@id"] for row in rows} == {"Oslo", "Rome", "Łódź"}


_SEVEN = "  ".join(f"${name}: Person" for name in "abcdefg")
_IN_CIRCLES = " or ".join(
    f"(${a}.slug < ${b}.slug and ${b}.slug < $g.slug and $g.slug < ${a}.slug)" for a, b in ("ab", "cd", "ef")
)
_WALK = "  ".join(f"${one} knows ${other}" for one, other in pairwise("abcdefghijklmnopqrstuv"))
ENDLESS = {
    "variables that nothing connects": f"""{{
        match {{ {_SEVEN}  $h: Person  $i: Person }} return {{ count($g) as n }} }}""",
    "a condition on all of them that no row meets": f"""{{
        match {{ {_SEVEN}  {_IN_CIRCLES} }} return {{ count($g) as n }} }}""",
    "a long walk": f"{{ match {{ $a: Person  {_WALK} }} return {{ count($v) as n }} }}",
}
"""Twenty thousand million rows and more, made in loops that Spark compiles and that end in one number."""


@pytest.mark.parametrize("name", ENDLESS)
def test_a_query_on_spark_that_is_cancelled_gives_every_core_back(spark: Any, graph: GraphStore, name: str) -> None:
    with pytest.raises(Cancelled):
        cancelled_while_it_runs(spark, graph, f"query endless(){ENDLESS[name]}")
    assert_idle(spark)


def test_a_query_on_spark_stops_when_its_time_is_over(spark: Any, graph: GraphStore) -> None:
    text = f"query endless(){ENDLESS['variables that nothing connects']}"
    started = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"did not finish within 0\.5 s") as stopped:
        ask_spark(spark, graph, text, timeout=0.5)
    assert stopped.value.details["timeout"] == 0.5
    assert time.monotonic() - started < 60
    assert_idle(spark)
    with pytest.raises(BadRequest, match="a number of seconds above 0"):
        ask_spark(spark, graph, text, timeout=0)


def cancelled_while_it_runs(spark: Any, graph: GraphStore, text: str) -> None:
    """Run a query and cancel it when the tasks in which its rows meet have been at it for some seconds."""
    token = CancelToken()

    def cancel() -> None:
        tracker = spark.sparkContext.statusTracker()
        end = time.monotonic() + 60
        stages: list[int] = []
        since = time.monotonic()
        while time.monotonic() < min(end, since + 3):
            time.sleep(0.1)
            if not stages or stages != list(tracker.getActiveStageIds()):
                stages, since = list(tracker.getActiveStageIds()), time.monotonic()
        token.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        ask_spark(spark, graph, text, cancel=token)
    finally:
        thread.join()


def assert_idle(spark: Any) -> None:
    """No job runs any more, and no task: a barrier stage begins when there is a core for each of its tasks at once."""
    context = spark.sparkContext
    tracker = context.statusTracker()
    end = time.monotonic() + 90
    while tracker.getActiveJobsIds() and time.monotonic() < end:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()
    giving_up = threading.Timer(90, context.cancelAllJobs)
    giving_up.start()
    cores = context.defaultParallelism
    try:
        together = context.range(cores, numSlices=cores).barrier().mapPartitions(lambda rows: rows)
        assert together.count() == cores
    finally:
        giving_up.cancel()


def ask_spark(spark: Any, graph: GraphStore, text: str, **options: Any) -> Any:
    from omnigraph.spark.query.run import run_query

    snapshot = graph.snapshot()
    compiled = compile_query(text, graph.catalog(snapshot.schema_digest))
    assert isinstance(compiled, ir.ReadQuery)
    return run_query(spark, graph, snapshot, compiled, **options)
