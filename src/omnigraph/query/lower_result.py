"""`return`, `order` and `limit` to operators. The shape is described in lower.py."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.query import ir
from omnigraph.query.check.results import CheckedResult, OrderedBy, has_aggregate
from omnigraph.query.ir.walk import rebuild
from omnigraph.query.typing import F64, is_nullable, type_of


def lower_result(tree: ir.Operator, result: CheckedResult, variables: tuple[str, ...]) -> ir.Project:
    """Everything above the match block."""
    rankings = _Rankings()
    columns = [
        ir.Column(column.name, rankings.replace(column.expr), column.type, column.nullable) for column in result.columns
    ]
    order = [(key, rankings.replace(key.expr)) for key in result.order]
    tree = rankings.apply(tree)
    for score in dict.fromkeys(expr for key, expr in order if _is_bare(key)):
        tree = ir.Filter(tree, ir.IsNull(score, negated=True))
    if result.grouped:
        groups = _Groups(columns)
        keys = tuple(sort_key for key, expr in order for sort_key in _sort_keys(key, groups.after(expr)))
        projected = tuple(
            ir.Column(column.name, groups.after(column.expr), column.type, column.nullable) for column in columns
        )
        tree = ir.GroupBy(tree, tuple(groups.keys), tuple(groups.aggregates))
        tie_break = tuple(column.name for column in groups.keys)
    else:
        keys = tuple(sort_key for key, expr in order for sort_key in _sort_keys(key, expr))
        projected = tuple(columns)
        tie_break = variables
    tree = ir.Sort(tree, keys, tie_break)
    if result.limit is not None:
        tree = ir.Limit(tree, result.limit)
    return ir.Project(tree, projected)


def _is_bare(key: OrderedBy) -> bool:
    """A ranking without a direction means best first, among the rows that have a score."""
    return isinstance(key.expr, ir.Nearest | ir.Bm25 | ir.Rrf) and key.descending is None and key.direct


def _sort_keys(key: OrderedBy, expr: ir.Expr) -> tuple[ir.SortKey, ...]:
    if _is_bare(key):
        return (ir.SortKey(expr, descending=not isinstance(key.expr, ir.Nearest)),)
    if isinstance(key.expr, ir.Nearest) and not key.descending:
        return (ir.SortKey(ir.IsNull(expr)), ir.SortKey(expr))
    return (ir.SortKey(expr, bool(key.descending)),)


@dataclass(slots=True)
class _Rankings:
    """The different rankings of a query, each computed once and read by the name of its column."""

    found: dict[ir.Ranking, ir.ColumnRef] = field(default_factory=dict)

    def replace(self, expr: ir.Expr) -> ir.Expr:
        """The expression with its rankings read from columns."""
        if isinstance(expr, ir.Nearest | ir.Bm25 | ir.Rrf):
            if expr not in self.found:
                self.found[expr] = ir.ColumnRef(f"$rank{len(self.found) + 1}", F64, True)
            return self.found[expr]
        return rebuild(expr, self.replace)

    def apply(self, tree: ir.Operator) -> ir.Operator:
        """Put an operator for each ranking on top."""
        for ranking, column in self.found.items():
            if isinstance(ranking, ir.Rrf):
                tree = ir.Fuse(tree, ranking, column.name)
            else:
                tree = ir.Rank(tree, ranking, column.name)
        return tree


class _Groups:
    """The keys and aggregates of a grouped query, and what expressions become above the grouping."""

    def __init__(self, columns: list[ir.Column]) -> None:
        self.keys: list[ir.Column] = [column for column in columns if not has_aggregate(column.expr)]
        self.aggregates: list[ir.Column] = [column for column in columns if isinstance(column.expr, ir.Aggregate)]
        self._hidden = 0
        self._columns: dict[ir.Expr, ir.ColumnRef] = {}
        for column in (*self.keys, *self.aggregates):
            self._columns.setdefault(column.expr, ir.ColumnRef(column.name, column.type, column.nullable))

    def after(self, expr: ir.Expr) -> ir.Expr:
        """The expression as it is read above the grouping."""
        if isinstance(expr, ir.Literal | ir.Param | ir.Now):
            return self._columns.get(expr, expr)
        if expr in self._columns:
            return self._columns[expr]
        if isinstance(expr, ir.Aggregate):
            self._hidden += 1
            type_ = type_of(expr)
            assert type_ is not None
            column = ir.Column(f"$aggregate{self._hidden}", expr, type_, is_nullable(expr))
            self.aggregates.append(column)
            self._columns[expr] = ir.ColumnRef(column.name, column.type, column.nullable)
            return self._columns[expr]
        return rebuild(expr, self.after)
