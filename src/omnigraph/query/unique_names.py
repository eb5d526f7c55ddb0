"""One name for one variable in the whole query.

A variable belongs to the block that binds it, and sibling blocks may use one name for different things. Below this
point a name alone says which variable is meant: of variables with one name, the later ones are called `x#2`, `x#3`, …
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query import ir
from omnigraph.query.check.blocks import Binding, Block, Condition, Hop, Without
from omnigraph.query.ir.walk import rebuild


def with_unique_names(block: Block) -> Block:
    """The block with the variables of its inner blocks renamed where their names are taken."""
    return _Names().block(block, {})


class _Names:
    """The names that the query has used so far."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def block(self, block: Block, around: dict[str, str]) -> Block:
        names = {**around, **{variable.name: self._unique(variable.name) for variable in block.variables}}
        variables = tuple(ir.Variable(names[variable.name], variable.table_key) for variable in block.variables)
        return Block(tuple(self._clause(clause, names) for clause in block.clauses), variables)

    def _unique(self, name: str) -> str:
        self._taken[name] = self._taken.get(name, 0) + 1
        return name if self._taken[name] == 1 else f"{name}#{self._taken[name]}"

    def _clause(
        self, clause: Binding | Hop | Condition | Without, names: dict[str, str]
    ) -> Binding | Hop | Condition | Without:
        match clause:
            case Binding(variable, table_key):
                return Binding(names.get(variable, variable), table_key)
            case Hop(source=source, target=target, edge_variable=edge):
                edge = None if edge is None else names[edge]
                return replace(clause, source=names[source], target=names[target], edge_variable=edge)
            case Condition(predicate):
                return Condition(_renamed(predicate, names))
            case Without(inner, outer):
                return Without(self.block(inner, names), tuple(names[name] for name in outer))


def _renamed(expr: ir.Expr, names: dict[str, str]) -> ir.Expr:
    match expr:
        case ir.Prop() | ir.Entity() | ir.TextMatch() | ir.Nearest() | ir.Bm25():
            return replace(expr, var=names.get(expr.var, expr.var))
        case _:
            return rebuild(expr, lambda part: _renamed(part, names))
