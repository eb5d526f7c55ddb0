"""The syntax tree of `.gq`: what was written, where. Trees are equal when they say the same, wherever they stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.diagnostics import Span


class LiteralKind(StrEnum):
    """How a literal was written."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    NULL = "null"


class Operator(StrEnum):
    """The operators between two operands."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"
    IN = "in"


# --- expressions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A type, edge, property, function, query or alias name as written."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `text` is how it was spelt."""

    value: str | int | float | bool | None
    kind: LiteralKind
    text: str = field(compare=False)
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b]`."""

    items: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$x`, without the dollar sign: a bound variable or a parameter."""

    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Property:
    """`$x.p`."""

    variable: Variable
    name: Name
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A bare name: an alias in `return` and `order`, a property in a mutation's `where`."""

    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`f(a, b)`."""

    function: Name
    args: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`."""

    operator: Operator
    left: Expression
    right: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """`a and b and c`."""

    items: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    """`a or b or c`."""

    items: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """`not a`."""

    item: Expression
    span: Span = field(compare=False)


Expression = Literal | ListLiteral | Variable | Property | Reference | Call | Comparison | And | Or | Not


# --- match -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """`p: v`, inline in a binding or assigned in a mutation."""

    name: Name
    value: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Bind:
    """`$x: Type { p: v }`."""

    variable: Variable
    type: Name
    properties: tuple[PropertyValue, ...]
    span: Span = field(compare=False)
    body_span: Span | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class Bounds:
    """`{min,max}` as written; `{n}` has both; a missing end is None."""

    low: int | None
    high: int | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$a knows $b`, `$a <knows> $b`, `$a $w:knows $b`."""

    source: Variable
    edge: Name
    target: Variable
    bounds: Bounds | None
    undirected: bool
    edge_variable: Variable | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NotBlock:
    """`not { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class FilterClause:
    """An expression that must hold."""

    expression: Expression
    span: Span = field(compare=False)


Clause = Bind | Traversal | NotBlock | FilterClause


# --- queries -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeName:
    """A parameter's type: `String`, `[I64]`, `Vector(3)`."""

    name: Name
    size: int | None
    is_list: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name: Type?`."""

    variable: Variable
    type: TypeName
    optional: bool
    span: Span = field(compare=False)


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
    """`expression desc`; `descending` is None when no direction was written."""

    expression: Expression
    descending: bool | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """`match … return … order … limit`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    order: tuple[OrderKey, ...]
    limit: Expression | None
    span: Span = field(compare=False)
    match_span: Span = field(compare=False)
    return_span: Span = field(compare=False)
    order_span: Span | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { p: v }`."""

    type: Name
    assignments: tuple[PropertyValue, ...]
    span: Span = field(compare=False)
    body_span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { p: v } where predicate`."""

    type: Name
    assignments: tuple[PropertyValue, ...]
    predicate: Expression
    span: Span = field(compare=False)
    body_span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where predicate`."""

    type: Name
    predicate: Expression
    span: Span = field(compare=False)


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Mutation:
    """One or more statements that run in order."""

    statements: tuple[Statement, ...]
    span: Span = field(compare=False)


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
