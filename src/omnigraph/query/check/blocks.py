"""A checked match block as plain values: what lowering reads. Names are resolved and unique, every type is known."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query import ir


@dataclass(frozen=True, slots=True)
class Binding:
    """`$x: Type`: the variable ranges over the nodes of its tables."""

    variable: str


@dataclass(frozen=True, slots=True)
class Hop:
    """One traversal; `source` is the end that the edge starts from as written. `edges` are the types it may take."""

    source: str
    target: str
    edges: tuple[str, ...]
    undirected: bool
    min_hops: int
    max_hops: int
    edge_variable: str | None
    where: ir.Expr | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter, from an expression or from inline properties."""

    predicate: ir.Expr


@dataclass(frozen=True, slots=True)
class Within:
    """A block inside another. `outer` and `columns` are the variables and aliases around it that it uses."""

    block: Block
    outer: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Without(Within):
    """`not { … }`."""


@dataclass(frozen=True, slots=True)
class Exists(Within):
    """`exists { … }`."""


@dataclass(frozen=True, slots=True)
class Maybe(Within):
    """`optional { … }`. What the block binds is bound around it too, and may be null there."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """`either { … } or { … }`. `binds` are the variables that every arm binds; `outer` and `columns` as in `Within`."""

    arms: tuple[Block, ...]
    outer: tuple[str, ...]
    columns: tuple[str, ...]
    binds: tuple[ir.Variable, ...]


Clause = Binding | Hop | Condition | Without | Exists | Maybe | OneOf


@dataclass(frozen=True, slots=True)
class Block:
    """The clauses of one block in text order, and the variables that it binds itself, in order of first binding.

    `nodes` are those that its own clauses bind, without edges and without what nested blocks bind; `paths` the paths.
    """

    clauses: tuple[Clause, ...]
    variables: tuple[ir.Variable, ...]
    nodes: tuple[ir.Variable, ...]
    paths: tuple[str, ...] = ()
