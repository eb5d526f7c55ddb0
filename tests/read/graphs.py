"""A schema with every kind of property, random graphs of it, and random queries over it."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compile import compile_schema

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    score: F64?
    rate: F32?
    active: Bool
    level: enum(high, low, mid)?
    tags: [String]?
    born: Date?
    seen: DateTime?
    bio: String? @index
    big: U64?
    spot: Vector(2)?
}
node Team { title: String @key  size: I64? }
edge Knows: Person -> Person { since: I32?  note: String? }
edge MemberOf: Person -> Team { role: enum(lead, plain)? }
edge PartOf: Team -> Team
"""

CATALOG: Catalog = compile_schema(SCHEMA)

# Ids whose order by code point, by UTF-16 unit and without case all differ.
PERSON_IDS = ("a", "B", "b", "é", "z", "\uffff", "\U0001d11e", "10")
TEAM_IDS = ("a", "red", "\U0001f600")
WORDS = ("graph", "graphs", "Engine", "engines", "night", "light", "ab")
DATES = (datetime.date(1999, 12, 31), datetime.date(2026, 1, 2))
MOMENTS = (
    datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=datetime.UTC),
)
Database = dict[str, list[dict[str, Any]]]

texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


@st.composite
def databases(draw: st.DrawFn) -> Database:
    """A small graph: few nodes, many edges between them, parallel edges and self-loops included."""
    maybe = lambda values: st.none() | st.sampled_from(values)  # noqa: E731
    people = draw(st.lists(st.sampled_from(PERSON_IDS), unique=True, max_size=6))
    teams = draw(st.lists(st.sampled_from(TEAM_IDS), unique=True, max_size=3))
    persons = [
        {
            "id": name,
            "name": name,
            "age": draw(maybe((-1, 0, 18, 40))),
            "score": draw(maybe((-0.5, 0.0, 2.25))),
            "rate": draw(maybe((0.25, 3.5))),
            "active": draw(st.booleans()),
            "level": draw(maybe(("high", "low", "mid"))),
            "tags": draw(st.none() | st.lists(st.sampled_from(("x", "y", "Z")), max_size=2)),
            "born": draw(maybe(DATES)),
            "seen": draw(maybe(MOMENTS)),
            "bio": draw(st.none() | texts),
            "big": draw(maybe((0, 7, 2**64 - 1))),
            "spot": draw(maybe(((1.0, 0.0), (0.0, 1.0), (2.0, 0.0), (-1.0, 1.0), (0.0, 0.0)))),
        }
        for name in people
    ]
    for row in persons:
        row["spot"] = None if row["spot"] is None else list(row["spot"])
    knows = _edges(draw, "k", people, people, {"since": maybe((1, 2, 3)), "note": st.none() | texts})
    return {
        "node:Person": persons,
        "node:Team": [{"id": t, "title": t, "size": draw(maybe((1, 2**40)))} for t in teams],
        "edge:Knows": knows,
        "edge:MemberOf": _edges(draw, "m", people, teams, {"role": maybe(("lead", "plain"))}),
        "edge:PartOf": _edges(draw, "p", teams, teams, {}),
    }


def _edges(draw: Any, prefix: str, sources: list[str], targets: list[str], properties: dict[str, Any]) -> list[dict]:
    if not sources or not targets:
        return []
    pairs = draw(st.lists(st.tuples(st.sampled_from(sources), st.sampled_from(targets)), max_size=10))
    order = draw(st.permutations(range(len(pairs))))
    return [
        {"id": f"{prefix}{order[i]}", "src": src, "dst": dst, **{name: draw(s) for name, s in properties.items()}}
        for i, (src, dst) in enumerate(pairs)
    ]


def arrow_tables(database: Database, catalog: Catalog = CATALOG) -> dict[str, pa.Table]:
    """The database as Arrow tables."""
    return {key: pa.Table.from_pylist(rows, schema=table_schema(catalog.table(key))) for key, rows in database.items()}


