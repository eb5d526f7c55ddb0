"""Every operator of the IR by itself, on random graphs: the executor and the reference evaluator agree."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.config import override
from omnigraph.query import ir
from omnigraph.query.typing import F64, I64, STRING, type_of
from omnigraph.read.run import run_on
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import ArrowTables
from omnigraph.schema.types import EntityType, ListType, Scalar, ScalarType
from tests.read.graphs import CATALOG, arrow_tables, databases
from tests.read.reference import Reference
from tests.read.test_agreement import same

PERSON, TEAM = "node:Person", "node:Team"
BOTH = (PERSON, TEAM)
TEXTS = ListType(Scalar.STRING)
OUT, IN, EITHER_WAY = ir.Direction.OUT, ir.Direction.IN, ir.Direction.BOTH


def age(var: str) -> ir.Prop:
    return ir.Prop(var, "age", ScalarType(Scalar.I32), True)


def entity(var: str, key: str = PERSON, nullable: bool = False) -> ir.Entity:
    return ir.Entity(var, EntityType(key), nullable)


def knows(input_: ir.Operator, from_: str, to: str, **more) -> ir.Expand:
    return ir.Expand(input_, from_, "Knows", more.pop("direction", OUT), to, PERSON, **more)


def since(op: ir.CompareOp, value: int, var: str = ir.EDGE) -> ir.Compare:
    return ir.Compare(op, ir.Prop(var, "since", ScalarType(Scalar.I32), True), ir.Literal(value, I64))


def query(
    tree: ir.Operator,
    columns: dict[str, ir.Expr],
    variables: tuple[ir.Variable, ...],
    keys: tuple[ir.SortKey, ...] = (),
    tie_break: tuple[str, ...] | None = None,
    limit: tuple[int | None, int | None] | None = None,
    every: tuple[ir.Variable, ...] = (),
) -> ir.ReadQuery:
    """A whole read over a tree."""
    names = tuple(v.name for v in variables) if tie_break is None else tie_break
    tree = ir.Sort(tree, keys, names)
    if limit is not None:
        count, offset = (None if each is None else ir.Literal(each, I64) for each in limit)
        tree = ir.Limit(tree, count, offset)
    made = tuple(ir.Column(name, expr, type_of(expr), True) for name, expr in columns.items())
    result = tuple(ir.ResultColumn(c.name, c.type, True) for c in made)
    return ir.ReadQuery("q", (), ir.Project(tree, made), result, variables, (), all_variables=variables + every)


P, Q, R = ir.Variable("p", PERSON), ir.Variable("q", PERSON), ir.Variable("r", PERSON)
Q_NULL, T_NULL = ir.Variable("q", PERSON, nullable=True), ir.Variable("t", TEAM, nullable=True)
PEOPLE = ir.Scan("p", PERSON)
OUTER_P = ir.Outer(("p",))
NAMES = {"p": ir.Prop("p", "name", STRING), "q": ir.Prop("q", "name", STRING, True)}
WALK = {
    "hops": ir.PathValue("w", ir.PathPart.HOPS, I64, True),
    "nodes": ir.PathValue("w", ir.PathPart.NODES, TEXTS, True),
    "edges": ir.PathValue("w", ir.PathPart.EDGES, TEXTS, True),
}
X = ir.Variable("x", "node:Person|Team", BOTH)
ANY_EDGE = {"edge": "Knows|MemberOf|PartOf", "edges": ("Knows", "MemberOf", "PartOf")}


def either(input_: ir.Operator) -> ir.Either:
    arms = (knows(OUTER_P, "p", "q"), knows(OUTER_P, "p", "q", direction=IN))
    return ir.Either(input_, arms, ("p",), (Q,))


def mixed(**more) -> ir.Expand:
    """From a person to whatever is there."""
    return ir.Expand(
        PEOPLE,
        "p",
        ANY_EDGE["edge"],
        more.pop("direction", OUT),
        "x",
        X.table_key,
        edges=ANY_EDGE["edges"],
        to_tables=BOTH,
        **more,
    )


OLDER = ir.Compare(ir.CompareOp.GT, age("q"), ir.Literal(0, I64))
OPTIONAL = ir.Optional(PEOPLE, ir.Filter(knows(OUTER_P, "p", "q"), OLDER), ("p",), (Q_NULL,))
TEAMS = ir.Expand(ir.Outer(("q",)), "q", "MemberOf", OUT, "t", TEAM)
STAGE = ir.Stage(
    ir.GroupBy(
        knows(PEOPLE, "p", "q"),
        (ir.Column("p", entity("p"), EntityType(PERSON)),),
        (ir.Column("n", ir.Aggregate(ir.AggregateFunction.COUNT, entity("q")), I64),),
    ),
    ("p",),
    (ir.Column("n", ir.ColumnRef("n", I64), I64),),
)


def grouped(*aggregates: ir.Aggregate) -> ir.ReadQuery:
    made = tuple(ir.Column(f"a{n}", a, type_of(a), True) for n, a in enumerate(aggregates))
    tree = ir.GroupBy(knows(PEOPLE, "p", "q"), (ir.Column("k", age("p"), I64, True),), made, ("p", "q"))
    columns = {c.name: ir.ColumnRef(c.name, c.type, True) for c in (*tree.keys, *made)}
    return query(tree, columns, (P, Q), tie_break=("k",))


F = ir.AggregateFunction
QUERIES = {
    "optional": query(OPTIONAL, {**NAMES, "whole": entity("q", nullable=True)}, (P, Q_NULL)),
    "optional after optional": query(
        ir.Optional(OPTIONAL, TEAMS, ("q",), (T_NULL,)),
        {**NAMES, "t": ir.Prop("t", "title", STRING, True)},
        (P, Q_NULL, T_NULL),
    ),
    "a filter above an optional": query(ir.Filter(OPTIONAL, ir.IsNull(entity("q", nullable=True))), NAMES, (P, Q_NULL)),
    "not from what may be null": query(ir.AntiJoin(OPTIONAL, TEAMS, ("q",)), NAMES, (P, Q_NULL), every=(T_NULL,)),
    "a walk from what may be null": query(knows(OPTIONAL, "q", "r", max_hops=2), NAMES, (P, Q_NULL, R)),
    "an edge between what may be null": query(knows(OPTIONAL, "q", "p", to_bound=True), NAMES, (P, Q_NULL)),
    "optional of nothing bound": query(
        ir.Optional(
            PEOPLE,
            ir.Filter(ir.Scan("q", PERSON), ir.Compare(ir.CompareOp.EQ, age("q"), ir.Literal(18, I64))),
            (),
            (Q_NULL,),
        ),
        NAMES,
        (P, Q_NULL),
    ),
    "optional path": query(
        ir.Optional(
            PEOPLE,
            knows(OUTER_P, "p", "q", min_hops=2, max_hops=3, path_var="w", path_start="p"),
            ("p",),
            (Q_NULL,),
            paths=("w",),
        ),
        {**NAMES, **WALK},
        (P, Q_NULL),
    ),
    "exists": query(ir.SemiJoin(PEOPLE, knows(OUTER_P, "p", "q"), ("p",)), {"p": NAMES["p"]}, (P,), every=(Q,)),
    "exists with a condition": query(
        ir.SemiJoin(
            PEOPLE,
            ir.Filter(knows(OUTER_P, "p", "q"), ir.Compare(ir.CompareOp.LT, age("p"), age("q"))),
            ("p",),
        ),
        {"p": NAMES["p"]},
        (P,),
        every=(Q,),
    ),
    "either": query(either(PEOPLE), NAMES, (P, Q)),
    "either, and on from there": query(knows(either(PEOPLE), "q", "r"), {**NAMES, "r": age("r")}, (P, Q, R)),
    "either without bindings": query(
        ir.Either(
            PEOPLE,
            (ir.Expand(OUTER_P, "p", "MemberOf", OUT, "t", TEAM), knows(OUTER_P, "p", "p", to_bound=True)),
            ("p",),
            (),
        ),
        {"p": NAMES["p"]},
        (P,),
        every=(ir.Variable("t", TEAM),),
    ),
    "either of scans": query(
        ir.Either(ir.Unit(), (ir.Scan("x", PERSON), ir.Scan("x", TEAM)), (), (X,)),
        {"id": ir.Prop("x", "id", STRING), "type": ir.TypeOf("x"), "x": entity("x", X.table_key)},
        (X,),
    ),
    "several tables": query(
        ir.Scan("x", X.table_key, BOTH),
        {"x": entity("x", X.table_key), "type": ir.TypeOf("x")},
        (X,),
        keys=(ir.SortKey(ir.TypeOf("x"), descending=True),),
    ),
    "several tables by type": query(
        ir.Filter(
            ir.Scan("x", X.table_key, BOTH), ir.Compare(ir.CompareOp.EQ, ir.TypeOf("x"), ir.Literal("Team", STRING))
        ),
        {"x": entity("x", X.table_key)},
        (X,),
    ),
    "edge alternatives": query(mixed(), {"p": NAMES["p"], "x": entity("x", X.table_key)}, (P, X)),
    "a walk over alternatives": query(
        mixed(min_hops=1, max_hops=3, path_var="w", path_start="p"),
        {"p": NAMES["p"], "x": ir.Prop("x", "id", STRING), **WALK},
        (P, X),
    ),
    "an edge of several types": query(
        mixed(edge_var="e"),
        {
            "p": NAMES["p"],
            "x": ir.Prop("x", "id", STRING),
            "e": entity("e", "edge:Knows|MemberOf|PartOf"),
            "t": ir.TypeOf("e"),
        },
        (P, ir.Variable("e", "edge:Knows|MemberOf|PartOf", ("edge:Knows", "edge:MemberOf", "edge:PartOf")), X),
    ),
    "a condition on an edge": query(knows(PEOPLE, "p", "q", where=since(ir.CompareOp.GE, 2)), NAMES, (P, Q)),
    "a condition along a walk": query(
        knows(PEOPLE, "p", "q", min_hops=2, max_hops=3, where=since(ir.CompareOp.LE, 2), direction=EITHER_WAY),
        NAMES,
        (P, Q),
    ),
    "a checked walk under a condition": query(
        knows(
            knows(PEOPLE, "p", "q"),
            "q",
            "p",
            max_hops=3,
            where=since(ir.CompareOp.GE, 2),
            to_bound=True,
            path_var="w",
            path_start="p",
        ),
        {**NAMES, **WALK},
        (P, Q),
    ),
    "a path": query(knows(PEOPLE, "p", "q", max_hops=4, path_var="w", path_start="p"), {**NAMES, **WALK}, (P, Q)),
    "a path against the edges": query(
        knows(PEOPLE, "p", "q", max_hops=3, direction=IN, path_var="w", path_start="q"), {**NAMES, **WALK}, (P, Q)
    ),
    "a path either way": query(
        knows(PEOPLE, "p", "q", max_hops=3, direction=EITHER_WAY, path_var="w", path_start="q"),
        {**NAMES, **WALK},
        (P, Q),
    ),
    "a stage": query(STAGE, {"p": NAMES["p"], "n": ir.ColumnRef("n", I64)}, (P,), tie_break=("p", "n")),
    "a block after a stage": query(
        ir.Filter(
            ir.Expand(STAGE, "p", "MemberOf", OUT, "t", TEAM),
            ir.Compare(ir.CompareOp.GT, ir.ColumnRef("n", I64), ir.Literal(1, I64)),
        ),
        {"p": NAMES["p"], "t": ir.Prop("t", "title", STRING), "n": ir.ColumnRef("n", I64)},
        (P, ir.Variable("t", TEAM)),
        tie_break=("p", "n", "t"),
    ),
    "a column inside exists": query(
        ir.SemiJoin(
            STAGE,
            ir.Filter(
                knows(ir.Outer(("p",), ("n",)), "p", "r"),
                ir.Compare(ir.CompareOp.LT, ir.ColumnRef("n", I64), age("r")),
            ),
            ("p",),
            ("n",),
        ),
        {"p": NAMES["p"]},
        (P,),
        every=(R,),
    ),
    "an unrelated block after a stage": query(
        ir.Filter(
            ir.Join(STAGE, ir.Scan("t", TEAM)),
            ir.Compare(ir.CompareOp.GE, ir.Prop("t", "size", I64, True), ir.ColumnRef("n", I64)),
        ),
        {"p": NAMES["p"], "t": ir.Prop("t", "title", STRING)},
        (P, ir.Variable("t", TEAM)),
        tie_break=("p", "n", "t"),
    ),
    "a stage with a limit": query(
        knows(
            ir.Stage(
                ir.Limit(
                    ir.Sort(PEOPLE, (ir.SortKey(age("p"), True),), ("p",)), ir.Literal(2, I64), ir.Literal(1, I64)
                ),
                ("p",),
                (),
            ),
            "p",
            "q",
        ),
        NAMES,
        (P, Q),
    ),
    "nulls last": query(PEOPLE, {"a": age("p")}, (P,), keys=(ir.SortKey(age("p"), False, False),)),
    "nulls first, descending": query(
        PEOPLE, {"a": age("p")}, (P,), keys=(ir.SortKey(age("p"), True, True),), limit=(3, 1)
    ),
    "an offset alone": query(PEOPLE, {"p": NAMES["p"]}, (P,), limit=(None, 2)),
    "aggregates": grouped(
        ir.Aggregate(F.COUNT, entity("q")),
        ir.Aggregate(F.COUNT, entity("q"), distinct=True),
        ir.Aggregate(F.COUNT, age("q"), distinct=True),
        ir.Aggregate(F.COLLECT, ir.Prop("q", "name", STRING)),
        ir.Aggregate(F.COLLECT, age("q"), distinct=True),
        ir.Aggregate(F.MEDIAN, age("q")),
        ir.Aggregate(F.STDDEV, age("q")),
        ir.Aggregate(F.SUM, age("q"), distinct=True),
        ir.Aggregate(F.AVG, ir.Prop("q", "score", F64, True), distinct=True),
        ir.Aggregate(F.MAX, ir.Prop("q", "name", STRING)),
    ),
    "distinct": query(
        ir.GroupBy(knows(PEOPLE, "p", "q"), (ir.Column("k", age("q"), I64, True),), ()),
        {"k": ir.ColumnRef("k", I64, True)},
        (P, Q),
        tie_break=("k",),
    ),
    "a search among other conditions": query(
        ir.Filter(
            PEOPLE,
            ir.Or(
                (
                    ir.TextMatch(ir.TextPredicate.SEARCH, "p", PERSON, "bio", ir.Literal("graph", STRING)),
                    ir.Compare(ir.CompareOp.GT, age("p"), ir.Literal(10, I64)),
                )
            ),
        ),
        {"p": NAMES["p"]},
        (P,),
    ),
    "a search that must not match": query(
        ir.Filter(
            OPTIONAL,
            ir.Not(ir.TextMatch(ir.TextPredicate.MATCH_ALL, "q", PERSON, "bio", ir.Literal("graph engines", STRING))),
        ),
        NAMES,
        (P, Q_NULL),
    ),
    "a ranking of what may be null": query(
        ir.Rank(OPTIONAL, ir.Bm25("q", PERSON, "bio", ir.Literal("graph night", STRING)), "s"),
        {**NAMES, "s": ir.ColumnRef("s", F64, True)},
        (P, Q_NULL),
    ),
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(database=databases(), name=st.sampled_from(sorted(QUERIES)))
def test_every_operator_agrees_with_the_reference(database, name):
    check(database, name)


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_every_operator_agrees_on_a_dense_graph(name):
    check(DENSE, name)


def check(database, name):
    """Both forms of expansion find what the reference finds."""
    compiled = QUERIES[name]
    expected = Reference(CATALOG, database, now=datetime.datetime.now(datetime.UTC)).run(compiled)
    tables = arrow_tables(database)
    for mode in ("csr", "indexed"):
        with override(traversal_mode=mode):
            result = run_on(ArrowTables(tables), CATALOG, ReadCaches(), compiled)
            found = result.rows()
        assert same(found, expected), f"{mode}: {result.explain()}\nfound    {found}\nexpected {expected}"


def _dense():
    from tests.read.asking import graph, person

    people = [
        person(name, age=n * 9 % 40 if n % 4 else None, score=n / 2, bio="graph engines" if n % 2 else "night")
        for n, name in enumerate(("a", "B", "b", "é", "z", "10"))
    ]
    ids = [row["id"] for row in people]
    pairs = [(ids[x], ids[y]) for x, y in ((0, 1), (0, 1), (1, 2), (2, 3), (3, 0), (3, 3), (4, 2), (0, 4), (4, 3))]
    made = graph(
        people,
        [(one, two, {"since": at % 4}) for at, (one, two) in enumerate(pairs)],
        teams="a red",
        member_of=[("a", "a"), ("B", "red"), ("b", "a"), ("a", "red")],
        part_of=[("a", "red"), ("red", "a"), ("red", "red")],
    )
    for at, team in enumerate(made["node:Team"]):
        team["size"] = at + 1
    return made


DENSE = _dense()
