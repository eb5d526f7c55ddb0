"""Every construct of the query language gives the same rows in the same order, or the same error, on both engines.

One graph, one Spark session, and queries that each use several constructs: on Spark a query takes a second or two.
"""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.query import ir
from omnigraph.query.functions.table import FUNCTIONS
from omnigraph.query.lower.compile import compile_query
from omnigraph.query.text import syntax
from omnigraph.query.text.parse import parse_queries
from omnigraph.query.text.print import expression_text
from omnigraph.read.run import run_query as run_in_process
from tests.parity.graphs import put_rows

pytestmark = pytest.mark.spark

SCHEMA = """
interface Named { name: String  note: String? }
node Person implements Named {
    name: String @key
    age: I32?
    score: F64?
    total: I64?
    big: U64?
    born: Date?
    bio: String? @index
    tags: [String]?
    face: Vector(2)?
    note: String?
}
node City implements Named { name: String @key  size: I64?  note: String?  total: String? }
edge Knows: Person -> Person { since: I32? }
edge Follows: Person -> Person { since: I32? }
edge LivesIn: Person -> City { since: I32? }
"""


def person(name: str, **values: Any) -> dict[str, Any]:
    missing = dict.fromkeys(("age", "score", "total", "big", "born", "bio", "tags", "face", "note"))
    return {"id": name, "name": name, **missing, **values}


def edge(id: str, source: str, target: str, since: int | None = None) -> dict[str, Any]:
    return {"id": id, "src": source, "dst": target, "since": since}


def rows() -> dict[str, list[dict[str, Any]]]:
    """Parallel edges, a self-loop, cycles, one id in two types and in two edge types, values at their limits, nulls."""
    return {
        "node:Person": [
            person(
                "a", age=1, score=0.1, total=2**53 + 1, big=2**64 - 1, bio="red fox", tags=["u", "v"], face=[1.0, 0.0]
            ),
            person("b", age=2, score=0.2, total=2**53 + 1, big=7, bio="red hen", note="n", face=[1.0, 1.0]),
            person("c", age=2, score=0.3, total=2**53 + 1, bio="a hen and a fox", tags=[], face=[0.0, 1.0]),
            person("d", score=-0.0, total=-(2**62), bio="blue"),
            person("e", age=40, score=0.0, total=5, face=[-1.0, 0.0]),
            person("x", age=9, score=1e300, tags=["v"]),
        ],
        "node:City": [
            {"id": "x", "name": "x", "size": 1, "note": None, "total": "few"},
            {"id": "y", "name": "y", "size": 2, "note": "far", "total": "many"},
        ],
        "edge:Knows": [
            edge("k1", "a", "b", 1),
            edge("k0", "a", "b", 5),
            edge("k2", "b", "c", 2),
            edge("k3", "a", "d", 3),
            edge("k4", "d", "c", 4),
            edge("k5", "c", "c", 1),
            edge("k6", "c", "e"),
            edge("k7", "b", "a", 2),
        ],
        "edge:Follows": [edge("f1", "c", "a", 1), edge("f2", "b", "d", 2), edge("k1", "a", "c", 9)],
        "edge:LivesIn": [edge("l1", "a", "x", 1), edge("l2", "b", "x"), edge("l3", "x", "y", 7)],
    }


