"""Predicates taken apart: their conjuncts, their leaves, and the same predicate without parameters."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.query import ir
from omnigraph.query.lower_result import rebuild
from omnigraph.schema.types import Scalar, ScalarType


def bound(expr: ir.Expr, parameters: Mapping[str, Any], now: datetime.datetime) -> ir.Expr:
    """The expression with parameters and `now()` replaced by literals."""
    match expr:
        case ir.Param(name=name, type=type_):
            return ir.Literal(parameters.get(name), type_)
        case ir.Now():
            return ir.Literal(now, ScalarType(Scalar.DATETIME))
        case _:
            return rebuild(expr, lambda part: bound(part, parameters, now))


def conjuncts(predicate: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of a conjunction. A row passes all of them exactly when it passes the whole."""
    if isinstance(predicate, ir.And):
        for item in predicate.items:
            yield from conjuncts(item)
    else:
        yield predicate


def leaves(expr: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of an expression that have no parts of their own to evaluate, searches included."""
    match expr:
        case ir.Compare(left=left, right=right):
            yield from leaves(left)
            yield from leaves(right)
        case ir.IsNull(item=item) | ir.Not(item=item):
            yield from leaves(item)
        case ir.Contains(haystack=first, needle=second) | ir.StartsWith(text=first, prefix=second):
            yield from leaves(first)
            yield from leaves(second)
        case ir.In(item=item, items=items):
            yield from leaves(item)
            yield from leaves(items)
        case ir.And(items=parts) | ir.Or(items=parts):
            for part in parts:
                yield from leaves(part)
        case ir.Rrf(first=one, second=two):
            yield one
            yield two
        case ir.Aggregate(arg=arg):
            yield arg
        case _:
            yield expr
