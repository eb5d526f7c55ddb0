"""`return`, `with`, `order` and `limit` to operators. The shape is described in lower.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from omnigraph.query import ir
from omnigraph.query.check.results import CheckedResult, OrderedBy
from omnigraph.query.check.values.aggregates import has_aggregate
from omnigraph.query.ir.expression_parts import rebuild
from omnigraph.query.typing import F64, is_nullable, type_of
from omnigraph.schema.types import ListType, VectorType


def lower_result(tree: ir.Operator, result: CheckedResult, rows: Sequence[str], ranks: RankNames) -> ir.Project:
    """Everything above the last match block. `rows` are the names by which rows are told apart, in binding order."""
    tree, columns = _lower(tree, result, rows, ranks, always_sorted=True)
    return ir.Project(tree, columns)


def lower_stage(tree: ir.Operator, result: CheckedResult, rows: Sequence[str], ranks: RankNames) -> ir.Stage:
    """What ends a stage."""
    tree, columns = _lower(
        tree, result, rows, ranks, always_sorted=result.limit is not None or result.offset is not None
    )
    kept = tuple(column.expr.var for column in result.columns if isinstance(column.expr, ir.Entity))
    entities = {column.name for column in result.columns if isinstance(column.expr, ir.Entity)}
    return ir.Stage(tree, kept, tuple(column for column in columns if column.name not in entities))


@dataclass(slots=True)
class RankNames:
    """Numbers the columns of rankings through the whole query."""

    count: int = 0

    def fresh(self) -> str:
        """Another name."""
        self.count += 1
        return f"$rank{self.count}"


def sortable(type_: object) -> bool:
    """Whether values of a type can break ties."""
    return not isinstance(type_, ListType | VectorType)


def _lower(
    tree: ir.Operator, result: CheckedResult, rows: Sequence[str], ranks: RankNames, *, always_sorted: bool
) -> tuple[ir.Operator, tuple[ir.Column, ...]]:
    rankings = _Rankings(ranks)
    columns = [
        ir.Column(column.name, rankings.replace(column.expr), column.type, column.nullable) for column in result.columns
    ]
    order = [(key, rankings.replace(key.expr)) for key in result.order]
    having = [rankings.replace(condition) for condition in result.having]
    tree = rankings.apply(tree)
    for key, expr in order:
        if key.is_bare_ranking:
            tree = ir.Filter(tree, ir.IsNull(expr, negated=True))
    tie_break = tuple(rows)
    if result.grouped:
        groups = _Groups(columns)
        having = [groups.after(condition) for condition in having]
        order = [(key, groups.after(expr)) for key, expr in order]
        projected = [
            ir.Column(column.name, groups.after(column.expr), column.type, column.nullable) for column in columns
        ]
        tree = groups.apply(tree, tie_break)
        columns = projected
        tie_break = tuple(column.name for column in groups.keys)
    for condition in having:
        tree = ir.Filter(tree, condition)
    if result.distinct:
        tree, columns, order = _distinct(tree, columns, order)
        tie_break = tuple(column.name for column in columns if sortable(column.type))
    keys = tuple(sort_key for key, expr in order for sort_key in _sort_keys(key, expr))
    if always_sorted:
        tree = ir.Sort(tree, keys, tie_break)
    if result.limit is not None or result.offset is not None:
        tree = ir.Limit(tree, result.limit, result.offset)
    return tree, tuple(columns)


def _distinct(
    tree: ir.Operator, columns: list[ir.Column], order: list[tuple[OrderedBy, ir.Expr]]
) -> tuple[ir.Operator, list[ir.Column], list[tuple[OrderedBy, ir.Expr]]]:
    """Each different row once: a grouping by all columns."""
    groups = _Groups(columns, aggregates=False)
    keys = [(key, groups.after(expr)) for key, expr in order]
    made = [ir.Column(column.name, groups.after(column.expr), column.type, column.nullable) for column in columns]
    return ir.GroupBy(tree, tuple(groups.keys), ()), made, keys


def _sort_keys(key: OrderedBy, expr: ir.Expr) -> tuple[ir.SortKey, ...]:
    if isinstance(key.expr, ir.Nearest) and not key.descending and key.nulls_first is None:
        return (ir.SortKey(ir.IsNull(expr)), ir.SortKey(expr))
    if key.is_bare_ranking:
        return (ir.SortKey(expr, descending=True, nulls_first=key.nulls_first),)
    return (ir.SortKey(expr, bool(key.descending), key.nulls_first),)


@dataclass(slots=True)
class _Rankings:
    """The different rankings of a query, each computed once and read by the name of its column."""

    names: RankNames
    found: dict[ir.Ranking, ir.ColumnRef] = field(default_factory=dict)

    def replace(self, expr: ir.Expr) -> ir.Expr:
        """The expression with its rankings read from columns."""
        if isinstance(expr, ir.Nearest | ir.Bm25 | ir.Rrf):
            if expr not in self.found:
                self.found[expr] = ir.ColumnRef(self.names.fresh(), F64, True)
            return self.found[expr]
        if isinstance(expr, ir.Aggregate):
            return ir.Aggregate(expr.function, self.replace(expr.arg), expr.distinct, expr.source)
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

    def __init__(self, columns: list[ir.Column], *, aggregates: bool = True) -> None:
        self.keys: list[ir.Column] = [column for column in columns if not aggregates or not has_aggregate(column.expr)]
        self.aggregates: list[ir.Column] = [
            column for column in columns if aggregates and isinstance(column.expr, ir.Aggregate)
        ]
        self._hidden = 0
        self._columns: dict[ir.Expr, ir.ColumnRef] = {}
        for column in (*self.keys, *self.aggregates):
            self._columns.setdefault(column.expr, ir.ColumnRef(column.name, column.type, column.nullable))

    def apply(self, tree: ir.Operator, row_order: tuple[str, ...]) -> ir.GroupBy:
        """The grouping; it is told the order of rows only when an aggregate depends on it."""
        collects = any(
            isinstance(column.expr, ir.Aggregate) and column.expr.function is ir.AggregateFunction.COLLECT
            for column in self.aggregates
        )
        return ir.GroupBy(tree, tuple(self.keys), tuple(self.aggregates), row_order if collects else ())

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
