"""Expressions as written: the same wherever a value may stand."""

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
