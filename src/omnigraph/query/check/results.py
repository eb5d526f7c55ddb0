"""`return`, `with`, `order` and `limit`: the columns of a result, their names and types, and how rows are sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from omnigraph.diagnostics import Span
from omnigraph.query import codes, ir
from omnigraph.query.check.scope import Scope, shown
from omnigraph.query.check.values.aggregates import has_aggregate
from omnigraph.query.check.values.expressions import AliasTable, ExpressionChecker
from omnigraph.query.check.values.places import Place
from omnigraph.query.text import syntax
from omnigraph.query.typing import STRING, children, is_nullable, type_of
from omnigraph.schema.types import INTEGERS, ListType, ScalarType, VectorType, is_blob

MAX_RANKINGS = 50
"""Different rankings in one query: each is a step of the plan."""


@dataclass(frozen=True, slots=True)
class OrderedBy:
    """One sort key. `descending` and `nulls_first` are None when not written; `direct`: no alias stands for it."""

    expr: ir.Expr
    descending: bool | None
    direct: bool
    nulls_first: bool | None = None

    @property
    def is_bare_ranking(self) -> bool:
        """Whether it is a ranking without a direction: best first, and rows without a score are left out."""
        return self.direct and self.descending is None and isinstance(self.expr, ir.Nearest | ir.Bm25 | ir.Rrf)


@dataclass(frozen=True, slots=True)
class CheckedResult:
    """Columns as written, aliases put in: they may hold aggregates and rankings, which lowering takes apart."""

    columns: tuple[ir.Column, ...]
    order: tuple[OrderedBy, ...]
    limit: ir.Expr | None
    offset: ir.Expr | None
    having: tuple[ir.Expr, ...]
    grouped: bool
    distinct: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """What `return` and `with` have in common, as written."""

    projections: tuple[syntax.Projection, ...]
    conditions: tuple[syntax.Expression, ...]
    order: tuple[syntax.OrderKey, ...]
    limit: syntax.Expression | None
    offset: syntax.Expression | None
    distinct: bool
    word: str


def check_result(read: syntax.Read, scope: Scope) -> CheckedResult:
    """Check everything after the last match block."""
    part = _Part(read.projections, read.having, read.order, read.limit, read.offset, read.distinct, "return")
    return _Checker(part, scope).check()


def check_stage(stage: syntax.Stage, scope: Scope) -> CheckedResult:
    """Check what ends a stage: `with` and what belongs to it."""
    conditions = () if stage.where is None else (stage.where,)
    part = _Part(stage.projections, conditions, stage.order, stage.limit, stage.offset, stage.distinct, "with")
    return _Checker(part, scope).check()


@dataclass(slots=True)
class _Checker:
    part: _Part
    scope: Scope
    aliases: AliasTable = field(default_factory=AliasTable)
    columns: list[ir.Column] = field(default_factory=list)
    places: list[Span] = field(default_factory=list)

    def check(self) -> CheckedResult:
        names: set[str] = set()
        for projection in self.part.projections:
            column = self._column(projection)
            name = _name(projection, column)
            if name is not None:
                if name in names:
                    message = f"two columns are called `{name}`"
                    self.scope.problems.add(codes.DUPLICATE_COLUMN, message, projection.span, "name one with `as`")
                names.add(name)
            if column is not None:
                self.columns.append(column)
                self.places.append(projection.span)
        having = self._conditions()
        order = [(key, checked) for key in self.part.order if (checked := self._order_key(key)) is not None]
        limit = None if self.part.limit is None else _row_count(self.part.limit, self.scope, "limit")
        offset = None if self.part.offset is None else _row_count(self.part.offset, self.scope, "offset")
        grouped = any(has_aggregate(column.expr) for column in self.columns)
        self._check_grouping(having, order, grouped)
        self._check_rankings(having, order)
        return CheckedResult(
            tuple(self.columns),
            tuple(checked for _, checked in order),
            limit,
            offset,
            tuple(condition for _, condition in having),
            grouped,
            self.part.distinct,
        )

    def _conditions(self) -> list[tuple[syntax.Expression, ir.Expr]]:
        checker = ExpressionChecker(self.scope, Place.HAVING, self.aliases)
        found = [(each, checker.condition(each)) for each in self.part.conditions]
        return [(written, condition) for written, condition in found if condition is not None]

    # --- columns

    def _column(self, projection: syntax.Projection) -> ir.Column | None:
        checker = ExpressionChecker(self.scope, Place.RETURN, self.aliases)
        expr = checker.value(projection.expression)
        if expr is None:
            return None
        type_ = type_of(expr)
        span = projection.expression.span
        if type_ is None:
            mixed = isinstance(expr, ir.Literal) and bool(expr.value)
            message = "the items of a list are of one type" if mixed else "this value has no type of its own"
            checker.problem(codes.OPERAND_TYPE, message, span, None if mixed else "return a typed value")
            return None
        if is_blob(type_):
            checker.problem(codes.BLOB_AS_VALUE, "a blob cannot be returned by a query", span)
            return None
        if self.part.word == "with" and not self._can_stage(projection, expr):
            return None
        if projection.alias is not None:
            self.aliases.define(projection.alias.text, expr)
        name = _name(projection, None)
        if name is None:
            what = "a literal" if isinstance(expr, ir.Literal) else "a computed value"
            what = "a comparison" if isinstance(expr, ir.Compare | ir.IsNull) else what
            message = f"{what} needs a name in `{self.part.word}`"
            checker.problem(codes.UNNAMED_COLUMN, message, span, "add `as name`")
            return None
        return ir.Column(name, expr, type_, is_nullable(expr))

    def _can_stage(self, projection: syntax.Projection, expr: ir.Expr) -> bool:
        """`with` passes variables on under their own names, and values under an alias."""
        written = projection.expression
        if isinstance(expr, ir.Entity) and isinstance(written, syntax.Variable):
            if projection.alias is None:
                return True
            message = f"`${written.name}` keeps its name in `with`"
            self.scope.problems.add(codes.STAGE_COLUMN, message, projection.alias.span, f"write `${written.name}`")
            return False
        if projection.alias is None and not isinstance(written, syntax.Reference):
            message = "a value needs a name in `with`, to be used behind it"
            self.scope.problems.add(codes.STAGE_COLUMN, message, projection.span, "add `as name`")
            return False
        if isinstance(expr, ir.Entity):
            message = "an entity is passed on as a variable in `with`"
            hint = f"write `${shown(expr.var)}`"
            self.scope.problems.add(codes.STAGE_COLUMN, message, projection.span, hint)
            return False
        return True

    # --- order

    def _order_key(self, key: syntax.OrderKey) -> OrderedBy | None:
        checker = ExpressionChecker(self.scope, Place.ORDER, self.aliases)
        expr = checker.value(key.expression)
        if expr is None:
            return None
        span = key.expression.span
        type_ = type_of(expr)
        if isinstance(expr, ir.Entity):
            own = ir.Prop(expr.var, "id", STRING, expr.nullable)
            return OrderedBy(own, key.descending, True, key.nulls_first)
        if type_ is None:
            checker.problem(codes.OPERAND_TYPE, "null cannot be sorted by", span)
            return None
        if is_blob(type_):
            checker.problem(codes.BLOB_AS_VALUE, "rows cannot be sorted by a blob", span)
            return None
        if isinstance(type_, ListType | VectorType):
            what = "a list" if isinstance(type_, ListType) else "a vector"
            checker.problem(codes.BLOB_OR_LIST_MISUSE, f"rows cannot be sorted by {what}", span)
            return None
        direct = not isinstance(key.expression, syntax.Reference)
        return OrderedBy(expr, key.descending, direct, key.nulls_first)

    # --- rules across the clauses

    def _check_grouping(
        self,
        having: Sequence[tuple[syntax.Expression, ir.Expr]],
        order: Sequence[tuple[syntax.OrderKey, OrderedBy]],
        grouped: bool,
    ) -> None:
        """In a grouped query, what is sorted or computed after grouping is made of aggregates and group keys."""
        word = self.part.word
        after = [(condition, written.span) for written, condition in having]
        sorted_by = [(checked.expr, key.span) for key, checked in order]
        if not grouped:
            clause = "having" if word == "return" else "where"
            for name, found in (("order", sorted_by), (clause, after)):
                for expr, span in found:
                    if has_aggregate(expr):
                        message = f"an aggregate in `{name}` needs one in `{word}`, which groups the rows"
                        self.scope.problems.add(codes.AGGREGATE_PLACE, message, span)
        if grouped:
            keys = {column.expr for column in self.columns if not has_aggregate(column.expr)}
            for column, span in zip(self.columns, self.places, strict=True):
                if has_aggregate(column.expr):
                    self._check_grouped(column.expr, keys, span)
            for expr, span in (*after, *sorted_by):
                self._check_grouped(expr, keys, span)
        elif self.part.distinct:
            keys = {column.expr for column in self.columns}
            for expr, span in sorted_by:
                self._check_grouped(expr, keys, span)
        if grouped and self.part.distinct:
            self._check_distinct_order(sorted_by)

    def _check_distinct_order(self, sorted_by: Sequence[tuple[ir.Expr, Span]]) -> None:
        keys = {column.expr for column in self.columns}
        for expr, span in sorted_by:
            if expr not in keys and any(
                isinstance(leaf, ir.Aggregate) and leaf not in keys for leaf in (expr, *children(expr))
            ):
                message = f"an aggregate that is not in `{self.part.word} distinct` has no single value to sort by"
                self.scope.problems.add(codes.AGGREGATE_PLACE, message, span, "return it")

    def _check_grouped(self, expr: ir.Expr, keys: set[ir.Expr], span: Span) -> None:
        if expr in keys or isinstance(expr, ir.Aggregate):
            return
        why = f"is not in `{self.part.word} distinct`, so it has no single value to sort by"
        if not self.part.distinct:
            why = "is not returned, so it has no single value in a group"
        match expr:
            case ir.Prop(var, name):
                if name == "id" and any(isinstance(key, ir.Entity) and key.var == var for key in keys):
                    return
                message = f"`${shown(var)}.{name}` {why}"
            case ir.Entity(var) | ir.TypeOf(var) | ir.PathValue(var) | ir.TextMatch(var=var):
                message = f"`${shown(var)}` {why}"
            case ir.ColumnRef(name):
                message = f"`{name}` {why}"
            case ir.Nearest() | ir.Bm25() | ir.Rrf():
                message = "a ranking that is not returned has no single value in a group"
            case _:
                for child in children(expr):
                    self._check_grouped(child, keys, span)
                return
        self.scope.problems.add(codes.AGGREGATE_PLACE, message, span, "return it, or aggregate it")

    def _check_rankings(
        self,
        having: Sequence[tuple[syntax.Expression, ir.Expr]],
        order: Sequence[tuple[syntax.OrderKey, OrderedBy]],
    ) -> None:
        expressions = [column.expr for column in self.columns] + [checked.expr for _, checked in order]
        expressions += [condition for _, condition in having]
        written = [projection.expression for projection in self.part.projections]
        written += [key.expression for key in self.part.order] + list(self.part.conditions)
        rankings: set[ir.Expr] = set()
        for expr in expressions:
            _collect_rankings(expr, rankings)
        if len(rankings) > MAX_RANKINGS:
            message = f"the query computes {len(rankings)} different rankings; at most {MAX_RANKINGS} are allowed"
            self.scope.problems.add(codes.EXPRESSION_SIZE, message, written[0].span)
        if self.part.limit is not None:
            return
        if any(_has(expr, ir.Rrf) for expr in expressions):
            span = _call_span(written, "rrf")
            self.scope.problems.add(codes.RRF_WITHOUT_LIMIT, "`rrf` needs a `limit`", span, "add `limit 10`")
        elif any(_has(expr, ir.Nearest) for expr in expressions):
            span = _call_span(written, "nearest")
            self.scope.problems.add(codes.NEAREST_WITHOUT_LIMIT, "`nearest` needs a `limit`", span, "add `limit 10`")


def _name(projection: syntax.Projection, column: ir.Column | None) -> str | None:
    """The alias, else `x.p`, else `x`, else the function with its argument; comparisons and literals have none."""
    if column is not None:
        return column.name
    if projection.alias is not None:
        return projection.alias.text
    return _own_name(projection.expression)


def _own_name(expression: syntax.Expression) -> str | None:
    match expression:
        case syntax.Property(variable, name):
            return f"{variable.name}.{name.text}"
        case syntax.Variable(name) | syntax.Reference(name):
            return name
        case syntax.Call(function, (), distinct=False):
            return function.text
        case syntax.Call(function, (first, *_)):
            inner = _own_name(first)
            distinct = "distinct " if expression.distinct else ""
            return None if inner is None else f"{function.text}({distinct}{inner})"
        case _:
            return None


def _row_count(expression: syntax.Expression, scope: Scope, word: str) -> ir.Expr | None:
    checker = ExpressionChecker(scope, Place.CONSTANT)
    value = checker.value(expression)
    if value is None:
        return None
    type_ = type_of(value)
    fits = isinstance(type_, ScalarType) and type_.scalar in INTEGERS
    hint = None
    if fits and isinstance(value, ir.Literal):
        fits = 0 <= value.value < 2**63
    if fits and isinstance(value, ir.Param) and value.nullable:
        fits, hint = False, f"make `${value.name}` required"
    if not fits:
        message = f"`{word}` needs a non-negative integer or an integer parameter"
        checker.problem(codes.LIMIT_VALUE, message, expression.span, hint)
        return None
    return value


def _collect_rankings(expr: ir.Expr, found: set[ir.Expr]) -> None:
    if isinstance(expr, ir.Nearest | ir.Bm25 | ir.Rrf):
        found.add(expr)
        return
    for child in children(expr):
        _collect_rankings(child, found)


def _has(expr: ir.Expr, kind: type) -> bool:
    return isinstance(expr, kind) or any(_has(child, kind) for child in children(expr))


def _call_span(expressions: Sequence[syntax.Expression], function: str) -> Span:
    """Where the function is called first."""
    stack = list(reversed(expressions))
    while stack:
        expression = stack.pop()
        if isinstance(expression, syntax.Call) and expression.function.text == function:
            return expression.span
        stack.extend(reversed(syntax.parts(expression)))
    return expressions[0].span
