"""The clauses of a match block as written."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.diagnostics import Span
from omnigraph.query.text.syntax.expressions import Expression, Name, Variable


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
