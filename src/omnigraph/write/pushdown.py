"""Predicates of mutations as conditions that storage can look up: at least the matching rows come back.

What is pushed down may let more rows through than the predicate (the rest is evaluated on what comes back), never
fewer. Comparisons of floats stay here: engines disagree on -0.0.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, cast

from omnigraph.query import ir
from omnigraph.schema.types import FLOATS, EnumType, ListType, ScalarType, ValueType
from omnigraph.storage import filters


def pushed_down(predicate: ir.Expr, params: Mapping[str, Any], now: datetime.datetime) -> filters.Filter | None:
    """A condition that every matching row meets, or None when nothing can be said about them."""
    match predicate:
        case ir.And(items):
            parts = [part for item in items if (part := pushed_down(item, params, now)) is not None]
            return filters.and_(*parts) if parts else None
        case ir.Or(items):
            all_parts = [pushed_down(item, params, now) for item in items]
            return None if any(part is None for part in all_parts) else filters.or_(*_known(all_parts))
        case ir.Compare(op, ir.Prop(ir.THIS, name, type_), right) if comparable(type_):
            value = constant(right, params, now)
            return None if value is None else filters.compare(name, op.value, value)
        case ir.Compare(op, left, ir.Prop(ir.THIS, name, type_)) if comparable(type_):
            value = constant(left, params, now)
            return None if value is None else filters.compare(name, _MIRRORED[op], value)
        case ir.IsNull(ir.Prop(ir.THIS, name, type_), negated) if not isinstance(type_, ListType):
            return filters.not_(filters.is_null(name)) if negated else filters.is_null(name)
        case ir.In(ir.Prop(ir.THIS, name, type_), items) if comparable(type_):
            values = constant(items, params, now)
            return None if values is None else filters.is_in(name, [value for value in values if value is not None])
        case ir.StartsWith(ir.Prop(ir.THIS, name), prefix):
            text = constant(prefix, params, now)
            return None if text is None else filters.starts_with(name, text)
        case _:
            return None


_MIRRORED: Mapping[ir.CompareOp, filters.Operator] = {
    ir.CompareOp.EQ: "=",
    ir.CompareOp.NE: "!=",
    ir.CompareOp.LT: ">",
    ir.CompareOp.LE: ">=",
    ir.CompareOp.GT: "<",
    ir.CompareOp.GE: "<=",
}


def columns_of(predicate: ir.Expr) -> set[str]:
    """The columns of the row that a predicate looks at."""
    match predicate:
        case ir.Prop(name=name):
            return {name}
        case ir.And(items) | ir.Or(items):
            return set().union(*(columns_of(item) for item in items))
        case ir.Not(item) | ir.IsNull(item=item):
            return columns_of(item)
        case ir.Compare(left=left, right=right):
            return columns_of(left) | columns_of(right)
        case ir.In(item, items):
            return columns_of(item) | columns_of(items)
        case ir.Contains(haystack, needle):
            return columns_of(haystack) | columns_of(needle)
        case ir.StartsWith(text, prefix):
            return columns_of(text) | columns_of(prefix)
        case _:
            return set()


def _known(parts: list[filters.Filter | None]) -> list[filters.Filter]:
    return [part for part in parts if part is not None]


def comparable(type_: ValueType) -> bool:
    """Whether every engine compares values of this type alike."""
    return isinstance(type_, EnumType) or (isinstance(type_, ScalarType) and type_.scalar not in FLOATS)


def constant(expr: ir.Expr, params: Mapping[str, Any], now: datetime.datetime) -> Any:
    """The value of a constant expression that storage can compare; None when it has none."""
    match expr:
        case ir.Literal(value):
            found = value
        case ir.Param(name):
            found = params.get(name)
        case ir.Now():
            found = now
        case _:
            return None
    if isinstance(found, float) or (isinstance(found, tuple) and any(isinstance(item, float) for item in found)):
        return None
    return cast(Any, found)
