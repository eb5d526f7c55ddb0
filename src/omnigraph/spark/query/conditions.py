"""Which conditions of a query hold for every row of a scan, so that Lance need not read the others.

A condition on one variable holds where that variable is bound if both stand in one block: down from the filter through
joins, traversals and the outer side of inner blocks, and no further. Spark looks at the rows again, so only conditions
that mean the same to Lance are handed down, and none is missing if one is not.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Container, Sequence
from typing import Any

from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import variables_of
from omnigraph.query.predicates import conjuncts
from omnigraph.query.typing import can_fail
from omnigraph.schema.types import EntityType, EnumType, Scalar, ScalarType, ValueType
from omnigraph.spark.query.bindings import KEY
from omnigraph.spark.query.expressions import leaves_of
from omnigraph.spark.query.needs import Field, field_of, stored_type
from omnigraph.storage.reading import filters
from omnigraph.storage.reading.filters import Filter

_RANGES = {Scalar.I32: (-(2**31), 2**31), Scalar.I64: (-(2**63), 2**63), Scalar.U32: (0, 2**32), Scalar.U64: (0, 2**64)}
_OPERATORS: dict[ir.CompareOp, filters.Operator] = {
    ir.CompareOp.EQ: "=",
    ir.CompareOp.NE: "!=",
    ir.CompareOp.LT: "<",
    ir.CompareOp.LE: "<=",
    ir.CompareOp.GT: ">",
    ir.CompareOp.GE: ">=",
}
_MIRRORED: dict[filters.Operator, filters.Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


class Conditions:
    """The conditions of one query, by the operator that binds a variable. `bind` replaces parameters by values."""

    def __init__(self, root: ir.Operator, bind: Callable[[ir.Expr], ir.Expr]) -> None:
        self._bind = bind
        self._above: dict[int, tuple[ir.Expr, ...]] = {}
        self._collect(root, ())

    def on(self, operator: ir.Operator, var: str, columns: Container[str]) -> Filter | None:
        """What holds for every row of a variable that this operator binds, said of a table with these columns."""
        taken = []
        for each in self._above.get(id(operator), ()):
            if variables_of(each) == {var} and all(_column(leaf) in columns for leaf in leaves_of([each])):
                condition = to_condition(each)
                taken += [] if condition is None else [condition]
        return filters.and_(*taken) if taken else None

    def _collect(self, operator: ir.Operator, above: tuple[ir.Expr, ...]) -> None:
        self._above[id(operator)] = above
        match operator:
            case ir.Filter(input=below, predicate=predicate):
                known = [self._bind(part) for part in conjuncts(predicate) if not can_fail(part)]
                self._collect(below, (*above, *known))
            case ir.Join(left=left, right=right):
                self._collect(left, above)
                self._collect(right, above)
            case ir.Expand(input=below):
                self._collect(below, above)
            case ir.AntiJoin(input=below, inner=inner) | ir.SemiJoin(input=below, inner=inner):
                self._collect(below, above)
                self._collect(inner, ())
            case ir.Optional(input=below, inner=inner):
                self._collect(below, above)
                self._collect(inner, ())
            case ir.Either(input=below, arms=arms):
                self._collect(below, above)
                for arm in arms:
                    self._collect(arm, ())
            case _:
                lower: ir.Operator | None = getattr(operator, "input", None)
                if lower is not None:
                    self._collect(lower, ())


def to_condition(expr: ir.Expr) -> Filter | None:
    """The condition that means the same to Lance, or None when there is none."""
    match expr:
        case ir.Compare(op=op, left=left, right=ir.Literal(value=value)):
            return _compared(left, _OPERATORS[op], value)
        case ir.Compare(op=op, left=ir.Literal(value=value), right=right):
            return _compared(right, _MIRRORED[_OPERATORS[op]], value)
        case ir.IsNull(item=item, negated=negated):
            name = _column(item)
            found = None if name is None else filters.is_null(name)
            return filters.not_(found) if negated and found is not None else found
        case ir.StartsWith(text=text, prefix=ir.Literal(value=str() as prefix)):
            name = _column(text)
            return None if name is None else filters.starts_with(name, prefix)
        case ir.In(item=item, items=ir.Literal(value=tuple() | list() as values)) if values:
            name = _column(item)
            usable = all(_fits(value, _type(item)) for value in values)
            return filters.is_in(name, values) if name is not None and usable else None
        case ir.Or(items=items):
            return _all_or_none(items, filters.or_)
        case ir.And(items=items):
            return _all_or_none(items, filters.and_)
        case _:
            return None


def _all_or_none(items: Sequence[ir.Expr], combine: Callable[..., Filter]) -> Filter | None:
    found = [to_condition(item) for item in items]
    known = [each for each in found if each is not None]
    return combine(*known) if len(known) == len(found) else None


def _compared(item: ir.Expr, operator: filters.Operator, value: Any) -> Filter | None:
    name = _column(item)
    return filters.compare(name, operator, value) if name is not None and _fits(value, _type(item)) else None


def _column(item: ir.Expr) -> str | None:
    """The column of a property, or of an entity's id."""
    match item:
        case ir.Prop() if field_of(item) != KEY:
            return Field(field_of(item), stored_type(item.type)).column
        case ir.Prop() | ir.Entity():
            return "id"
    return None


def _type(item: ir.Expr) -> ValueType | None:
    return getattr(item, "type", None)


def _fits(value: Any, type_: ValueType | None) -> bool:
    """Whether a value is one of the type, and of a type that compares the same way on both sides."""
    if isinstance(type_, EnumType | EntityType):
        return isinstance(value, str)
    if not isinstance(type_, ScalarType):
        return False
    if type_.scalar in _RANGES:
        low, high = _RANGES[type_.scalar]
        return isinstance(value, int) and not isinstance(value, bool) and low <= value < high
    if type_.scalar is Scalar.DATE:
        return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return isinstance(value, {Scalar.STRING: str, Scalar.BOOL: bool}.get(type_.scalar, ()))
