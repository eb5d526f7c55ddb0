"""Random well-typed read queries over any catalog, as text with parameter values.

    @given(query=read_queries(CATALOG))
    def test_something(query): compile_query(query.source, CATALOG); run(query.source, query.params)

They use every construct that does not need an index: traversals in both directions, undirected, of variable length,
with bound edges and anonymous variables, self-loops, products, inline properties, `not` blocks (nested ones too),
Boolean expressions, null tests, membership, text predicates, aggregates, aliases, order and limit. Values come from a
small pool, so that conditions hold now and then; `values` replaces the pool.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from omnigraph.schema.catalog import Catalog, EdgeType, GraphType
from omnigraph.schema.literals import encode_string
from omnigraph.schema.types import (
    NUMBERS,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
    is_blob,
    is_number,
    is_text,
)

Values = Callable[[PropertyType], st.SearchStrategy[Any]]

_TEXTS = ("", "a", "ab", "b", "A", "é", "%", "_", "x", "10")
_MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class RandomQuery:
    """A query text that compiles, and a value for each of its parameters (JSON data)."""

    source: str
    params: dict[str, Any]


def pool(type_: PropertyType) -> st.SearchStrategy[Any]:
    """A few values of a type, as Python values."""
    match type_:
        case EnumType(values):
            return st.sampled_from(values)
        case ListType(item):
            return st.lists(pool(ScalarType(item)), max_size=2)
        case VectorType(dim):
            return st.lists(st.sampled_from((0.0, 1.0, -2.0)), min_size=dim, max_size=dim)
        case ScalarType(Scalar.BOOL):
            return st.booleans()
        case ScalarType(Scalar.STRING):
            return st.sampled_from(_TEXTS)
        case ScalarType(Scalar.DATE):
            return st.sampled_from((datetime.date(1999, 12, 31), datetime.date(2026, 1, 2)))
        case ScalarType(Scalar.DATETIME):
            return st.sampled_from((_MOMENT, _MOMENT.replace(microsecond=600000)))
        case ScalarType(Scalar.F32 | Scalar.F64):
            return st.sampled_from((-1.5, 0.0, 0.25, 1.0, 3.5))
        case ScalarType(Scalar.U32 | Scalar.U64):
            return st.sampled_from((0, 1, 2, 7))
        case ScalarType(Scalar.I32 | Scalar.I64):
            return st.sampled_from((-1, 0, 1, 2, 18))
        case _:
            raise TypeError(f"no values of {type_}")


@st.composite
def read_queries(draw: st.DrawFn, catalog: Catalog, values: Values = pool, *, max_hops: int = 4) -> RandomQuery:
    """A random read. At most `max_hops` traversals in the match block, so that results stay small."""
    return _Writer(draw, catalog, values, max_hops).query()


@dataclass(frozen=True)
class _Column:
    """A property of a bound variable that can be used as a value."""

    variable: str
    name: str
    type: PropertyType

    def __str__(self) -> str:
        return f"${self.variable}.{self.name}"


@dataclass
class _Writer:
    draw: st.DrawFn
    catalog: Catalog
    values: Values
    max_hops: int
    params: dict[str, Any] = field(default_factory=dict)
    declared: list[str] = field(default_factory=list)
    names: int = 0

    # --- drawing

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(0, one_in - 1)) == 0

    def pick(self, items: Any) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # --- the query

    def query(self) -> RandomQuery:
        bound: dict[str, GraphType] = {}
        clauses = self.pattern(bound, self.max_hops)
        clauses += [self.condition(bound, 2) for _ in range(self.draw(st.integers(0, 2)))]
        clauses += [self.not_block(bound, 2) for _ in range(self.draw(st.integers(0, 1)))]
        clauses = self.draw(st.permutations(clauses))
        result = self.result(bound)
        body = "\n    ".join(clauses)
        parameters = f"({', '.join(self.declared)})" if self.declared else ""
        return RandomQuery(f"query q{parameters} {{\n  match {{\n    {body}\n  }}\n{result}}}\n", self.params)

    def pattern(self, bound: dict[str, GraphType], hops: int) -> list[str]:
        """Bindings and traversals; extends `bound`. Every variable is connected or declared."""
        declared: set[str] = set()
        first = self.fresh("v")
        bound[first] = self.pick(self.catalog.nodes)
        declared.add(first)
        clauses: list[str] = []
        for _ in range(self.draw(st.integers(0, hops)) if self.catalog.edges else 0):
            clause = self.traversal(bound)
            if clause is not None:
                clauses.append(clause)
        if self.chance(6):
            other = self.fresh("v")
            bound[other] = self.pick(self.catalog.nodes)
            declared.add(other)
        for name, table in bound.items():
            if name in declared or (table.kind == "node" and self.chance(3)):
                clauses.append(self.binding(name, table))
        return clauses

    def binding(self, name: str, table: GraphType) -> str:
        inline: list[str] = []
        if self.chance(4):
            column = self.pick(self.columns({name: table}))
            type_ = ScalarType(column.type.item) if isinstance(column.type, ListType) else column.type
            if not isinstance(column.type, VectorType):
                value = "null" if self.chance(4) else self.constant(type_)
                inline = [f"{column.name}: {value}"]
        properties = f" {{ {', '.join(inline)} }}" if inline else ""
        return f"${name}: {table.name}{properties}"

    def traversal(self, bound: dict[str, GraphType], *, named: bool = True) -> str | None:
        """One traversal from a bound variable, to a new, a bound or an anonymous one. Extends `bound`."""
        nodes = {name: table for name, table in bound.items() if table.kind == "node"}
        start = self.pick(nodes)
        edges = self.catalog.edges_touching(nodes[start].name)
        if not edges:
            return None
        edge: EdgeType = self.pick(edges)
        forward = edge.source == nodes[start].name and (edge.source != edge.target or self.draw(st.booleans()))
        far = self.catalog.node(edge.target if forward else edge.source)
        assert far is not None
        known = [name for name, table in nodes.items() if table == far]
        if self.chance(8):
            end = "_"
        elif known and self.chance(3):
            end = self.pick(known)
        else:
            end = self.fresh("v")
            bound[end] = far
        written = self.pick((edge.name, edge.name[0].lower() + edge.name[1:]))
        loop = edge.source == edge.target
        if loop and self.chance(3):
            written = f"<{written}>"
        if self.chance(4):
            variable = self.fresh("e") if named and not self.chance(5) else "_"
            if variable != "_":
                bound[variable] = edge
            written = f"${variable}:{written}"
        elif loop and self.chance(3):
            low = self.draw(st.integers(1, 3))
            written += f"{{{low},{self.draw(st.integers(low, 3))}}}"
        source, target = (start, end) if forward else (end, start)
        return f"${source} {written} ${target}"

    def not_block(self, outer: dict[str, GraphType], depth: int) -> str:
        bound = dict(outer)
        clauses: list[str] = []
        if self.catalog.edges and not self.chance(4):
            clause = self.traversal(bound)
            if clause is not None:
                clauses.append(clause)
        if not clauses:
            clauses.append(self.condition(outer, 1, certain=True))
        inner = {name: table for name, table in bound.items() if name not in outer}
        if inner and self.chance(2):
            clauses.append(self.condition(bound, 1))
        if self.chance(6):
            name = self.pick([name for name, table in outer.items() if table.kind == "node"])
            clauses.append(self.binding(name, outer[name]))
        if depth > 1 and self.chance(4):
            clauses.append(self.not_block(bound, depth - 1))
        return f"not {{ {' '.join(clauses)} }}"

    # --- expressions

    def columns(self, bound: dict[str, GraphType]) -> list[_Column]:
        """Everything that can be looked at. Always includes the ids."""
        found = [_Column(name, "id", ScalarType(Scalar.STRING)) for name in bound]
        for name, table in bound.items():
            if table.kind == "edge":
                found += [_Column(name, end, ScalarType(Scalar.STRING)) for end in ("from", "to")]
            found += [_Column(name, p.name, p.type) for p in table.properties if not is_blob(p.type)]
        return found

    def condition(self, bound: dict[str, GraphType], depth: int, *, certain: bool = False) -> str:
        """A Boolean expression. `certain`: it looks at a bound variable for sure."""
        kind = self.draw(st.integers(0, 9)) if depth and not certain else 9
        if kind <= 1:
            items = [self.condition(bound, depth - 1) for _ in range(self.draw(st.integers(2, 3)))]
            return "(" + (" or " if kind else " and ").join(items) + ")"
        if kind == 2:
            return f"not ({self.condition(bound, depth - 1)})"
        if kind == 3 and not certain:
            return self.constant(ScalarType(Scalar.BOOL))
        return self.test(bound)

    def test(self, bound: dict[str, GraphType]) -> str:
        """One comparison of a property."""
        column = self.pick(self.columns(bound))
        if self.chance(6):
            return f"{column} {self.pick(('=', '!='))} null"
        if isinstance(column.type, VectorType):
            return f"{column} != null"
        if isinstance(column.type, ListType):
            needle = self.constant(ScalarType(column.type.item))
            return f"{column} contains {needle}" if self.chance(2) else f"{needle} in {column}"
        if column.type == ScalarType(Scalar.BOOL) and self.chance(2):
            return str(column)
        if self.chance(5):
            return f"{column} in {self.constant_list(column.type)}"
        if is_text(column.type) and self.chance(4):
            operator = self.pick(("contains", "starts_with"))
            return f"{column} {operator} {self.constant(ScalarType(Scalar.STRING))}"
        same = [other for other in self.columns(bound) if _comparable(column.type, other.type) and other != column]
        right = str(self.pick(same)) if same and self.chance(4) else self.constant(column.type)
        return f"{column} {self.pick(_COMPARISONS)} {right}"

    def constant(self, type_: PropertyType) -> str:
        """A literal, or a parameter of the type (or of another number type)."""
        value = self.draw(self.values(type_))
        if not self.chance(3):
            return _literal(value)
        if isinstance(type_, EnumType):
            type_ = ScalarType(Scalar.STRING)
        if is_number(type_) and self.chance(3):
            type_ = ScalarType(self.pick(sorted(NUMBERS - {Scalar.F32})))
            value = self.draw(self.values(type_))
        return self.parameter(str(type_), value)

    def constant_list(self, type_: PropertyType) -> str:
        items = [self.draw(self.values(type_)) for _ in range(self.draw(st.integers(0, 3)))]
        if self.chance(3):
            name = "String" if isinstance(type_, EnumType) else str(type_)
            return self.parameter(f"[{name}]", items)
        texts = [_literal(item) for item in items]
        if texts and self.chance(4):
            texts.append(self.parameter("String" if isinstance(type_, EnumType) else str(type_), items[0]))
        return f"[{', '.join(texts)}]"

    def parameter(self, type_: str, value: Any) -> str:
        name = self.fresh("p")
        optional = self.chance(3)
        self.declared.append(f"${name}: {type_}{'?' if optional else ''}")
        if optional and self.chance(3):
            if self.chance(2):
                self.params[name] = None
        else:
            self.params[name] = _json(value)
        return f"${name}"

    # --- return, order, limit

    def result(self, bound: dict[str, GraphType]) -> str:
        columns = self.columns(bound)
        grouped = self.chance(3)
        projections: list[str] = []
        sortable: list[str] = []
        names: set[str] = set()
        for _ in range(self.draw(st.integers(0 if grouped else 1, 3))):
            text, name, sorts = self.projection(bound, columns)
            if name not in names:
                names.add(name)
                projections.append(text)
                sortable += sorts
        for _ in range(self.draw(st.integers(1, 2)) if grouped else 0):
            aggregate, alias = self.aggregate(bound, columns), self.fresh("n")
            projections.append(f"{aggregate} as {alias}")
            sortable += [alias, aggregate]
            if self.chance(5):
                projections.append(f"{alias} != null as {self.fresh('n')}")
        if not grouped:
            sortable += [str(column) for column in columns if not isinstance(column.type, ListType | VectorType)]
        elif self.chance(3):
            sortable.append(self.aggregate(bound, columns))
        lines = [f"  return {{ {', '.join(projections)} }}\n"]
        if sortable and self.chance(2):
            keys = self.draw(st.lists(st.sampled_from(sortable), min_size=1, max_size=2))
            directions = [self.pick(("", " asc", " desc")) for _ in keys]
            lines.append(f"  order {{ {', '.join(map(str.__add__, keys, directions))} }}\n")
        if self.chance(2):
            count = self.draw(st.integers(0, 5))
            limit = self.parameter("I64", count) if self.chance(3) else str(count)
            if limit.startswith("$"):
                self.require(limit[1:], count)
            lines.append(f"  limit {limit}\n")
        return "".join(lines)

    def require(self, name: str, value: Any) -> None:
        """Make a parameter that was just declared a required one with a value."""
        self.declared[-1] = self.declared[-1].removesuffix("?")
        self.params[name] = value

    def projection(self, bound: dict[str, GraphType], columns: list[_Column]) -> tuple[str, str, list[str]]:
        """A column that is no aggregate: its text, its name, and what can be sorted by when it is a group key."""
        kind = self.draw(st.integers(0, 7))
        if kind == 0:
            variable = self.pick(bound)
            return f"${variable}", variable, [f"${variable}"]
        if kind == 1:
            alias = self.fresh("c")
            return f"{self.test(bound)} as {alias}", alias, [alias]
        if kind == 2:
            alias = self.fresh("c")
            return f"{self.constant(ScalarType(Scalar.I64))} as {alias}", alias, [alias]
        column = self.pick(columns)
        sorts = [] if isinstance(column.type, ListType | VectorType) else [str(column)]
        if kind == 3:
            alias = self.fresh("c")
            return f"{column} as {alias}", alias, [*sorts, *([alias] if sorts else [])]
        return str(column), f"{column.variable}.{column.name}", sorts

    def aggregate(self, bound: dict[str, GraphType], columns: list[_Column]) -> str:
        if self.chance(3):
            return f"count(${self.pick(bound)})"
        function = self.pick(("count", "sum", "avg", "min", "max"))
        fitting = [column for column in columns if _can_aggregate(function, column.type)]
        return f"{function}({self.pick(fitting)})" if fitting else f"count(${self.pick(bound)})"


def _comparable(left: PropertyType, right: PropertyType) -> bool:
    if is_number(left) or is_text(left):
        return is_number(left) == is_number(right) and is_text(left) == is_text(right)
    return left == right and isinstance(left, ScalarType)


def _can_aggregate(function: str, type_: PropertyType) -> bool:
    if function == "count":
        return True
    if function in {"sum", "avg"}:
        return is_number(type_)
    return isinstance(type_, ScalarType | EnumType)


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return encode_string(value)
        case datetime.datetime():
            return f'datetime("{_json(value)}")'
        case datetime.date():
            return f'date("{value.isoformat()}")'
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case _:
            return repr(value)


def _json(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list):
        return [_json(item) for item in value]
    return value