# --- queries -----------------------------------------------------------------------------------------------------

EDGES = {"knows": ("Person", "Person"), "memberOf": ("Person", "Team"), "partOf": ("Team", "Team")}
SORTABLE = {
    "Person": ("name", "age", "score", "rate", "active", "level", "born", "seen", "bio", "big"),
    "Team": ("title", "size"),
    "knows": ("since", "note"),
    "memberOf": ("role",),
    "partOf": (),
}
LITERALS = {
    "name": ('"a"', '"B"', '"é"'),
    "age": ("0", "18", "40"),
    "score": ("0.0", "-0.5", "2"),
    "rate": ("0.25", "1"),
    "born": ('date("2026-01-02")',),
    "seen": ('datetime("2026-01-02T03:04:05Z")', "now()"),
    "bio": ('"graph"', '"graph engines"', '""'),
    "big": ("7", "18446744073709551615"),
    "title": ('"a"', '"red"'),
    "size": ("1", "2"),
    "since": ("1", "2"),
    "note": ('"ab"',),
    "level": ('"low"', '"mid"'),
    "role": ('"lead"',),
}
COMPARE = ("=", "!=", "<", "<=", ">", ">=")
VALUES = (
    "$x.age + 1",
    "$x.age * $x.score",
    "-$x.age",
    "10 / ($x.age + 2)",
    "coalesce($x.age, 0) % 7",
    'case { when $x.age > 10 then "old" when $x.active then "young" else $x.name }',
    "coalesce($x.bio, upper($x.name))",
    "size($x.tags)",
    "$x.tags[0]",
    "$x.@type",
    '$x.name + "!"',
)
CONDITIONS = ("since > 1", "since != 2", "since is null or since < 3", 'note contains "ra"')


class _Scope:
    """What a query has bound so far: variable to type or edge name."""

    def __init__(self, draw: Any, prefix: str = "v") -> None:
        self.draw = draw
        self.prefix = prefix
        self.nodes: dict[str, str] = {}
        self.edges: dict[str, str] = {}
        self.paths: list[str] = []

    def fresh(self) -> str:
        return f"{self.prefix}{len(self.nodes) + len(self.edges)}"

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))


def _hop(scope: _Scope, clauses: list[str], known: dict[str, str]) -> None:
    """A traversal that hangs on something known."""
    everything = {**known, **scope.nodes}
    start = scope.pick(everything)
    kind = everything[start]
    edge = scope.pick([name for name, ends in EDGES.items() if kind in ends])
    source, target = EDGES[edge]
    forward = scope.draw(st.booleans()) if source == target else kind == source
    other_kind = target if forward else source
    same = [var for var, k in everything.items() if k == other_kind]
    reuse = bool(same) and scope.draw(st.integers(0, 3)) == 0
    other = scope.pick(same) if reuse else scope.fresh()
    left, right = (start, other) if forward else (other, start)
    shape = scope.draw(st.integers(0, 5))
    if shape == 4 and edge == "knows":
        hops = scope.pick(("", "{1,2}", "{2,3}"))
        text = f"${left} {edge}{hops}[{scope.pick(CONDITIONS)}] ${right}"
    elif shape == 5 and source == target:
        path = f"{scope.prefix}path{len(scope.paths)}"
        scope.paths.append(path)
        around = scope.pick((edge, f"<{edge}>"))
        text = f"${left} {around}{{1,{scope.draw(st.integers(2, 3))}}} ${right} as ${path}"
    elif shape == 0 and source == target:
        text = f"${left} <{edge}> ${right}"
    elif shape == 1 and source == target:
        low = scope.draw(st.integers(1, 2))
        text = f"${left} {edge}{{{low},{low + scope.draw(st.integers(0, 2))}}} ${right}"
    elif shape == 2:
        if not reuse:
            scope.nodes[other] = other_kind
        name = scope.fresh()
        scope.edges[name] = edge
        text = f"${left} ${name}:{edge} ${right}"
    else:
        text = f"${left} {edge} ${right}"
    if not reuse:
        scope.nodes[other] = other_kind
    clauses.append(text)


