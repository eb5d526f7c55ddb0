"""Predicates taken apart: their conjuncts, their leaves, and the same predicate without parameters."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import leaves, rebuild, searches_in
from omnigraph.query.typing import can_fail
from omnigraph.schema.types import Scalar, ScalarType

__all__ = ["bound", "can_fail", "conjuncts", "leaves", "searches_in"]


def bound(expr: ir.Expr, parameters: Mapping[str, Any], now: datetime.datetime) -> ir.Expr:
    """The expression with parameters and `now()` replaced by literals."""
    match expr:
        case ir.Param(type=type_):
            return ir.Literal(expr.taken(parameters), type_)
        case ir.Now():
            return ir.Literal(now, ScalarType(Scalar.DATETIME))
        case ir.Aggregate(function, arg, distinct, source):
            return ir.Aggregate(function, bound(arg, parameters, now), distinct, source)
        case _:
            return rebuild(expr, lambda part: bound(part, parameters, now))


def conjuncts(predicate: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of a conjunction. A row passes all of them exactly when it passes the whole.

    A conjunction with a part that can fail stays whole from the first such part on: what stands before such a part
    guards it.
    """
    if not isinstance(predicate, ir.And):
        yield predicate
        return
    items = predicate.items
    for index, item in enumerate(items):
        if can_fail(item):
            rest = items[index:]
            guarded = items if index else rest
            yield ir.And(guarded) if len(guarded) > 1 else guarded[0]
            return
        yield from conjuncts(item)
