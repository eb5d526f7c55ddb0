"""The meaning of scalar expressions on Arrow columns. Reads, the predicates of writes and Spark tasks share it.

- Conditions are three-valued: null stands for unknown, and `and`, `or`, `not` follow Kleene's tables. A filter keeps
  the rows for which the condition is true (`matching_rows`).
- Comparing with null is unknown. `IsNull` is never unknown.
- Numbers of different types compare by their exact value: no integer is rounded to a float first.
- NaN is equal to itself and greater than every other number, so that comparisons agree with the sort order. `-0.0`
  equals `0.0`.
- Text compares by code point. `contains` and `starts_with` are exact and case-sensitive.
- Membership in a list that does not hold the value but holds a null is unknown.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InternalError
from omnigraph.query import ir
from omnigraph.query.numbers import compare_numbers, members_like
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.types import EntityType, ValueType

Columns = Mapping[Any, Any] | Callable[[ir.Prop | ir.ColumnRef], Any]
"""Where columns come from: a mapping from `(variable, property)`, and from the name of a computed column, or a
function that is given the expression."""

_COMPARE = {
    ir.CompareOp.EQ: pc.equal,
    ir.CompareOp.NE: pc.not_equal,
    ir.CompareOp.LT: pc.less,
    ir.CompareOp.LE: pc.less_equal,
    ir.CompareOp.GT: pc.greater,
    ir.CompareOp.GE: pc.greater_equal,
}


def evaluate(
    expr: ir.Expr,
    columns: Columns,
    params: Mapping[str, Any],
    now: datetime.datetime,
    length: int,
) -> pa.Array:
    """The value of an expression for each of `length` rows. `params` are values as `bind_parameters` gives them."""
    value = _Evaluation(columns, params, now).value(expr)
    if isinstance(value, pa.Scalar):
        return pa.nulls(length, value.type) if not value.is_valid else pa.repeat(value, length)
    return value


def matching_rows(
    predicate: ir.Expr,
    columns: Columns,
    params: Mapping[str, Any],
    now: datetime.datetime,
    length: int,
) -> pa.Array:
    """For each row whether the predicate is true: a Boolean array without nulls."""
    return pc.fill_null(evaluate(predicate, columns, params, now, length), False)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    columns: Columns
    params: Mapping[str, Any]
    now: datetime.datetime

    def value(self, expr: ir.Expr) -> Any:
        """An array, or a scalar that stands for the same value in every row."""
        match expr:
            case ir.Literal(value, type_):
                return _scalar(value, type_)
            case ir.Param(name, type_):
                return _scalar(self.params[name], type_)
            case ir.Now():
                return pa.scalar(self.now, pa.timestamp("us", tz="UTC"))
            case ir.Prop() | ir.ColumnRef():
                return self._column(expr)
            case ir.Compare(op, left, right):
                return _compare(op, self.value(left), self.value(right))
            case ir.IsNull(item, negated):
                return _is_null(self.value(item), negated)
            case ir.Contains(haystack, needle):
                return _contains(self.value(haystack), self.value(needle))
            case ir.StartsWith(text, prefix):
                return _on_text(self.value(text), self.value(prefix), pc.starts_with, str.startswith)
            case ir.In(item, items):
                return _contains(self.value(items), self.value(item))
            case ir.And(items):
                return _fold(pc.and_kleene, [self.value(item) for item in items])
            case ir.Or(items):
                return _fold(pc.or_kleene, [self.value(item) for item in items])
            case ir.Not(item):
                return pc.invert(self.value(item))
            case _:
                raise InternalError(f"{type(expr).__name__} is computed by an operator, not row by row")

    def _column(self, expr: ir.Prop | ir.ColumnRef) -> Any:
        if callable(self.columns):
            return _plain(self.columns(expr))
        key = expr.name if isinstance(expr, ir.ColumnRef) else (expr.var, expr.name)
        return _plain(self.columns[key])


def _scalar(value: Any, type_: ValueType | None) -> pa.Scalar:
    if type_ is None or isinstance(type_, EntityType):
        return pa.scalar(value)
    if isinstance(value, tuple):
        value = list(value)
    return pa.scalar(value, arrow_type(type_))


def _plain(column: Any) -> Any:
    """One array of a plain type: chunks joined, dictionaries decoded."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column