def _filter(scope: _Scope, known: dict[str, str]) -> str:
    everything = {**known, **scope.nodes, **scope.edges}
    var = scope.pick(everything)
    names = SORTABLE[everything[var]]
    if not names:
        return "1 = 1"
    name = scope.pick(names)
    choice = scope.draw(st.integers(0, 9))
    left = f"${var}.{name}"
    if choice == 0:
        return f"{left} {scope.pick(('=', '!='))} null"
    if name == "active":
        return scope.pick((left, f"not {left}", f"{left} = true"))
    if choice == 1 and name in ("name", "bio", "note", "title"):
        return scope.pick((f'{left} contains "ra"', f'{left} starts_with "gr"', f'{left} contains "é"'))
    if choice == 2 and everything[var] == "Person":
        return scope.pick((f'${var}.tags contains "x"', f'"Z" in ${var}.tags'))
    if choice == 3 and name in ("age", "size", "since"):
        return f"{left} in [0, 1, 40]"
    if choice in (4, 5):
        same = [v for v, k in everything.items() if k == everything[var]]
        return (
            f"{left} {scope.pick(COMPARE if name not in ('level', 'role') else ('=', '!='))} ${scope.pick(same)}.{name}"
        )
    literal = scope.pick(LITERALS[name])
    return f"{left} {scope.pick(COMPARE if name not in ('level', 'role') else ('=', '!='))} {literal}"


def _condition(scope: _Scope, known: dict[str, str]) -> str:
    shape = scope.draw(st.integers(0, 6))
    one = _filter(scope, known)
    if shape == 6 and (search := _search(scope)):
        return scope.pick((f"({one} or {search})", f"not {search}"))
    if shape == 0:
        return f"({one} or {_filter(scope, known)})"
    if shape == 1:
        return f"not ({one} and {_filter(scope, known)})"
    return one


def _search(scope: _Scope) -> str | None:
    people = [var for var, kind in scope.nodes.items() if kind == "Person"]
    if not people:
        return None
    query = scope.pick(("graph", "engine night", "grph", "ligt", "xyz", ""))
    name = scope.pick(("search", "match_text", "fuzzy"))
    return f'{name}(${scope.pick(people)}.bio, "{query}")'


def _block(scope: _Scope, known: dict[str, str], depth: int) -> list[str]:
    clauses: list[str] = []
    if not known or scope.draw(st.integers(0, 3)) == 0:
        kind = scope.pick(("Person", "Person", "Team"))
        var = scope.fresh()
        scope.nodes[var] = kind
        inline = ' { name: "a" }' if kind == "Person" and scope.draw(st.integers(0, 4)) == 0 else ""
        clauses.append(f"${var}: {kind}{inline}")
    for _ in range(scope.draw(st.integers(0 if clauses else 1, 2))):
        _hop(scope, clauses, known)
    clauses.extend(_condition(scope, known) for _ in range(scope.draw(st.integers(0, 2))))
    if scope.draw(st.integers(0, 4)) == 0 and (found := _search(scope)):
        clauses.append(found)
    if depth and scope.draw(st.integers(0, 2)) == 0:
        # Two blocks side by side use the same names for what they bind.
        count = scope.draw(st.integers(1, 2))
        clauses.extend(_without(scope, {**known, **scope.nodes}, depth) for _ in range(count))
    if depth and scope.draw(st.integers(0, 3)) == 0:
        clauses.append(_either(scope, {**known, **scope.nodes}))
    if depth and scope.draw(st.integers(0, 3)) == 0:
        clauses.append(_optional(scope, {**known, **scope.nodes}))
    return clauses


