"""A conjunctive block, taken apart: which variables there are, which edges join them, what must hold of them.

The IR's order follows the text. Below the first rank, aggregate or projection everything is one conjunction, so the
planner works on this unordered form.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.query import ir
from omnigraph.query.predicates import conjuncts


@dataclass(frozen=True, slots=True)
class EdgeAtom:
    """`left` and `right` are joined by an edge type, seen from `left`."""

    left: str
    right: str
    edge: str
    direction: ir.Direction
    min_hops: int
    max_hops: int
    edge_var: str | None

    def seen_from(self, var: str) -> tuple[ir.Direction, str]:
        """How the edge is followed when `var` is known, and the variable at its other end."""
        if var == self.left:
            return self.direction, self.right
        return REVERSED[self.direction], self.left


REVERSED = {
    ir.Direction.OUT: ir.Direction.IN,
    ir.Direction.IN: ir.Direction.OUT,
    ir.Direction.BOTH: ir.Direction.BOTH,
}


@dataclass(slots=True)
class Block:
    """A conjunction. `outer` are variables that the enclosing block has bound."""

    outer: tuple[str, ...] = ()
    tables: dict[str, str] = field(default_factory=dict)
    edges: list[EdgeAtom] = field(default_factory=list)
    filters: list[ir.Expr] = field(default_factory=list)
    anti: list[ir.AntiJoin] = field(default_factory=list)


def flatten(operator: ir.Operator, tables: dict[str, str]) -> Block:
    """The conjunction that an operator tree below the first rank, aggregate or projection says.

    `tables` says which table each variable of the query is of.
    """
    block = Block()
    _collect(operator, block, tables)
    return block


def _collect(operator: ir.Operator, block: Block, tables: dict[str, str]) -> None:
    match operator:
        case ir.Unit():
            pass
        case ir.Outer(vars=names):
            block.outer = tuple(dict.fromkeys(block.outer + names))
        case ir.Scan(var=var, table_key=table_key):
            block.tables[var] = table_key
        case ir.Join(left=left, right=right):
            _collect(left, block, tables)
            _collect(right, block, tables)
        case ir.Expand():
            _collect(operator.input, block, tables)
            block.tables.setdefault(operator.from_var, tables.get(operator.from_var, ""))
            block.tables[operator.to_var] = operator.to_table
            edge = edge_table(operator)
            if operator.edge_var is not None:
                block.tables[operator.edge_var] = edge
            block.edges.append(
                EdgeAtom(
                    operator.from_var,
                    operator.to_var,
                    edge,
                    operator.direction,
                    operator.min_hops,
                    operator.max_hops,
                    operator.edge_var,
                )
            )
        case ir.Filter(input=below, predicate=predicate):
            _collect(below, block, tables)
            block.filters.extend(conjuncts(predicate))
        case ir.AntiJoin(input=below):
            _collect(below, block, tables)
            block.anti.append(operator)
        case _:
            raise TypeError(f"{type(operator).__name__} is not part of a conjunctive block")


def edge_table(operator: ir.Expand) -> str:
    """The table of the edge type that is followed."""
    return f"edge:{operator.edge}"