QUERIES: dict[str, str] = {
    "a condition on an edge that closes a cycle": """{
        match { $a: Person  $a $e:knows $b  $b $f:knows $a  $e.since = $f.since }
        return { $e.@id, $f.@id } }""",
    "sibling blocks with one name for two types": """{
        match { $p: Person  not { $p livesIn $x  $x.size = 1 }  not { $p follows $x  $x.age = 1 } }
        return { $p.name } }""",
    "a condition inside a block on what is bound outside": """{
        match { $p: Person  not { $p knows $q  $p.age < 2 } }
        return { $p.name, $p.age } }""",
    "optional, twice": """{
        match { $p: Person  optional { $p knows $q  $q.age > 1 }  optional { $q $w:follows $r } }
        return { $p.name, $q, $w.since, $r.name, $r.@type, coalesce($q.age, 0 - 1) as age } }""",
    "exists, and none": """{
        match { $p: Person  exists { $p knows $q  exists { $q follows $_ } }  not { $p livesIn $_ } }
        return { $p.name } }""",
    "either of two edge types": """{
        match { $p: Person  either { $p knows $q  $q.age > 1 } or { $p follows $q } }
        return { $p.name, $q.name } }""",
    "either without a new variable": """{
        match { $p: Person  either { $p.age > 8 } or { $p follows $_ } }
        return { $p.name, $p.age } }""",
    "edge alternatives, bound": """{
        match { $a: Person  $a $w:knows|follows $b }
        return { $a.name, $w.@type, $w.@id, $w.@src, $w.@dst, $w.since } }""",
    "any edge, along a walk": """{
        match { $a: Person { name: "c" }  $a *{1,2} $b }
        return { $b.name, $b.@type } }""",
    "an interface": """{
        match { $n: Named  optional { $p: Person  $p livesIn $n } }
        return { $n, $n.@type, $n.note, $p.name } }""",
    "entities of several types, counted": """{
        match { $n: Named  optional { $p: Person  $p livesIn $n } }
        return { $p.name, count(distinct $n) as c, collect($n.@type) as types } }""",
    "entities of several types, sorted": """{
        match { $p: Person  $p * $n }
        return { $n.name, $n.@type, $p.name } order { $n desc } limit 5 }""",
    "a condition along a walk": """{
        match { $p: Person  $p knows{1,3}[since <= 2] $q }
        return { $p.name, $q.name } order { $q.name desc } }""",
    "a condition along one hop": "{ match { $p: Person  $p knows[since > 2] $q } return { $p.name, $q.name } }",
    "paths": """{
        match { $p: Person  $p knows{1,3} $q as $w }
        return { $p.name, $q.name, hops($w) as h, nodes($w) as n, edges($w) as e } order { h desc } }""",
    "paths against the edges, of two types": """{
        match { $q: Person { name: "c" }  $p <knows|follows>{1,2} $q as $w }
        return { $p.name, hops($w) as h, nodes($w) as n, edges($w) as e } }""",
    "stages": """{
        match { $p: Person  $p knows $q }
        with { $p, count($q) as n, collect($q.name) as names } where n > 1 order { n desc } limit 2
        match { $p follows $r  $r.age = n }
        return { $p.name, n, names, $r.name } }""",
    "a stage that leaves a bag": """{
        match { $p: Person  $p knows $q } with { $q.age as a }
        match { $r: Person  $r.age = a }
        return { a, $r.name } order { a desc nulls last } }""",
    "aggregates that spread": """{
        match { $p: Person }
        return { sum($p.total) as t, avg($p.age) as m, count($p) as n, count(distinct $p.age) as d,
                 min($p.name) as l, max($p.big) as b } }""",
    "aggregates in order": """{
        match { $p: Person  $p knows $q }
        return { $p.age, collect($q.name) as names, collect(distinct $q.age) as ages, median($q.score) as m,
                 stddev($q.score) as s, sum(distinct $q.score) as t }
        having { count($q) > 1 } }""",
    "properties of one name and two types, each inside a block of its own": """{
        match { $n: Named  not { $n: Person  $n.total > 5 }  not { $n: City  $n.total = "few" } }
        return { $n.@type as t, $n.name } }""",
    "one of them where the variable is all of its types": """{
        match { $n: Named  optional { $n: City  $c: City  $c.total = $n.total } }
        return { $n, $c.total } }""",
    "aggregates over nothing": """{
        match { $p: Person  $p.age > 100000 }
        return { collect($p.name) as names, collect(distinct $p.age) as ages
                 median($p.age) as m, count($p) as n } }""",
    "collect over rows without a value": """{
        match { $p: Person  optional { $q: Person  $p knows $q  $q.age > 100000 } }
        return { collect($q.age) as ages, count($p) as n } }""",
    "groups by floats": "{ match { $p: Person } return { $p.score, count($p) as n, collect($p.name) as names } }",
    "distinct": """{
        match { $p: Person  $p knows $q }
        return distinct { $q.age, $q.age > 3 as old } order { $q.age desc } }""",
    "arithmetic, case and functions": """{
        match { $p: Person }
        return { $p.age + 1 as a, $p.age / 4 as q, $p.age % 3 as r, -$p.score as s,
                 case { when $p.age > 5 then "old" when $p.age > 1 then "young" else "?" } as c, upper($p.bio) as u,
                 round($p.score * 7.3, 2) as f, sqrt($p.age) as z, size($p.tags) as k, $p.tags[0] as t,
                 coalesce($p.note, $p.bio, "none") as o } }""",
    "conditions by functions": """{
        match { $p: Person  length($p.bio) > 4  $p.bio ends_with "fox" or $p.bio matches "r.d h[a-z]+"
                $p.note is null or $p.age in [2, 3] }
        return { $p.name } }""",
    "a condition that can fail, guarded": """{
        match { $p: Person  $p.age > 1  12 / ($p.age - 1) > 2 }
        return { $p.name, 12 / ($p.age - 1) as x } }""",
    "functions of values at their limits": """{
        match { $p: Person }
        return { round($p.score, 1) as a, floor($p.score) as b, ceil($p.score) as c, sqrt(abs($p.score)) as d,
                 ln(abs($p.score) + 1.0) as e, exp(least($p.score, 3.7)) as f, pow(least($p.score, 9.0), 3) as g,
                 to_string($p.score) as h, try_to_int($p.score) as i, to_float($p.total) as j, to_string($p.big) as k,
                 greatest($p.age, $p.score) as l, try_divide($p.total, $p.score) as m,
                 least($p.total, $p.age) as n } }""",
    "text, lists and days": """{
        match { $p: Person }
        return { replace($p.bio, $p.name, $p.name + "x") as a, split($p.bio, " ") as b, join($p.tags, $p.name) as c,
                 substring($p.bio, 0 - 3, $p.age) as d, $p.tags + [$p.name] as e, [$p.age, 7][1] as f,
                 date("2024-01-31") + months($p.age) as g, datetime("2024-02-29T23:59:59Z") - hours($p.age) as h,
                 date_trunc("week", date("2024-01-31") + days($p.age)) as i, $p.tags[0 - 1] as j } }""",
    "a distinct stage, undirected and bound": """{
        match { $a: Person  $a $w:<knows|follows> $b  not { $a livesIn $x  $x.size in [2, 3] } }
        with distinct { $b, $w.@type as kind }
        match { optional { $b livesIn $c } }
        return { $b.name, kind, $c.name, $c is null as nowhere } having { kind != "none" } order { kind desc } }""",
    "offset and nulls first": """{
        match { $p: Person }
        return { $p.name, $p.age } order { $p.age desc nulls first, $p.name } offset 1 limit 3 }""",
    "nulls last": "{ match { $p: Person } return { $p.name } order { $p.age nulls last } offset 2 }",
    "searches under or and not": """{
        match { $p: Person  search($p.bio, "fox") or $p.age > 8  not search($p.bio, "hen") or $p.bio is null }
        return { $p.name, match_all($p.bio, "fox hen") as both } }""",
    "match_all": '{ match { $p: Person  match_all($p.bio, "fox hen") } return { $p.name } }',
    "bm25 best first": '{ match { $p: Person } return { $p.name } order { bm25($p.bio, "fox red") } limit 2 }',
    "nearest, exactly": """{
        match { $p: Person }
        return { $p.name } order { nearest($p.face, [1.0, 0.5], exact: true) } limit 9 }""",
    "fusion best first": """{
        match { $p: Person }
        return { $p.name } order { rrf(nearest($p.face, [1.0, 0.5]), bm25($p.bio, "hen")) } limit 9 }""",
}