def _optional(scope: _Scope, known: dict[str, str]) -> str:
    """What it binds is bound in the block around it from here on."""
    inner = _Scope(scope.draw, f"{scope.prefix}o")
    clauses: list[str] = []
    _hop(inner, clauses, known)
    if inner.draw(st.booleans()):
        clauses.append(_condition(inner, known))
    scope.nodes.update(inner.nodes)
    scope.edges.update(inner.edges)
    scope.paths += inner.paths
    return "optional { " + "  ".join(clauses) + " }"


def _either(scope: _Scope, known: dict[str, str]) -> str:
    """Two arms that bind one more node of one kind, by one edge each way."""
    start = scope.pick(known)
    kind = known[start]
    edge = {"Person": "knows", "Team": "partOf"}[kind]
    other = f"{scope.prefix}e"
    arms = [f"${start} {edge} ${other}", f"${other} {edge} ${start}"]
    if scope.draw(st.booleans()):
        inner = _Scope(scope.draw, f"{scope.prefix}x")
        inner.nodes[other] = kind
        arms[1] += "  " + _condition(inner, known)
    scope.nodes[other] = kind
    return f"either {{ {arms[0]} }} or {{ {arms[1]} }}"


def _without(scope: _Scope, known: dict[str, str], depth: int) -> str:
    inner = _Scope(scope.draw, f"{scope.prefix}n")
    clauses: list[str] = []
    _hop(inner, clauses, known)
    if inner.draw(st.booleans()):
        clauses.append(_condition(inner, known))
    if depth > 1 and inner.draw(st.integers(0, 2)) == 0:
        clauses.append(_without(inner, {**known, **inner.nodes}, depth - 1))
    return scope.pick(("not", "exists")) + " { " + "  ".join(clauses) + " }"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """The text of a read that compiles against `SCHEMA`."""
    scope = _Scope(draw)
    clauses = _block(scope, {}, 2)
    if draw(st.integers(0, 5)) == 0 and len(scope.nodes) < 3:
        var = scope.fresh()
        scope.nodes[var] = "Team"
        clauses.append(f"${var}: Team")
    bound = {**scope.nodes, **scope.edges}
    grouped = draw(st.integers(0, 2)) == 0
    columns = _aggregates(scope, bound) if grouped else _columns(scope, bound)
    order = _order(scope, bound, columns, grouped)
    limit = draw(st.none() | st.integers(0, 5))
    distinct = "distinct " if not grouped and "(" not in order and draw(st.integers(0, 6)) == 0 else ""
    if distinct:
        order = ""
    if "nearest" in order + " ".join(columns) or "rrf" in order:
        limit = limit if limit is not None else 4
    text = "query q() { match { " + "\n  ".join(clauses) + " }\n " + _stage(scope)
    text += f"return {distinct}{{ " + ", ".join(columns) + " }"
    counts = [column.rsplit(" as ", 1)[1] for column in columns if column.startswith("count(")]
    if grouped and counts and draw(st.integers(0, 2)) == 0:
        text += f"\n having {{ {counts[0]} > 1 }}"
    if order:
        text += f"\n order {{ {order} }}"
    if draw(st.integers(0, 4)) == 0:
        text += f"\n offset {draw(st.integers(0, 3))}"
    return text + (f"\n limit {limit} }}" if limit is not None else " }")


def _stage(scope: _Scope) -> str:
    """Sometimes a stage that hands everything on, and a block after it."""
    if scope.draw(st.integers(0, 5)) or scope.paths:
        return ""
    names = [*scope.nodes, *scope.edges]
    count = f", count(${scope.pick(scope.nodes)}) as ways" if scope.draw(st.booleans()) else ""
    passed = ", ".join("$" + name for name in names)
    where = " where ways > 0" if count and scope.draw(st.booleans()) else ""
    cut = f" order {{ ${names[0]}.@id desc }} limit 4" if scope.draw(st.booleans()) else ""
    following: list[str] = []
    later = _Scope(scope.draw, "z")
    _hop(later, following, dict(scope.nodes))
    if scope.draw(st.booleans()):
        following.append(_condition(later, dict(scope.nodes)))
    return f"with {{ {passed}{count} }}{where}{cut} match {{ {'  '.join(following)} }}\n "


