"""The type of an IR expression, and whether it can be null."""

from __future__ import annotations

from omnigraph.query import ir
from omnigraph.schema.types import INTEGERS, Scalar, ScalarType, ValueType

BOOL = ScalarType(Scalar.BOOL)
STRING = ScalarType(Scalar.STRING)
I64 = ScalarType(Scalar.I64)
U64 = ScalarType(Scalar.U64)
F64 = ScalarType(Scalar.F64)
DATE = ScalarType(Scalar.DATE)
DATETIME = ScalarType(Scalar.DATETIME)
BLOB = ScalarType(Scalar.BLOB)


def type_of(expr: ir.Expr) -> ValueType | None:
    """The type of the value. None only for the literal `null`, which has none."""
    match expr:
        case ir.Literal() | ir.Param() | ir.Prop() | ir.Entity() | ir.ColumnRef():
            return expr.type
        case ir.Now():
            return DATETIME
        case ir.Nearest() | ir.Bm25() | ir.Rrf():
            return F64
        case ir.Aggregate(ir.AggregateFunction.COUNT):
            return I64
        case ir.Aggregate(ir.AggregateFunction.AVG):
            return F64
        case ir.Aggregate(ir.AggregateFunction.SUM, arg):
            return sum_type(type_of(arg))
        case ir.Aggregate():
            return expr.arg.type
        case _:
            return BOOL


def sum_type(type_: ValueType | None) -> ValueType:
    """What a sum of values is: integers are added exactly, in 64 bits of their own kind."""
    if not isinstance(type_, ScalarType) or type_.scalar not in INTEGERS:
        return F64
    return U64 if type_.scalar in (Scalar.U32, Scalar.U64) else I64


def is_nullable(expr: ir.Expr) -> bool:
    """Whether the value can be null or unknown."""
    match expr:
        case ir.Literal():
            return expr.value is None
        case ir.Param() | ir.Prop() | ir.ColumnRef():
            return expr.nullable
        case ir.Compare(_, left, right) | ir.Contains(left, right) | ir.StartsWith(left, right) | ir.In(left, right):
            return is_nullable(left) or is_nullable(right)
        case ir.And(items) | ir.Or(items):
            return any(is_nullable(item) for item in items)
        case ir.Not(item):
            return is_nullable(item)
        case ir.Aggregate(function):
            return function is not ir.AggregateFunction.COUNT
        case ir.Nearest() | ir.Bm25() | ir.Rrf():
            return True
        case _:
            return False


def children(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """The expressions directly inside."""
    match expr:
        case ir.Compare(_, left, right) | ir.Contains(left, right) | ir.StartsWith(left, right) | ir.In(left, right):
            return (left, right)
        case ir.And(items) | ir.Or(items):
            return items
        case ir.Not(item) | ir.IsNull(item):
            return (item,)
        case ir.Aggregate(_, arg):
            return (arg,)
        case ir.TextMatch():
            return (expr.query,) if expr.edits is None else (expr.query, expr.edits)
        case ir.Nearest() | ir.Bm25():
            return (expr.query,)
        case ir.Rrf():
            return (expr.first, expr.second) if expr.k is None else (expr.first, expr.second, expr.k)
        case _:
            return ()


def variables_of(expr: ir.Expr) -> frozenset[str]:
    """The variables that an expression looks at."""
    match expr:
        case ir.Prop() | ir.Entity():
            return frozenset({expr.var})
        case ir.TextMatch() | ir.Nearest() | ir.Bm25():
            return frozenset({expr.var})
        case _:
            return frozenset().union(*(variables_of(child) for child in children(expr)))
