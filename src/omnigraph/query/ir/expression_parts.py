"""Expressions taken apart and put together again: the parts directly inside, the leaves, the variables looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from omnigraph.query.ir import expressions as ir
from omnigraph.query.ir.search import Bm25, Nearest, Rrf, TextMatch

Change = Callable[[ir.Expr], ir.Expr]

_LEAVES = (ir.Literal, ir.Param, ir.Now, ir.Prop, ir.Entity, ir.TypeOf, ir.PathValue, ir.ColumnRef)
"""What has no parts. An expression that is neither here nor taken apart below is found by the type checker."""


def children(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """The expressions directly inside."""
    match expr:
        case ir.Compare(_, left, right) | ir.Arithmetic(_, left, right):
            return (left, right)
        case ir.Contains(left, right) | ir.StartsWith(left, right) | ir.EndsWith(left, right):
            return (left, right)
        case ir.Matches(left, right) | ir.In(left, right) | ir.Index(left, right) | ir.Shift(left, right):
            return (left, right)
        case ir.And(items) | ir.Or(items) | ir.ListOf(items):
            return items
        case ir.Not(item) | ir.IsNull(item) | ir.Negate(item) | ir.Convert(item):
            return (item,)
        case ir.Aggregate(_, arg):
            return (arg,)
        case ir.Call(_, args):
            return args
        case ir.Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case TextMatch():
            return (expr.query,) if expr.edits is None else (expr.query, expr.edits)
        case Nearest() | Bm25():
            return (expr.query,)
        case Rrf():
            return (expr.first, expr.second) if expr.k is None else (expr.first, expr.second, expr.k)
        case _ if isinstance(expr, _LEAVES):
            return ()
        case _:
            assert_never(expr)


def rebuild(expr: ir.Expr, change: Change) -> ir.Expr:
    """The expression with the expressions directly inside it changed. Searches and aggregates stay as they are."""
    match expr:
        case ir.Compare(op, left, right):
            return ir.Compare(op, change(left), change(right))
        case ir.Contains(haystack, needle):
            return ir.Contains(change(haystack), change(needle))
        case ir.StartsWith(text, prefix):
            return ir.StartsWith(change(text), change(prefix))
        case ir.EndsWith(text, suffix):
            return ir.EndsWith(change(text), change(suffix))
        case ir.Matches(text, pattern):
            return replace(expr, text=change(text), pattern=change(pattern))
        case ir.In(item, items):
            return ir.In(change(item), change(items))
        case ir.IsNull(item, negated):
            return ir.IsNull(change(item), negated)
        case ir.And(items):
            return ir.And(tuple(change(each) for each in items))
        case ir.Or(items):
            return ir.Or(tuple(change(each) for each in items))
        case ir.Not(item):
            return ir.Not(change(item))
        case ir.Arithmetic(_, left, right):
            return replace(expr, left=change(left), right=change(right))
        case ir.Negate(item) | ir.Convert(item):
            return replace(expr, item=change(item))
        case ir.Shift(moment, amount):
            return replace(expr, moment=change(moment), amount=change(amount))
        case ir.Case(branches, otherwise, type_):
            changed = tuple((change(condition), change(value)) for condition, value in branches)
            return ir.Case(changed, change(otherwise), type_)
        case ir.ListOf(items, type_):
            return ir.ListOf(tuple(change(each) for each in items), type_)
        case ir.Index(items, index, type_):
            return ir.Index(change(items), change(index), type_)
        case ir.Call(_, args):
            return replace(expr, args=tuple(change(each) for each in args))
        case ir.Aggregate() | TextMatch() | Nearest() | Bm25() | Rrf():
            return expr
        case _ if isinstance(expr, _LEAVES):
            return expr
        case _:
            assert_never(expr)


def rebuild_all(expr: ir.Expr, change: Change) -> ir.Expr:
    """Like `rebuild`, and into searches and aggregates too."""
    match expr:
        case ir.Aggregate(_, arg):
            return replace(expr, arg=change(arg))
        case TextMatch(query=query, edits=edits):
            return replace(expr, query=change(query), edits=None if edits is None else change(edits))
        case Nearest(query=query) | Bm25(query=query):
            return replace(expr, query=change(query))
        case Rrf(first, second, k):
            fused = (change(first), change(second))
            assert isinstance(fused[0], Nearest | Bm25)
            assert isinstance(fused[1], Nearest | Bm25)
            return Rrf(fused[0], fused[1], None if k is None else change(k))
        case _:
            return rebuild(expr, change)


def leaves(expr: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of an expression that have no parts of their own to evaluate, searches included."""
    if isinstance(expr, TextMatch | Nearest | Bm25):
        yield expr
    elif isinstance(expr, Rrf):
        yield expr.first
        yield expr.second
    elif inner := children(expr):
        for part in inner:
            yield from leaves(part)
    elif not isinstance(expr, ir.And | ir.Or | ir.ListOf | ir.Call):
        yield expr


def variables_of(expr: ir.Expr) -> frozenset[str]:
    """The variables that an expression looks at, paths included."""
    named = (ir.Prop, ir.Entity, ir.TypeOf, ir.PathValue, TextMatch, Nearest, Bm25)
    return frozenset(leaf.var for leaf in leaves(expr) if isinstance(leaf, named))


def columns_of(expr: ir.Expr) -> frozenset[str]:
    """The computed columns that an expression reads."""
    return frozenset(leaf.name for leaf in leaves(expr) if isinstance(leaf, ir.ColumnRef))


def searches_in(expr: ir.Expr) -> tuple[TextMatch, ...]:
    """The text predicates of an expression, each once, in the order of the text."""
    return tuple(dict.fromkeys(leaf for leaf in leaves(expr) if isinstance(leaf, TextMatch)))
