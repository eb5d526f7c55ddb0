"""A match block, taken apart: which variables there are, which edges join them, what must hold of them.

The IR's order follows the text. Below an `optional`, a stage, or the first rank, aggregate or projection everything is
one conjunction, so the planner works on this unordered form. Only conditions that can fail, and what stands above
them, keep their order: they come last (`tail`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.errors import InternalError
from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import columns_of
from omnigraph.query.predicates import can_fail, conjuncts

Tables = tuple[str, ...]
"""The tables that a variable ranges over, in the order of their names; nearly always one."""

REVERSED = {
    ir.Direction.OUT: ir.Direction.IN,
    ir.Direction.IN: ir.Direction.OUT,
    ir.Direction.BOTH: ir.Direction.BOTH,
}


@dataclass(frozen=True, slots=True)
class EdgeAtom:
    """`left` and `right` are joined by an edge of one of several types (table keys), seen from `left`."""

    left: str
    right: str
    edges: tuple[str, ...]
    direction: ir.Direction
    min_hops: int
    max_hops: int
    edge_var: str | None = None
    where: ir.Expr | None = None
    path_var: str | None = None
    path_start: str | None = None

    def seen_from(self, var: str) -> tuple[ir.Direction, str]:
        """How the edge is followed when `var` is known, and the variable at its other end."""
        if var == self.left:
            return self.direction, self.right
        return REVERSED[self.direction], self.left

    @property
    def binds(self) -> tuple[str, ...]:
        """What it binds besides its ends: the edge, the path."""
        return tuple(name for name in (self.edge_var, self.path_var) if name is not None)


InnerBlock = ir.AntiJoin | ir.SemiJoin
"""`not { … }` or `exists { … }`."""


@dataclass(slots=True)
class Block:
    """A conjunction.

    `seeded`: it starts from rows that are there, of the enclosing block or of the stage before; `outer` are the
    variables that those bind. `optional`: it starts from the rows that this makes of the block `below`.
    """

    outer: tuple[str, ...] = ()
    seeded: bool = False
    below: Block | None = None
    optional: ir.Optional | None = None
    tables: dict[str, Tables] = field(default_factory=dict)
    """The nodes and edges that the block binds itself, and of which tables they are here."""
    paths: list[str] = field(default_factory=list)
    edges: list[EdgeAtom] = field(default_factory=list)
    filters: list[ir.Expr] = field(default_factory=list)
    inner: list[InnerBlock] = field(default_factory=list)
    either: list[ir.Either] = field(default_factory=list)
    tail: list[ir.Expr | InnerBlock] = field(default_factory=list)
    """Conditions that can fail, and what stands above them, in their order."""

    @property
    def bound(self) -> set[str]:
        """All variables that its rows have in the end."""
        return {*self.outer, *self.tables, *self.paths}

    @property
    def starts_from_rows(self) -> bool:
        """Whether its first step extends rows that are there; else it finds rows of its own."""
        return self.below.starts_from_rows if self.below is not None else self.seeded


def flatten(operator: ir.Operator, variables: Mapping[str, Tables]) -> Block:
    """The conjunction that an operator tree below the first rank, aggregate or projection says.

    `variables` says which tables each variable of the query ranges over.
    """
    block = Block()
    _collect(operator, block, variables)
    for var in block.outer:
        block.tables.pop(var, None)
    return block


def _collect(operator: ir.Operator, block: Block, variables: Mapping[str, Tables]) -> None:
    match operator:
        case ir.Unit():
            pass
        case ir.Outer(vars=names):
            _start(block, names)
        case ir.Stage(variables=names):
            _start(block, names)
        case ir.Optional(input=below, binds=binds, paths=paths):
            block.below = flatten(below, variables)
            block.optional = operator
            _start(block, (*block.below.bound, *(variable.name for variable in binds), *paths))
        case ir.Scan(var=var):
            block.tables[var] = operator.all_tables
        case ir.Join(left=left, right=right):
            _collect(left, block, variables)
            _collect(right, block, variables)
        case ir.Expand():
            _collect(operator.input, block, variables)
            _note_edge(operator, block, variables)
        case ir.Filter(input=below, predicate=predicate):
            _collect(below, block, variables)
            for condition in conjuncts(predicate):
                (block.tail if block.tail or can_fail(condition) else block.filters).append(condition)
        case ir.AntiJoin(input=below) | ir.SemiJoin(input=below):
            _collect(below, block, variables)
            (block.tail if block.tail else block.inner).append(operator)
        case ir.Either(input=below, binds=binds):
            _collect(below, block, variables)
            block.either.append(operator)
            block.tables.update({variable.name: variable.all_tables for variable in binds})
        case _:
            raise InternalError(f"{type(operator).__name__} is not part of a match block")


def _start(block: Block, names: tuple[str, ...]) -> None:
    block.seeded = True
    block.outer = tuple(dict.fromkeys(block.outer + names))


def _note_edge(operator: ir.Expand, block: Block, variables: Mapping[str, Tables]) -> None:
    block.tables.setdefault(operator.from_var, variables[operator.from_var])
    block.tables.setdefault(operator.to_var, operator.all_to_tables)
    edges = tuple(f"edge:{name}" for name in operator.all_edges)
    if operator.edge_var is not None:
        block.tables[operator.edge_var] = edges
    if operator.path_var is not None:
        block.paths.append(operator.path_var)
    block.edges.append(
        EdgeAtom(
            operator.from_var,
            operator.to_var,
            edges,
            operator.direction,
            operator.min_hops,
            operator.max_hops,
            operator.edge_var,
            operator.where,
            operator.path_var,
            operator.path_start,
        )
    )


def reads_columns(condition: ir.Expr) -> bool:
    """Whether a condition reads what an earlier stage has computed."""
    return bool(columns_of(condition))