FAILURES: dict[str, str] = {
    "a sum that does not fit": "{ match { $p: Person } return { sum($p.big) as t } }",
    "a division by zero": "{ match { $p: Person } return { 1 / ($p.age - 1) as x } }",
    "a conversion that fails": "{ match { $p: Person  to_int($p.name) > 3 } return { $p.name } }",
    "a query vector of zeros": """{
        match { $p: Person }
        return { $p.name } order { nearest($p.face, [0.0, 0.0]) } limit 1 }""",
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    store = create_store(str(tmp_path_factory.mktemp("language") / "graph.omni"), SCHEMA)
    put_rows(store, rows())
    return store


def compiled(graph: GraphStore, text: str) -> ir.ReadQuery:
    query = compile_query(f"query q() {text}", graph.catalog(graph.snapshot().schema_digest))
    assert isinstance(query, ir.ReadQuery)
    return query


def in_process(graph: GraphStore, text: str) -> Any:
    snapshot = graph.snapshot()
    return run_in_process(graph, snapshot, graph.catalog(snapshot.schema_digest), compiled(graph, text), {})


def on_spark(spark: Any, graph: GraphStore, text: str) -> Any:
    from omnigraph.spark.query.run import run_query

    return run_query(spark, graph, graph.snapshot(), compiled(graph, text))


@pytest.mark.parametrize("name", QUERIES)
def test_equal_rows_in_equal_order(spark: Any, graph: GraphStore, name: str) -> None:
    expected, found = in_process(graph, QUERIES[name]), on_spark(spark, graph, QUERIES[name])
    assert found.rows() == expected.rows()
    assert found.schema == expected.schema
    assert found.to_arrow().equals(expected.to_arrow())


@pytest.mark.parametrize("name", FAILURES)
def test_equal_errors(spark: Any, graph: GraphStore, name: str) -> None:
    with pytest.raises(OmniGraphError) as expected:
        in_process(graph, FAILURES[name]).rows()
    with pytest.raises(OmniGraphError) as found:
        on_spark(spark, graph, FAILURES[name])
    assert found.value.to_json() == expected.value.to_json()


def test_every_function_gives_the_same_on_both_engines(spark: Any, graph: GraphStore) -> None:
    """The examples of the table of functions, each over a value that is known for each row only."""
    examples = [each.expression for function in FUNCTIONS.values() for each in function.examples if each.gives]
    columns = ", ".join(f"{of_the_row(text)} as c{at}" for at, text in enumerate(examples))
    query = f"{{ match {{ $p: Person }} return {{ {columns} }} }}"
    expected, found = in_process(graph, query), on_spark(spark, graph, query)
    assert found.schema == expected.schema
    assert found.to_arrow().equals(expected.to_arrow())


def of_the_row(text: str) -> str:
    """A call with its first argument, save null and the name of a unit, hidden behind a condition on the row."""
    parsed = parse_queries(f"query q {{ match {{ }} return {{ {text} as v }} }}").queries[0].body
    assert isinstance(parsed, syntax.Read)
    call = parsed.projections[0].expression
    assert isinstance(call, syntax.Call)
    args = [expression_text(arg) for arg in call.args]
    hidden = next(at for at, arg in enumerate(args) if arg != "null" and (call.function.text, at) != ("date_trunc", 0))
    args[hidden] = f"case {{ when $p.age > 1 then {args[hidden]} else {args[hidden]} }}"
    return f"{call.function.text}({', '.join(args)})"


def test_every_case_has_rows(graph: GraphStore) -> None:
    assert [name for name, text in QUERIES.items() if not len(in_process(graph, text))] == []
