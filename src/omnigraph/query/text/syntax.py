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
    ENDS_WITH = "ends_with"
    MATCHES = "matches"
    IN = "in"


class ArithmeticOperator(StrEnum):
    """The signs of arithmetic."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"


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
    """`$x.p`; the name of `$x.@id` starts with `@`."""

    variable: Variable
    name: Name
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A bare name: an alias, or a property of a mutation's row or of a walk's edge; `@id` too."""

    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Labelled:
    """`label: value`, an argument with a name."""

    label: Name
    value: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`f(a, b)`, `f(distinct a)`, `f(a, label: b)`."""

    function: Name
    args: tuple[Expression, ...]
    span: Span = field(compare=False)
    distinct: bool = False
    options: tuple[Labelled, ...] = ()


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left + right`."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Negative:
    """`-item`, of anything but a number that is written out."""

    item: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Index:
    """`item[index]`."""

    item: Expression
    index: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """`case { when condition then value … else otherwise }`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """`item is null`, `item is not null`."""

    item: Expression
    negated: bool
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


Expression = (
    Literal
    | ListLiteral
    | Variable
    | Property
    | Reference
    | Call
    | Arithmetic
    | Negative
    | Index
    | Case
    | NullTest
    | Comparison
    | And
    | Or
    | Not
)


def parts(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside, in the order of the text."""
    match expression:
        case Comparison(_, left, right) | Arithmetic(_, left, right) | Index(left, right):
            return (left, right)
        case And(items) | Or(items) | ListLiteral(items):
            return items
        case Call(_, args):
            return (*args, *(option.value for option in expression.options))
        case Not(item) | Negative(item) | NullTest(item):
            return (item,)
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case _:
            return ()


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
    """`$a knows $b`, `$a <knows> $b`, `$a $w:knows $b`, `$a knows|likes{1,2}[since > $d] $b as $path`.

    `edge` is `*` for any edge; `alternatives` are the edges behind the first.
    """

    source: Variable
    edge: Name
    target: Variable
    bounds: Bounds | None
    undirected: bool
    edge_variable: Variable | None
    span: Span = field(compare=False)
    alternatives: tuple[Name, ...] = ()
    where: Expression | None = None
    path: Variable | None = None


@dataclass(frozen=True, slots=True)
class NotBlock:
    """`not { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ExistsBlock:
    """`exists { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class OptionalBlock:
    """`optional { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Arm:
    """One `{ … }` of an `either`."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class EitherBlock:
    """`either { … } or { … }`."""

    arms: tuple[Arm, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class FilterClause:
    """An expression that must hold."""

    expression: Expression
    span: Span = field(compare=False)


Clause = Bind | Traversal | NotBlock | ExistsBlock | OptionalBlock | EitherBlock | FilterClause


def blocks_in(clause: Clause) -> tuple[tuple[Clause, ...], ...]:
    """The blocks directly inside a clause."""
    match clause:
        case NotBlock(clauses) | ExistsBlock(clauses) | OptionalBlock(clauses):
            return (clauses,)
        case EitherBlock(arms):
            return tuple(arm.clauses for arm in arms)
        case _:
            return ()


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
