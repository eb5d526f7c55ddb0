"""Queries as plain values. Further clauses and expressions are in constructs/, one file for each idea.

A variable has a name and belongs to the block that binds it; names that start with `_` are anonymous (`$_`), each its
own. Every expression says its type, so that nothing else has to find it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Expr:
    """A value. Subclasses are frozen dataclasses with a field or property `type`."""

    type: str


class Clause:
    """One clause of a block. Subclasses are frozen dataclasses."""


@dataclass(frozen=True)
class Literal(Expr):
    """A constant; None is `null`."""

    value: Any
    type: str


@dataclass(frozen=True)
class Param(Expr):
    """A parameter of the query."""

    name: str
    type: str


@dataclass(frozen=True)
class Prop(Expr):
    """`$x.p`; `@id` and the like are properties too."""

    var: str
    name: str
    type: str


@dataclass(frozen=True)
class Bare(Expr):
    """A property by its bare name: of the edges of a walk, or of the row that a mutation looks at."""

    name: str
    type: str
    own: bool = False
    """Whether the row's own `id`, `from` or `to` is meant."""


@dataclass(frozen=True)
class PathPart(Expr):
    """`hops($path)`, `nodes($path)` or `edges($path)`."""

    path: str
    part: str

    @property
    def type(self) -> str:  # type: ignore[override]
        """A number, or a list of ids."""
        return "I64" if self.part == "hops" else "[String]"


@dataclass(frozen=True)
class Entity(Expr):
    """`$x`; the type is `node:…` or `edge:…`."""

    var: str
    type: str


@dataclass(frozen=True)
class Alias(Expr):
    """An alias of the return block."""

    name: str
    type: str


@dataclass(frozen=True)
class Bind(Clause):
    """`$x: Type { p: v }`."""

    var: str
    kind: str
    inline: tuple[tuple[Prop, Expr], ...] = ()


@dataclass(frozen=True)
class Hop(Clause):
    """`$a knows{1,2} $b` in all its forms; source and target as the edge type declares them."""

    source: str
    edge: str
    target: str
    low: int = 1
    high: int = 1
    undirected: bool = False
    edge_var: str | None = None
    bounded: bool = False
    others: tuple[str, ...] = ()
    """Further edge types that a hop may take, between the same ends."""
    any_edge: bool = False
    """Written `*`: `edge` and `others` are all that fit."""
    walk: Expr | None = None
    """What every edge of the walk satisfies; `Bare` are its properties."""
    path: str | None = None


@dataclass(frozen=True)
class Where(Clause):
    """A filter."""

    condition: Expr


@dataclass(frozen=True)
class Block(Clause):
    """`not { … }` and its like; `kind` is the keyword."""

    kind: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Either(Clause):
    """`either { … } or { … }`."""

    arms: tuple[tuple[Clause, ...], ...]


@dataclass(frozen=True)
class Column:
    """One column of the result."""

    expr: Expr
    alias: str | None = None


@dataclass(frozen=True)
class OrderKey:
    """One key of `order`; `direction` is "", "asc" or "desc", `nulls` "", "first" or "last"."""

    expr: Expr
    direction: str = ""
    nulls: str = ""


@dataclass(frozen=True)
class Parameter:
    """A declared parameter with the value that it has; `given` is False for one that is left out.

    `default` holds the literal that is written behind it, or nothing.
    """

    name: str
    type: str
    value: Any
    optional: bool = False
    given: bool = True
    default: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Stage:
    """`with { … } where … order … limit …`: ends one stage; the next has its own clauses."""

    columns: tuple[Column, ...]
    where: Expr | None
    order: tuple[OrderKey, ...]
    limit: Expr | None
    clauses: tuple[Clause, ...]
    offset: Expr | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Query:
    """One read."""

    parameters: tuple[Parameter, ...]
    clauses: tuple[Clause, ...]
    columns: tuple[Column, ...]
    order: tuple[OrderKey, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    stages: tuple[Stage, ...] = ()
    distinct: bool = False
    having: Expr | None = None


def mentioned(node: Any) -> set[str]:
    """The variables that a part of a query names."""
    if isinstance(node, tuple):
        return {name for each in node for name in mentioned(each)}
    if not isinstance(node, Expr | Clause):
        return set()
    found = {name for each in vars(node).values() for name in mentioned(each)}
    match node:
        case Prop(var) | Entity(var) | Bind(var):
            found.add(var)
        case Hop(source=source, target=target, edge_var=edge_var):
            found |= {source, target, *([edge_var] if edge_var else [])}
    return found