def _fold(combine: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    return result


def _is_null(value: Any, negated: bool) -> Any:
    if isinstance(value, pa.Scalar):
        return pa.scalar(value.is_valid == negated)
    return pc.is_valid(value) if negated else pc.is_null(value)


# --- comparison


def _compare(op: ir.CompareOp, left: Any, right: Any) -> Any:
    left_type, right_type = left.type, right.type
    if _is_numeric(left_type) and _is_numeric(right_type):
        return compare_numbers(op, left, right)
    if left_type != right_type:
        left, right = _same_type(left, right)
    return _COMPARE[op](left, right)


def _is_numeric(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _same_type(left: Any, right: Any) -> tuple[Any, Any]:
    """Two spellings of one logical type (a longer string type, another unit of time) made equal."""
    if pa.types.is_null(left.type):
        return left.cast(right.type), right
    if pa.types.is_null(right.type):
        return left, right.cast(left.type)
    if pa.types.is_timestamp(left.type) and pa.types.is_timestamp(right.type):
        target = pa.timestamp("us", tz="UTC")
    else:
        target = pa.large_utf8()
    return left.cast(target), right.cast(target)


# --- text and lists


def _contains(haystack: Any, needle: Any) -> Any:
    """Membership in a list, or a part of a text."""
    if not pa.types.is_list(haystack.type) and not pa.types.is_large_list(haystack.type):
        return _on_text(haystack, needle, pc.match_substring, str.__contains__)
    if isinstance(haystack, pa.Scalar):
        return _in_constant(needle, haystack)
    return _in_lists(needle, haystack)


def _on_text(text: Any, pattern: Any, kernel: Callable[..., Any], test: Callable[[str, str], bool]) -> Any:
    """A test of a text against a pattern; by Arrow's kernel when the pattern is the same for all rows."""
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return pa.scalar(None, pa.bool_()) if isinstance(text, pa.Scalar) else pa.nulls(len(text), pa.bool_())
        if not isinstance(text, pa.Scalar):
            return kernel(text, pattern=pattern.as_py())
        found = test(text.as_py(), pattern.as_py()) if text.is_valid else None
        return pa.scalar(found, pa.bool_())
    texts = [text.as_py()] * len(pattern) if isinstance(text, pa.Scalar) else text.to_pylist()
    pairs = zip(texts, pattern.to_pylist(), strict=True)
    results = [None if one is None or other is None else test(one, other) for one, other in pairs]
    return pa.array(results, pa.bool_())


def _in_constant(item: Any, items: pa.Scalar) -> Any:
    """Membership in a list that is the same for all rows."""
    if not items.is_valid:
        return pa.scalar(None, pa.bool_()) if isinstance(item, pa.Scalar) else pa.nulls(len(item), pa.bool_())
    members = items.values
    if isinstance(item, pa.Scalar):
        return _in_lists(pa.repeat(item, 1), pa.array([items.as_py()], items.type))[0]
    known = members.drop_null()
    if pa.types.is_floating(item.type) and item.type == known.type:
        # `is_in` tells -0.0 from 0.0; adding zero makes them one.
        zero = pa.scalar(0.0, item.type)
        found = pc.is_in(pc.add(item, zero), value_set=pc.add(known, zero))
        return _unless_null(found, item, members)
    if item.type != known.type:
        if not (_is_numeric(item.type) and _is_numeric(known.type)):
            item, known = _same_type(item, known)
        elif pa.types.is_integer(item.type) and pa.types.is_integer(known.type):
            item, known = members_like(item, known)
        else:
            # Python compares integers and floats by their exact value.
            wanted = set(known.to_pylist())
            found = pa.array([None if each is None else each in wanted for each in item.to_pylist()], pa.bool_())
            return _unless_null(found, item, members)
    return _unless_null(pc.is_in(item, value_set=known), item, members)


def _unless_null(found: pa.Array, item: pa.Array, members: pa.Array) -> pa.Array:
    """Unknown for a null item, and for an item that is not found while the list holds a null."""
    unknown = pc.is_null(item)
    if members.null_count:
        unknown = pc.or_(unknown, pc.invert(pc.fill_null(found, False)))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def _in_lists(item: Any, lists: Any) -> pa.Array:
    """Membership where each row has a list of its own."""
    import numpy as np

    parents = pc.list_parent_indices(lists)
    members = pc.list_flatten(lists)
    wanted = item if isinstance(item, pa.Scalar) else pc.take(item, parents)
    equal = _compare(ir.CompareOp.EQ, members, wanted) if len(members) else pa.array([], pa.bool_())
    found = np.zeros(len(lists), dtype=bool)
    unclear = np.zeros(len(lists), dtype=bool)
    rows = parents.to_numpy(zero_copy_only=False).astype(np.int64)
    found[rows[pc.fill_null(equal, False).to_numpy(zero_copy_only=False).astype(bool)]] = True
    unclear[rows[pc.is_null(equal).to_numpy(zero_copy_only=False).astype(bool)]] = True
    missing = pc.is_null(lists).to_numpy(zero_copy_only=False).astype(bool)
    if isinstance(item, pa.Scalar):
        missing |= not item.is_valid
    else:
        missing |= pc.is_null(item).to_numpy(zero_copy_only=False).astype(bool)
    return pa.array(found, mask=missing | (unclear & ~found))
