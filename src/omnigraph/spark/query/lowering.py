"""Operators of the IR as Spark frames: bindings are rows, joins are joins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import BadRequest, InternalError
from omnigraph.query import ir
from omnigraph.query.predicates import conjuncts
from omnigraph.query.typing import can_fail, type_of
from omnigraph.spark.query import blocks
from omnigraph.spark.query.bindings import KEY, TYPE, Bindings, Names, column, joined_on
from omnigraph.spark.query.expressions import BOOLEAN, Wanted, computed, kept, lower_expression, lower_predicate
from omnigraph.spark.query.groups.aggregates import Asked, Keys, grouped
from omnigraph.spark.query.groups.everything import over_everything
from omnigraph.spark.query.joins.join_order import next_to_join, parts_and_conditions
from omnigraph.spark.query.needs import field_of, stored_type
from omnigraph.spark.query.walks import Walks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from omnigraph.spark.query.groups.scan_groups import ScanGroups
    from omnigraph.spark.query.joins.stopping import Stopping
    from omnigraph.spark.query.searching import Searching
    from omnigraph.spark.query.tables import Tables


class Lowering:
    """Lowers one query. `bind` replaces parameters and `now()` by their values."""

    def __init__(
        self,
        tables: Tables,
        one_row: Callable[[], DataFrame],
        bind: Callable[[ir.Expr], ir.Expr],
        searching: Searching,
        names: Names,
        scan_groups: ScanGroups,
        stopping: Stopping,
    ) -> None:
        self._tables = tables
        self._variables = tables.variables
        self._one_row = one_row
        self._bind = bind
        self._searching = searching
        self._names = names
        self._scan_groups = scan_groups
        self._wanted: int | None = None
        self._stopping = stopping
        self._walks = Walks(tables, names, self._kept_edges, stopping)

    def block(self, operator: ir.Operator, outer: Bindings | None = None) -> Bindings:
        """The rows of a whole block, with all its conditions."""
        return self.lower(operator, outer).settled()

    def lower(self, operator: ir.Operator, outer: Bindings | None = None) -> Bindings:
        """The rows of an operator. `outer` are the enclosing rows inside `not { }`, `optional { }` and the like."""
        match operator:
            case ir.Unit():
                return Bindings(self._one_row())
            case ir.Outer(vars=names, columns=columns):
                if outer is None:
                    raise InternalError("a block without an enclosing one refers to outer variables")
                return blocks.outer_bindings(outer, names, columns, self._names)
            case ir.Scan(var=var):
                with_key = self._tables.identities.told_apart(var)
                return self._tables.scan(var, operator.all_tables, operator, with_key=with_key)
            case ir.Join() | ir.Filter():
                return self._joins(operator, outer)
            case ir.Expand() if self._tables.identities.begins_with_edges(operator):
                return self._walks.begin(operator)
            case ir.Expand():
                return self._walks.expand(operator, self.lower(operator.input, outer))
            case ir.AntiJoin() | ir.SemiJoin():
                return self._look_for(operator, self.lower(operator.input, outer))
            case ir.Optional():
                return self._optional(operator, self.lower(operator.input, outer))
            case ir.Either():
                return self._either(operator, self.lower(operator.input, outer))
            case ir.Rank(input=below, ranking=ranking, column=name):
                return self._rank(self.block(below, outer), ranking, name)
            case ir.Fuse(input=below, ranking=ranking, column=name):
                return self._fuse(self.block(below, outer), ranking, name)
            case ir.GroupBy():
                where_read = self._scan_groups.lowered(operator)
                return where_read or self._group(operator, self.block(operator.input, outer))
            case ir.Sort(input=below, keys=keys, tie_break=tie_break):
                return self._sort(self.block(below, outer), keys, tie_break)
            case ir.Limit(count=count, offset=offset):
                skipped = 0 if offset is None else self._whole_number(offset, "offset")
                self._wanted = None if count is None else skipped + self._whole_number(count, "limit")
                return self._limit(operator, self.block(operator.input, outer))
            case ir.Stage():
                self._wanted = None
                return self._stage(operator, self.block(operator.input, outer))
            case _:
                raise InternalError(f"{type(operator).__name__} cannot stand inside a query")

    def constant(self, expr: ir.Expr) -> Any:
        """The value of an expression that looks at no row."""
        bound = self._bind(expr)
        if not isinstance(bound, ir.Literal):
            raise InternalError(f"{expr!r} is not constant")
        return bound.value

    def columns(self, rows: Bindings, wanted: Sequence[ir.Column]) -> tuple[Bindings, list[Column]]:
        """The Spark columns of expressions over these rows. What can fail is computed now, by a step of its own."""
        bound = [self._bind(each.expr) for each in wanted]
        failing = {
            at: Wanted(self._names(), expr, each.type)
            for at, (expr, each) in enumerate(zip(bound, wanted, strict=True))
            if can_fail(each.expr)
        }
        if failing:
            rows = rows.with_frame(computed(rows.frame, list(failing.values()), self._resolver(rows)))
        resolve = self._resolver(rows)
        return rows, [
            column(failing[at].name) if at in failing else lower_expression(expr, each.type, resolve)
            for at, (expr, each) in enumerate(zip(bound, wanted, strict=True))
        ]

    def _resolver(self, rows: Bindings) -> Callable[[ir.Expr], Column]:
        """The columns of the leaves of expressions over these rows."""

        def resolve(leaf: ir.Expr) -> Column:
            match leaf:
                case ir.Prop(var=var) if field_of(leaf) != KEY:
                    return column(rows.place(var, field_of(leaf), stored_type(leaf.type)))
                case ir.Prop(var=var) | ir.Entity(var=var):
                    return self._variables.id(rows, var)
                case ir.TypeOf(var=var):
                    return self._variables.type_of(rows, var)
                case ir.PathValue(var=var, part=part):
                    return column(rows.places[var, part.value])
                case ir.ColumnRef(name=name) if name in rows.computed:
                    return column(rows.computed[name])
                case ir.ColumnRef(name=name):
                    return self._variables.id(rows, rows.entities[name])
                case ir.TextMatch():
                    text = column(rows.place(leaf.var, leaf.property, pa.string()))
                    return self._searching.matches(leaf, text, self.constant)
            raise InternalError(f"{leaf!r} is not a leaf of an expression")

        return resolve

    # --- the block -----------------------------------------------------------------------------------------------

    def _joins(self, operator: ir.Join | ir.Filter, outer: Bindings | None) -> Bindings:
        parts, conditions = parts_and_conditions(operator)
        if isinstance(operator, ir.Filter) and parts[0] is operator:
            return self._filter(self.lower(operator.input, outer), operator.predicate)
        rows, *rest = [self.lower(part, outer) for part in parts]
        for condition in conditions:
            rows = self._filter(rows, condition)
        while rest:
            rows = self._join(rows, rest.pop(next_to_join(rows, rest)))
        return rows

    def _join(self, left: Bindings, right: Bindings) -> Bindings:
        shared = sorted(left.vars & right.vars)
        left, right = self._stopping.asked(left), self._stopping.asked(right)
        frame = joined_on(left.frame, right.frame, [(left.key(var), right.key(var)) for var in shared])
        joined = Bindings(
            frame,
            {**right.places, **left.places},
            {**right.computed, **left.computed},
            {**right.entities, **left.entities},
            met=tuple(filter(None, (left.any_column(), right.any_column()))),
        )
        for predicate in (*left.waiting, *right.waiting):
            joined = self._filter(joined, predicate)
        return joined

    def _filter(self, rows: Bindings, predicate: ir.Expr) -> Bindings:
        resolve = self._resolver(rows)
        frame = rows.frame
        for part in conjuncts(predicate):
            if not rows.binds(part):
                rows = replace(rows, waiting=(*rows.waiting, part))
                continue
            bound = self._bind(part)
            frame = kept(frame, bound, resolve) if can_fail(part) else frame.where(lower_predicate(bound, resolve))
        return rows.with_frame(frame)

    def _kept_edges(self, edges: DataFrame, where: ir.Expr, fields: Mapping[str, Column]) -> DataFrame:
        """The edges for which the condition of a traversal holds."""
        bound = self._bind(where)

        def resolve(leaf: ir.Expr) -> Column:
            match leaf:
                case ir.Prop():
                    return fields[field_of(leaf)]
                case ir.Entity():
                    return fields[KEY]
                case ir.TypeOf():
                    return fields[TYPE]
                case ir.TextMatch(property=name):
                    return self._searching.matches(leaf, fields[name], self.constant)
            raise InternalError(f"{leaf!r} is not a leaf of a condition along a walk")

        return kept(edges, bound, resolve) if can_fail(where) else edges.where(lower_predicate(bound, resolve))

    def _look_for(self, operator: ir.AntiJoin | ir.SemiJoin, rows: Bindings) -> Bindings:
        inner = self.block(operator.inner, rows)
        used = (*operator.vars, *operator.columns)
        return blocks.filtered(rows, inner, used, self._names, found=isinstance(operator, ir.SemiJoin))

    def _optional(self, operator: ir.Optional, rows: Bindings) -> Bindings:
        inner = self.block(operator.inner, rows)
        used = (*operator.vars, *operator.columns)
        binds = [*(variable.name for variable in operator.binds), *operator.paths]
        return blocks.extended(self._stopping.asked(rows), inner, used, binds, self._names, keep_all=True)

    def _either(self, operator: ir.Either, rows: Bindings) -> Bindings:
        arms = [self.block(arm, rows) for arm in operator.arms]
        used = (*operator.vars, *operator.columns)
        binds = [variable.name for variable in operator.binds]
        found = blocks.united(arms, operator, self._names)
        if not binds:
            return blocks.filtered(rows, found, used, self._names, found=True)
        return blocks.extended(self._stopping.asked(rows), found, used, binds, self._names, keep_all=False)

    # --- above the block -----------------------------------------------------------------------------------------

    def _rank(self, rows: Bindings, ranking: ir.Nearest | ir.Bm25, name: str) -> Bindings:
        return self._with_column(rows, name, self._searching.score(ranking, rows, self.constant))

    def _fuse(self, rows: Bindings, ranking: ir.Rrf, name: str) -> Bindings:
        frame, score = self._searching.fused(ranking, rows, self.constant, self._names, self._wanted)
        return self._with_column(rows.with_frame(frame), name, score)

    def _with_column(self, rows: Bindings, name: str, made: Column) -> Bindings:
        given = self._names()
        return replace(rows, frame=rows.frame.withColumn(given, made), computed={**rows.computed, name: given})

    def _group(self, operator: ir.GroupBy, rows: Bindings) -> Bindings:
        arguments = [_argument(each) for each in operator.aggregates]
        values = [key for key in operator.keys if entity_variable(key.expr, rows) is None]
        rows, made = self.columns(rows, [*values, *arguments])
        made[len(values) :] = [
            self._counted(rows, _aggregate_of(each), argument)
            for each, argument in zip(operator.aggregates, made[len(values) :], strict=True)
        ]
        places: dict[tuple[str, str], str] = {}
        entities: dict[str, str] = {}
        for key in operator.keys:
            var = entity_variable(key.expr, rows)
            if var is not None:
                places.update(rows.of(var))
                entities[key.name] = var
        key_names = {key.name: self._names() for key in values}
        names = {each.name: self._names() for each in operator.aggregates}
        keys = {rows.key(var): column(rows.key(var)) for var in entities.values()}
        carried = [name for name in places.values() if name not in keys]
        keys |= dict(zip(key_names.values(), made))
        asked = [Asked(_aggregate_of(each), each.type, names[each.name]) for each in operator.aggregates]
        arguments, row_order = made[len(values) :], rows.identity(operator.row_order)
        if keys:
            frame = grouped(rows.frame, Keys(keys, carried), asked, arguments, row_order)
        else:
            frame = over_everything(rows.frame, asked, arguments, row_order)
        return Bindings(frame, places, {**key_names, **names}, entities)

    def _counted(self, rows: Bindings, wanted: ir.Aggregate, argument: Column) -> Column:
        """The argument of an aggregate. Entities of several types are counted as what they are, not by their ids."""
        from pyspark.sql import functions as f

        var = entity_variable(wanted.arg, rows)
        if var is None or wanted.function is not ir.AggregateFunction.COUNT or not self._variables.is_mixed(var):
            return argument
        return f.concat(self._variables.type_of(rows, var), f.lit(" "), self._variables.id(rows, var))

    def _sort(self, rows: Bindings, keys: Sequence[ir.SortKey], tie_break: Sequence[str]) -> Bindings:
        rows, made = self.columns(rows, [ir.Column("", key.expr, type_of(key.expr) or BOOLEAN) for key in keys])
        order = []
        for key, each in zip(keys, made, strict=True):
            var = entity_variable(key.expr, rows)
            each = each if var is None else column(rows.key(var))
            if key.descending:
                order.append(each.desc_nulls_first() if key.nulls_lead else each.desc_nulls_last())
            else:
                order.append(each.asc_nulls_first() if key.nulls_lead else each.asc_nulls_last())
        order += [column(name).asc_nulls_first() for name in rows.identity(tie_break)]
        return rows.with_frame(rows.frame.orderBy(*order)) if order else rows

    def _limit(self, operator: ir.Limit, rows: Bindings) -> Bindings:
        frame = rows.frame
        if operator.offset is not None:
            frame = frame.offset(self._whole_number(operator.offset, "offset"))
        if operator.count is not None:
            frame = frame.limit(self._whole_number(operator.count, "limit"))
        return rows.with_frame(frame)

    def _whole_number(self, expr: ir.Expr, what: str) -> int:
        value = self.constant(expr)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise BadRequest(f"{what} must be a non-negative whole number and is {value!r}")
        return min(value, 2**31 - 1)

    def _stage(self, operator: ir.Stage, rows: Bindings) -> Bindings:
        values = [each for each in operator.columns if entity_variable(each.expr, rows) is None]
        carried = {each.name: entity_variable(each.expr, rows) for each in operator.columns}
        entities = {name: var for name, var in carried.items() if var is not None}
        rows, made = self.columns(rows, values)
        wanted = {*operator.variables, *entities.values()}
        places = {key: name for key, name in rows.places.items() if key[0] in wanted}
        names = {each.name: self._names() for each in values}
        frame = rows.frame.select(*places.values(), *(c.alias(n) for c, n in zip(made, names.values())))
        return Bindings(frame, places, names, entities)


def entity_variable(expr: ir.Expr, rows: Bindings) -> str | None:
    """The variable that an expression stands for as a whole."""
    if isinstance(expr, ir.Entity):
        return expr.var
    return rows.entities.get(expr.name) if isinstance(expr, ir.ColumnRef) else None


def _aggregate_of(each: ir.Column) -> ir.Aggregate:
    if not isinstance(each.expr, ir.Aggregate):
        raise InternalError(f"{each.expr!r} is not an aggregate")
    return each.expr


def _argument(each: ir.Column) -> ir.Column:
    argument = _aggregate_of(each).arg
    return ir.Column(each.name, argument, type_of(argument) or BOOLEAN)
