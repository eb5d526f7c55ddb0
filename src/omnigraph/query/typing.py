"""The type of an IR expression, whether it can be null, and whether it can fail."""

from __future__ import annotations

from omnigraph.query import ir
from omnigraph.query.functions.table import FUNCTIONS
from omnigraph.query.functions.types import (
    BLOB,
    BOOL,
    DATE,
    DATETIME,
    F64,
    I64,
    STRING,
    U64,
    arithmetic_type,
    unified,
)
from omnigraph.query.ir.expression_parts import children, variables_of
from omnigraph.schema.types import EnumType, ListType, Scalar, ScalarType, ValueType, is_text

__all__ = [
    "BLOB",
    "BOOL",
    "DATE",
    "DATETIME",
    "F64",
    "I64",
    "STRING",
    "U64",
    "aggregate_type",
    "arithmetic_type",
    "can_fail",
    "children",
    "is_nullable",
    "type_of",
    "unified",
    "variables_of",
]

_SMALL = frozenset({Scalar.I32, Scalar.U32})


def type_of(expr: ir.Expr) -> ValueType | None:
    """The type of the value. None only for the literal `null`, which has none."""
    match expr:
        case ir.Literal() | ir.Param() | ir.Prop() | ir.Entity() | ir.ColumnRef() | ir.PathValue():
            return expr.type
        case (
            ir.Arithmetic() | ir.Negate() | ir.Shift() | ir.Convert() | ir.Case() | ir.ListOf() | ir.Index() | ir.Call()
        ):
            return expr.type
        case ir.Now():
            return DATETIME
        case ir.TypeOf():
            return STRING
        case ir.Nearest() | ir.Bm25() | ir.Rrf():
            return F64
        case ir.Aggregate(function, arg):
            return aggregate_type(function, type_of(arg))
        case _:
            return BOOL


def aggregate_type(function: ir.AggregateFunction, argument: ValueType | None) -> ValueType | None:
    """The type of an aggregate over values of a type."""
    match function:
        case ir.AggregateFunction.COUNT:
            return I64
        case ir.AggregateFunction.SUM:
            return None if argument is None else arithmetic_type(argument)
        case ir.AggregateFunction.AVG | ir.AggregateFunction.MEDIAN | ir.AggregateFunction.STDDEV:
            return F64
        case ir.AggregateFunction.COLLECT:
            return None if argument is None else _list_of(argument)
        case _:
            return argument


def _list_of(item: ValueType) -> ValueType | None:
    if isinstance(item, EnumType):
        return ListType(Scalar.STRING)
    return ListType(item.scalar) if isinstance(item, ScalarType) else None


def is_nullable(expr: ir.Expr) -> bool:
    """Whether the value can be null or unknown."""
    match expr:
        case ir.Literal():
            return expr.value is None
        case ir.Param() | ir.Prop() | ir.ColumnRef() | ir.Entity() | ir.TypeOf() | ir.PathValue() | ir.Call():
            return expr.nullable
        case ir.Case(branches, otherwise):
            return is_nullable(otherwise) or any(is_nullable(value) for _, value in branches)
        case ir.IsNull() | ir.Now():
            return False
        case ir.Aggregate(function):
            return function is not ir.AggregateFunction.COUNT
        case ir.Nearest() | ir.Bm25() | ir.Rrf() | ir.TextMatch() | ir.Index():
            return True
        case _:
            return any(is_nullable(part) for part in children(expr))


def can_fail(expr: ir.Expr) -> bool:
    """Whether evaluating the expression can raise an error for some row."""
    match expr:
        case ir.Arithmetic(op, left, right, type_):
            own = isinstance(type_, ScalarType) and type_ != STRING
            if own and op in {ir.ArithmeticOp.ADD, ir.ArithmeticOp.SUBTRACT, ir.ArithmeticOp.MULTIPLY}:
                # Two numbers of 32 bits never leave 64 bits, save below zero.
                small = all(_is_small(part) for part in (left, right))
                own = not small or (op is ir.ArithmeticOp.SUBTRACT and type_ == U64)
        case ir.Negate(item, type_):
            own = type_ != F64 and not _is_small(item)
        case ir.Shift() | ir.Convert():
            own = True
        case ir.Matches(pattern=pattern):
            own = not isinstance(pattern, ir.Literal)
        case ir.Call(function):
            own = FUNCTIONS[function].fails and not _is_harmless(expr)
        case _:
            own = False
    return own or any(can_fail(part) for part in children(expr))


def _is_harmless(call: ir.Call) -> bool:
    """Whether a function that fails for some values never does for these: by their types, or as they are written."""
    types = [type_of(arg) for arg in call.args]
    match call.function:
        case "substring":
            return len(call.args) < 3 or _is_at_least(call.args[2], 0)
        case "split":
            return isinstance(call.args[1], ir.Literal) and call.args[1].value != ""
        case "round":
            return len(call.args) == 1 or (call.type == F64 and _is_at_least(call.args[1], 0, 300))
        case "abs":
            return call.type in {F64, U64} or _is_small(call.args[0])
        case "to_float" | "to_date" | "to_datetime":
            return types[0] is not None and not is_text(types[0])
        case "to_int":
            return types[0] == BOOL or _is_small(call.args[0]) or types[0] == I64
        case _:
            return False


def _is_at_least(expr: ir.Expr, low: int, high: int = 2**63) -> bool:
    return isinstance(expr, ir.Literal) and isinstance(expr.value, int) and low <= expr.value <= high


def _is_small(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Literal) and isinstance(expr.value, int):
        return -(2**31) <= expr.value < 2**31
    type_ = type_of(expr)
    return isinstance(type_, ScalarType) and type_.scalar in _SMALL
