"""Whole queries as written: their parameters, and a read or a mutation."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.diagnostics import Span
from omnigraph.query.text.syntax.expressions import Expression, Literal, Name, Variable
from omnigraph.query.text.syntax.match import Clause, PropertyValue


@dataclass(frozen=True, slots=True)
class TypeName:
    """A parameter's type: `String`, `[I64]`, `Vector(3)`."""

    name: Name
    size: int | None
    is_list: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name: Type?`, `$name: Type = literal`."""

    variable: Variable
    type: TypeName
    optional: bool
    span: Span = field(compare=False)
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@description("…")` or `@instruction("…")`."""

    name: Name
    value: Literal
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Projection:
    """`expression as alias`."""

    expression: Expression
    alias: Name | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class OrderKey:
    """`expression desc nulls last`; `descending` and `nulls_first` are None when nothing was written."""

    expression: Expression
    descending: bool | None
    span: Span = field(compare=False)
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """`with { … } where … order { … } limit … match { … }`: what ends one stage, and the clauses of the next."""

    projections: tuple[Projection, ...]
    distinct: bool
    where: Expression | None
    order: tuple[OrderKey, ...]
    limit: Expression | None
    offset: Expression | None
    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)
    with_span: Span = field(compare=False)
    order_span: Span | None = field(compare=False)
    match_span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """`match … with … match … return … having … order … limit … offset`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    order: tuple[OrderKey, ...]
    limit: Expression | None
    span: Span = field(compare=False)
    match_span: Span = field(compare=False)
    return_span: Span = field(compare=False)
    order_span: Span | None = field(compare=False)
    stages: tuple[Stage, ...] = ()
    distinct: bool = False
    having: tuple[Expression, ...] = ()
    offset: Expression | None = None
    having_span: Span | None = field(compare=False, default=None)


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { p: v }`, `insert new Type { p: v }`."""

    type: Name
    assignments: tuple[PropertyValue, ...]
    span: Span = field(compare=False)
    body_span: Span = field(compare=False)
    new: bool = False


@dataclass(frozen=True, slots=True)
class InsertRows:
    """`insert Type from $rows`."""

    type: Name
    rows: Variable
    new: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { p: v } where predicate`, `update $x set { p: v }`."""

    type: Name | Variable
    assignments: tuple[PropertyValue, ...]
    predicate: Expression | None
    span: Span = field(compare=False)
    body_span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where predicate`, `delete $x`."""

    type: Name | Variable
    predicate: Expression | None
    span: Span = field(compare=False)


Statement = Insert | InsertRows | Update | Delete


@dataclass(frozen=True, slots=True)
class Mutation:
    """One or more statements that run in order, for each binding of a match if there is one."""

    statements: tuple[Statement, ...]
    span: Span = field(compare=False)
    clauses: tuple[Clause, ...] | None = None
    match_span: Span | None = field(compare=False, default=None)


@dataclass(frozen=True, slots=True)
class Query:
    """One query."""

    name: Name
    parameters: tuple[Parameter, ...]
    annotations: tuple[Annotation, ...]
    body: Read | Mutation
    span: Span = field(compare=False)

    def annotation(self, name: str) -> str | None:
        """The text of `@name("…")`, if it is there."""
        for annotation in self.annotations:
            if annotation.name.text == name:
                return str(annotation.value.value)
        return None


@dataclass(frozen=True, slots=True)
class QueryFile:
    """All queries of one source text."""

    queries: tuple[Query, ...]
    source: str = field(compare=False)
    filename: str = field(compare=False)
