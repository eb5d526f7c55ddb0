"""Which variables anybody asks for the identity of.

The ids of a table are its longest column, so those that nobody looks at are not read. A count of entities that are
never null is a count of rows and does not look at them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import leaves
from omnigraph.schema.types import Scalar, ScalarType
from omnigraph.spark.query.bindings import KEY
from omnigraph.spark.query.conditions import Conditions
from omnigraph.spark.query.needs import Needs, every_expression, every_operator, field_of

AnOperator = TypeVar("AnOperator", bound=ir.Operator)

_A_ROW = ir.Literal(True, ScalarType(Scalar.BOOL))


def with_rows_counted(operator: AnOperator) -> AnOperator:
    """The same operator, in which the count of an entity that is never null is a count of rows."""
    changed: dict[str, Any] = {
        name: with_rows_counted(getattr(operator, name))
        for name in ("input", "left", "right", "inner")
        if hasattr(operator, name)
    }
    match operator:
        case ir.Either(arms=arms):
            changed["arms"] = tuple(with_rows_counted(arm) for arm in arms)
        case ir.GroupBy(aggregates=aggregates):
            changed["aggregates"] = tuple(replace(each, expr=_of_rows(each.expr)) for each in aggregates)
    made: AnOperator = replace(operator, **changed) if changed else operator
    return made


def _of_rows(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Aggregate(ir.AggregateFunction.COUNT, ir.Entity(nullable=False), distinct=False):
            return replace(expr, arg=_A_ROW)
    return expr


class Identities:
    """What is known of one query before anything of it runs."""

    def __init__(self, root: ir.Operator, needs: Needs, conditions: Conditions) -> None:
        self._needs = needs
        self._conditions = conditions
        times = Counter(_bound(root))
        self._told = frozenset((*self._used(root), *(name for name, count in times.items() if count > 1)))

    def told_apart(self, var: str) -> bool:
        """Whether something looks at which entity a variable is bound to: an expression, an order, a block, a traversal
        from it, a second binding. Of a node whose properties are looked at this says nothing: they come with its key.
        """
        return var in self._told

    def begins_with_edges(self, step: ir.Expand) -> bool:
        """Whether the scan below a traversal adds nothing to the edges: their ends are nodes, and no other is met."""
        scan = step.input
        if not isinstance(scan, ir.Scan) or scan.var != step.from_var or step.to_bound or step.path_var is not None:
            return False
        narrowed = self._needs.fields(scan.var) or self._conditions.on(scan, scan.var, {"id"})
        return step.max_hops == 1 and not narrowed

    def _used(self, root: ir.Operator) -> Iterator[str]:
        for expr in every_expression(root):
            for leaf in leaves(expr):
                match leaf:
                    case ir.Prop() if field_of(leaf) == KEY:
                        yield leaf.var
                    case ir.Entity() | ir.TypeOf() | ir.TextMatch() | ir.Nearest() | ir.Bm25():
                        yield leaf.var
        for operator in every_operator(root):
            match operator:
                case ir.Expand(from_var=start, to_var=end, to_bound=is_bound):
                    if not self.begins_with_edges(operator):
                        yield start
                    if is_bound:
                        yield end
                case ir.AntiJoin(vars=names) | ir.SemiJoin(vars=names) | ir.Outer(vars=names):
                    yield from names
                case ir.Optional(vars=names, binds=binds) | ir.Either(vars=names, binds=binds):
                    yield from names
                    yield from (variable.name for variable in binds)
                case ir.Stage(variables=names) | ir.Sort(tie_break=names) | ir.GroupBy(row_order=names):
                    yield from names


def _bound(root: ir.Operator) -> Iterator[str]:
    for operator in every_operator(root):
        match operator:
            case ir.Scan(var=var):
                yield var
            case ir.Expand(to_var=var, edge_var=edge):
                yield var
                if edge is not None:
                    yield edge
