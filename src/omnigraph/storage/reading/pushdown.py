"""Predicates as storage filters. What storage can decide exactly as the language means it is decided there, before
rows are read; the rest is evaluated on the rows that come back.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.query import ir
from omnigraph.query.check.values.literals import INTEGER_RANGES
from omnigraph.query.predicates import conjuncts
from omnigraph.schema.types import FLOATS, EnumType, ListType, Scalar, ScalarType, ValueType, is_text
from omnigraph.storage.reading import filters

_MIRRORED: dict[str, filters.Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def split(predicate: ir.Expr | None) -> tuple[filters.Filter | None, list[ir.Expr]]:
    """The part of a conjunction that storage decides, and what is left."""
    if predicate is None:
        return None, []
    pushed: list[filters.Filter] = []
    rest: list[ir.Expr] = []
    for part in conjuncts(predicate):
        found = to_filter(part)
        if found is None:
            rest.append(part)
        else:
            pushed.append(found)
    return (filters.and_(*pushed) if pushed else None), rest


def to_filter(expr: ir.Expr) -> filters.Filter | None:
    """The same condition for storage, true and unknown for exactly the same rows; None when there is none."""
    match expr:
        case ir.Compare(op=op, left=ir.Prop() as prop, right=ir.Literal() as literal):
            return _compare(prop, op.value, literal.value)
        case ir.Compare(op=op, left=ir.Literal() as literal, right=ir.Prop() as prop):
            return _compare(prop, _MIRRORED[op.value], literal.value)
        case ir.IsNull(item=ir.Prop() as prop, negated=negated):
            return filters.not_(filters.is_null(prop.column)) if negated else filters.is_null(prop.column)
        case ir.StartsWith(text=ir.Prop() as prop, prefix=ir.Literal(value=str(text))):
            return filters.starts_with(prop.column, text)
        case ir.Contains(haystack=ir.Prop() as prop, needle=ir.Literal(value=value)):
            if is_text(prop.type) and isinstance(value, str):
                return filters.contains(prop.column, value)
            return None
        case ir.In(item=ir.Prop() as prop, items=ir.Literal(value=tuple(values))):
            return _membership(prop, values)
        case ir.Prop(type=ScalarType(scalar=Scalar.BOOL)) as prop:
            return filters.eq(prop.column, True)
        case ir.And(items=items) | ir.Or(items=items):
            parts = [to_filter(item) for item in items]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            return filters.and_(*known) if isinstance(expr, ir.And) else filters.or_(*known)
        case ir.Not(item=item):
            part = to_filter(item)
            return None if part is None else filters.not_(part)
        case _:
            return None


def _compare(prop: ir.Prop, operator: str, value: object) -> filters.Filter | None:
    if not _fits(prop.type, value):
        return None
    assert isinstance(value, filters.Value)
    return filters.compare(prop.column, operator, value)  # type: ignore[arg-type]  # one of the operators it knows


def _membership(prop: ir.Prop, values: Sequence[object]) -> filters.Filter | None:
    if not all(_fits(prop.type, value) for value in values):
        return None
    return filters.is_in(prop.column, values)


def _fits(type_: ValueType, value: object) -> bool:
    """Whether storage compares a value with a column of this type as the language does.

    A number that is no value of the column's type is compared exactly by the language only. Storage tells `-0.0` from
    `0.0`, the language does not.
    """
    if isinstance(type_, EnumType):
        return isinstance(value, str)
    if isinstance(type_, ListType) or not isinstance(type_, ScalarType) or value is None:
        return False
    scalar = type_.scalar
    if scalar in FLOATS:
        return isinstance(value, int | float) and not isinstance(value, bool) and value != 0 and abs(value) < 2**53
    if scalar in INTEGER_RANGES:
        low, high = INTEGER_RANGES[scalar]
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    return scalar is not Scalar.BLOB
