"""A checked match block as plain values: what lowering reads. Names are resolved, every type is known."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query import ir


@dataclass(frozen=True, slots=True)
class Binding:
    """`$x: Type`: the variable ranges over the nodes of the type."""

    variable: str
    table_key: str


@dataclass(frozen=True, slots=True)
class Hop:
    """One traversal; `source` is the end that the edge starts from as written."""

    source: str
    target: str
    source_table: str
    target_table: str
    edge: str
    undirected: bool
    min_hops: int
    max_hops: int
    edge_variable: str | None


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter, from an expression or from inline properties."""

    predicate: ir.Expr


@dataclass(frozen=True, slots=True)
class Without:
    """`not { … }`. `outer` are the variables of the enclosing block that it uses, in binding order."""

    block: Block
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The clauses of one block in text order, and the variables that it binds itself, in order of first binding."""

    clauses: tuple[Binding | Hop | Condition | Without, ...]
    variables: tuple[ir.Variable, ...]
