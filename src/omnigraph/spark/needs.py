"""Which properties of each variable a query looks at, so that a scan reads those columns and no others."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.query import ir
from omnigraph.query.predicates import leaves


class Needs:
    """The columns to read for each variable: `id` first, then what is used, in order of first use."""

    def __init__(self, query: ir.ReadQuery, entity_columns: dict[str, list[str]]) -> None:
        """`entity_columns` has, per table, the properties that `$x` alone returns."""
        tables = {variable.name: variable.table_key for variable in query.variables}
        self._columns: dict[str, list[str]] = {}
        for expr in every_expression(query.root):
            for leaf in leaves(expr):
                match leaf:
                    case ir.Prop(var=var):
                        self._add(var, leaf.column)
                    case ir.TextMatch(var=var, property=name) | ir.Nearest(var=var, property=name):
                        self._add(var, name)
                    case ir.Bm25(var=var, property=name):
                        self._add(var, name)
        for column in _returned(query.root):
            if isinstance(column, ir.Entity):
                for name in entity_columns[tables[column.var]]:
                    self._add(column.var, name)

    def columns(self, var: str) -> list[str]:
        """What a scan of this variable reads."""
        return ["id", *self._columns.get(var, [])]

    def _add(self, var: str, name: str) -> None:
        names = self._columns.setdefault(var, [])
        if name != "id" and name not in names:
            names.append(name)


def _returned(root: ir.Project) -> Iterator[ir.Expr]:
    """Expressions whose whole value is returned: projected ones, and the group keys behind them."""
    for operator in every_operator(root):
        match operator:
            case ir.Project(columns=columns) | ir.GroupBy(keys=columns):
                yield from (column.expr for column in columns)


def every_operator(operator: ir.Operator) -> Iterator[ir.Operator]:
    """An operator and all below it."""
    yield operator
    for name in ("input", "left", "right", "inner"):
        below = getattr(operator, name, None)
        if below is not None:
            yield from every_operator(below)


def every_expression(operator: ir.Operator) -> Iterator[ir.Expr]:
    """Every expression that an operator or one below it holds."""
    for each in every_operator(operator):
        match each:
            case ir.Filter(predicate=predicate):
                yield predicate
            case ir.Rank(ranking=ranking) | ir.Fuse(ranking=ranking):
                yield ranking
            case ir.GroupBy(keys=keys, aggregates=aggregates):
                yield from (column.expr for column in (*keys, *aggregates))
            case ir.Sort(keys=keys):
                yield from (key.expr for key in keys)
            case ir.Project(columns=columns):
                yield from (column.expr for column in columns)
