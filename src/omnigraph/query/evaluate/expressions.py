"""The evaluation of one expression over one set of rows, part by part."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest, InternalError
from omnigraph.query import ir
from omnigraph.query.evaluate import arithmetic
from omnigraph.query.evaluate.comparisons import compare
from omnigraph.query.evaluate.membership import contains, matches, on_text
from omnigraph.query.evaluate.room import CAPACITY, bytes_of, bytes_of_call, take_room
from omnigraph.query.functions.kernels import lists
from omnigraph.query.functions.kernels.arguments import CannotCompute, as_array, exactly, fit
from omnigraph.query.functions.kernels.moments import shift
from omnigraph.query.functions.table import FUNCTIONS, NullRule
from omnigraph.query.typing import BOOL, can_fail, type_of
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.types import EntityType, ValueType

Leaf = ir.Prop | ir.ColumnRef | ir.Entity | ir.TypeOf | ir.PathValue | ir.TextMatch
"""What an engine hands over as a column."""

_Computed = ir.Arithmetic | ir.Negate | ir.Shift | ir.Call | ir.Matches | ir.Convert
"""What has no value for some rows."""

Columns = Mapping[Any, Any] | Callable[[Any], Any]
"""Where columns come from: a function that is given the leaf; or a mapping from `(variable, property)`, and from the
name of a computed column."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation over `length` rows."""

    columns: Columns
    params: Mapping[str, Any]
    now: datetime.datetime
    length: int
    _known: dict[Any, Any] = field(default_factory=dict)

    def array(self, expr: ir.Expr) -> pa.Array:
        """The value for each row."""
        value = self.value(expr)
        if isinstance(value, pa.Scalar):
            take_room(bytes_of(value, self.length), "a constant in every row")
        return as_array(value, self.length)

    def value(self, expr: ir.Expr) -> Any:
        """An array, or a scalar that stands for the same value in every row."""
        match expr:
            case ir.Literal(value, type_):
                return scalar(value, type_)
            case ir.Param(type=type_):
                return scalar(expr.taken(self.params), type_)
            case ir.Now():
                return pa.scalar(self.now, pa.timestamp("us", tz="UTC"))
            case ir.Prop() | ir.ColumnRef() | ir.Entity() | ir.TypeOf() | ir.PathValue() | ir.TextMatch():
                return self._column(expr)
            case ir.And(items):
                return self._junction(items, pc.and_kleene, decided=False)
            case ir.Or(items):
                return self._junction(items, pc.or_kleene, decided=True)
            case ir.Case():
                return self._case(expr)
            case ir.Arithmetic() | ir.Negate() | ir.Shift() | ir.Call() | ir.Matches() | ir.Convert():
                return self._computed(expr)
            case _:
                return self._condition(expr)

    def _condition(self, expr: ir.Expr) -> Any:
        match expr:
            case ir.Compare(op, left, right):
                return compare(op, self.value(left), self.value(right))
            case ir.IsNull(item, negated):
                return _is_null(self.value(item), negated)
            case ir.Contains(haystack, needle):
                return contains(self.value(haystack), self.value(needle))
            case ir.StartsWith(text, prefix):
                return on_text(self.value(text), self.value(prefix), pc.starts_with, str.startswith)
            case ir.EndsWith(text, suffix):
                return on_text(self.value(text), self.value(suffix), pc.ends_with, str.endswith)
            case ir.In(item, items):
                return contains(self.value(items), self.value(item))
            case ir.Not(item):
                return pc.invert(self.value(item))
            case ir.ListOf(items, type_):
                parts = [self.array(item) for item in items]
                take_room(sum(bytes_of(part, self.length) for part in parts), "a list of values")
                return lists.made_of(parts, _arrow(type_))
            case ir.Index(items, index):
                return lists.item(self.array(items), self.array(index))
            case _:
                raise InternalError(f"{type(expr).__name__} is computed by an operator, not row by row")

    # --- what can fail

    def _computed(self, expr: _Computed) -> Any:
        if not self.length:
            # What no row asks for does not fail.
            return pa.nulls(0, _arrow(type_of(expr) or BOOL))
        try:
            return self._compute(expr)
        except CannotCompute as problem:
            raise BadRequest(f"{problem} in `{expr.source}`", expression=expr.source) from None
        except pa.ArrowCapacityError:
            take_room(CAPACITY + 1, f"`{expr.source}`")
            raise

    def _compute(self, expr: _Computed) -> Any:
        match expr:
            case ir.Arithmetic(op, left, right, type_):
                (one, two), constant = self._arguments((left, right))
                length = 1 if constant else self.length
                take_room(bytes_of(one, length) + bytes_of(two, length), f"`{expr.source}`")
                return _first(arithmetic.compute(op, one, two, _arrow(type_)), constant)
            case ir.Negate(item, type_):
                return arithmetic.negate(self.value(item), _arrow(type_))
            case ir.Convert(item, type_):
                return exactly(self.value(item), _arrow(type_))
            case ir.Matches(text, pattern):
                return matches(self.value(text), self.value(pattern))
            case ir.Shift(moment, amount, unit, backwards, type_):
                amounts = self.array(amount)
                if backwards:
                    amounts = arithmetic.negate(amounts, pa.int64())
                return shift(self.array(moment), amounts, unit.value, _arrow(type_))
            case ir.Call(name, args, type_):
                return self._call(name, args, _arrow(type_), expr.source)

    def _call(self, name: str, args: tuple[ir.Expr, ...], result: pa.DataType, source: str) -> Any:
        function = FUNCTIONS[name]
        values, constant = self._arguments(args)
        if function.null is not NullRule.FIRST and any(
            pa.types.is_null(value.type) or (isinstance(value, pa.Scalar) and not value.is_valid) for value in values
        ):
            return pa.scalar(None, result)
        take_room(bytes_of_call(name, values), f"`{source}`")
        made = function.kernel(values, result)
        return _first(made if made.type == result else made.cast(result), constant)

    def _arguments(self, args: tuple[ir.Expr, ...]) -> tuple[list[Any], bool]:
        """The values of arguments, at least one of them an array; and whether they are all constant."""
        values = [self.value(arg) for arg in args]
        constant = all(isinstance(value, pa.Scalar) for value in values)
        if constant:
            values[-1] = as_array(values[-1], 1)
        return values, constant

    # --- only some rows

    def _junction(self, items: tuple[ir.Expr, ...], combine: Callable[[Any, Any], Any], *, decided: bool) -> Any:
        """`and` or `or`. A part that can fail is looked at only where the parts before it decide nothing."""
        result = self.value(items[0])
        for item in items[1:]:
            if not can_fail(item):
                result = combine(result, self.value(item))
                continue
            so_far = as_array(result, self.length)
            settled = pc.fill_null(pc.equal(so_far, decided), False)
            result = combine(so_far, self._where(item, pc.invert(settled), pa.bool_()))
        return result

    def _case(self, case: ir.Case) -> Any:
        result = _arrow(case.type)
        values = pa.nulls(self.length, result)
        waiting = pa.repeat(pa.scalar(True), self.length)
        for condition, value in case.branches:
            holds = pc.fill_null(self._where(condition, waiting, pa.bool_()), False)
            taken = pc.and_(waiting, holds)
            values = pc.if_else(taken, self._where(value, taken, result), values)
            waiting = pc.and_(waiting, pc.invert(taken))
        return pc.if_else(waiting, self._where(case.otherwise, waiting, result), values)

    def _where(self, expr: ir.Expr, mask: pa.Array, type_: pa.DataType) -> pa.Array:
        """The value where the mask is true; in other rows it means nothing, and is not computed if it can fail."""
        if not can_fail(expr):
            return fit(self.array(expr), type_)
        rows = pc.indices_nonzero(mask)
        part = Evaluation(
            lambda leaf: as_array(self._column(leaf), self.length).take(rows), self.params, self.now, len(rows)
        )
        values = fit(part.array(expr), type_)
        places = pc.if_else(mask, pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1), None)
        return values.take(places) if len(values) else pa.nulls(self.length, type_)

    def _column(self, expr: Leaf) -> Any:
        if expr not in self._known:
            self._known[expr] = plain(self._found(expr))
        return self._known[expr]

    def _found(self, expr: Leaf) -> Any:
        if callable(self.columns):
            return self.columns(expr)
        match expr:
            case ir.ColumnRef(name):
                return self.columns[name]
            case ir.Prop(var, name):
                return self.columns[var, name]
            case ir.Entity(var):
                return self.columns[var, "id"]
            case _:
                return self.columns[expr]


def scalar(value: Any, type_: ValueType | None) -> pa.Scalar:
    """A constant as an Arrow scalar."""
    if type_ is None or isinstance(type_, EntityType):
        return pa.scalar(value)
    if isinstance(value, tuple):
        value = list(value)
    return pa.scalar(value, arrow_type(type_))


def plain(column: Any) -> Any:
    """One array of a plain type: chunks joined, dictionaries decoded."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column


def _arrow(type_: ValueType) -> pa.DataType:
    assert not isinstance(type_, EntityType)
    return arrow_type(type_)


def _first(values: Any, constant: bool) -> Any:
    """A constant again, where all arguments were constant."""
    return values[0] if constant and not isinstance(values, pa.Scalar) else values


def _is_null(value: Any, negated: bool) -> Any:
    if isinstance(value, pa.Scalar):
        return pa.scalar(value.is_valid == negated)
    return pc.is_valid(value) if negated else pc.is_null(value)