def _columns(scope: _Scope, bound: dict[str, str]) -> list[str]:
    columns = []
    for number in range(scope.draw(st.integers(1, 3))):
        var = scope.pick(bound)
        names = SORTABLE[bound[var]]
        if not names or scope.draw(st.integers(0, 3)) == 0:
            columns.append(f"${var} as c{number}")
        else:
            columns.append(f"${var}.{scope.pick(names)} as c{number}")
    if scope.draw(st.integers(0, 5)) == 0:
        columns.append(f"{_filter(scope, {})} as flag")
    if scope.paths:
        columns.append(f"{scope.pick(('hops', 'nodes', 'edges'))}(${scope.pick(scope.paths)}) as walk")
    people = [var for var, kind in scope.nodes.items() if kind == "Person"]
    if people and scope.draw(st.integers(0, 3)) == 0:
        columns.append(scope.pick(VALUES).replace("$x", "$" + scope.pick(people)) + " as computed")
    if people and scope.draw(st.integers(0, 5)) == 0:
        columns.append(f'bm25(${scope.pick(people)}.bio, "graph night") as score')
    return columns


def _aggregates(scope: _Scope, bound: dict[str, str]) -> list[str]:
    columns = []
    for number in range(scope.draw(st.integers(0, 2))):
        var = scope.pick(bound)
        names = SORTABLE[bound[var]]
        whole = not names or scope.draw(st.integers(0, 3)) == 0
        columns.append(f"${var} as k{number}" if whole else f"${var}.{scope.pick(names)} as k{number}")
    for number in range(scope.draw(st.integers(1, 2))):
        var = scope.pick(bound)
        numbers = [n for n in ("age", "score", "rate", "big", "size", "since") if n in SORTABLE[bound[var]]]
        ordered = [n for n in SORTABLE[bound[var]] if n not in ("level", "role")]
        choice = scope.draw(st.integers(0, 3))
        if choice == 0 and numbers:
            function = scope.pick(("sum", "avg", "median", "stddev", "sum(distinct", "avg(distinct"))
            called = function + " " if "(" in function else function + "("
            columns.append(f"{called}${var}.{scope.pick(numbers)}) as a{number}")
        elif choice == 1 and ordered:
            columns.append(f"{scope.pick(('min', 'max'))}(${var}.{scope.pick(ordered)}) as a{number}")
        elif choice == 2 and SORTABLE[bound[var]]:
            called = scope.pick(("count(", "count(distinct ", "collect(", "collect(distinct "))
            columns.append(f"{called}${var}.{scope.pick(SORTABLE[bound[var]])}) as a{number}")
        else:
            columns.append(f"count(${var}) as a{number}")
    return columns


def _order(scope: _Scope, bound: dict[str, str], columns: list[str], grouped: bool) -> str:
    if scope.draw(st.booleans()):
        return ""
    direction = scope.pick(("", " desc", " asc", " nulls last", " desc nulls first"))
    if grouped or scope.draw(st.integers(0, 2)) == 0:
        sortable = [c for c in columns if ("." in c or "(" in c) and not c.startswith("collect") and "walk" not in c]
        aliases = [c.rsplit(" as ", 1)[1] for c in sortable]
        return f"{scope.pick(aliases)}{direction}" if aliases else ""
    people = [var for var, kind in scope.nodes.items() if kind == "Person"]
    choice = scope.draw(st.integers(0, 4))
    if people and choice == 0:
        return f"nearest(${scope.pick(people)}.spot, [1.0, 0.5])"
    if people and choice == 1:
        var = scope.pick(people)
        return f'rrf(nearest(${var}.spot, [1.0, 0.5]), bm25(${scope.pick(people)}.bio, "graph engines"))'
    var = scope.pick(bound)
    names = SORTABLE[bound[var]]
    return f"${var}.{scope.pick(names)}{direction}" if names else ""
