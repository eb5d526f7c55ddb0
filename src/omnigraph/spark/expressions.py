"""Expressions of the IR as Spark columns.

What Spark means by an expression exactly as we do (text, whole numbers, booleans, dates, moments) becomes a plain Spark
column, which the optimizer can push down into Lance. Everything else is evaluated inside the tasks by the very function
that the in-process engine uses, so that the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.predicates import leaves
from omnigraph.read.tables.values import evaluate
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.types import EntityType, EnumType, PropertyType, Scalar, ScalarType, ValueType
from omnigraph.spark.types import spark_type_name

if TYPE_CHECKING:
    from pyspark.sql import Column

Resolve = Callable[[ir.Expr], "Column"]
"""The Spark column of a leaf: a property, an entity (its id) or a computed column."""

BOOLEAN = ScalarType(Scalar.BOOL)
_EXACT = frozenset({Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.DATE, Scalar.DATETIME})


def lower_expression(expr: ir.Expr, type_: ValueType, resolve: Resolve) -> Column:
    """The column of a bound expression (no parameters any more) whose value is of `type_`."""
    if isinstance(expr, ir.Prop | ir.Entity | ir.ColumnRef):
        return resolve(expr)
    if isinstance(expr, ir.Literal):
        return literal(expr.value, type_)
    plain = _plain(expr, resolve)
    return plain if plain is not None else _evaluated(expr, type_, resolve)


def lower_predicate(expr: ir.Expr, resolve: Resolve) -> Column:
    """The column of a bound predicate: true, false or null."""
    return lower_expression(expr, BOOLEAN, resolve)


def literal(value: Any, type_: ValueType | None) -> Column:
    """A constant of a property's type."""
    from pyspark.sql import functions as f

    name = spark_type_name(type_) if type_ is not None and not isinstance(type_, EntityType) else "string"
    if value is None:
        return f.lit(None).cast(name)
    if isinstance(value, tuple | list):
        return f.array(*[f.lit(item) for item in value]).cast(name)
    return f.lit(value).cast(name)


def _plain(expr: ir.Expr, resolve: Resolve) -> Column | None:
    """The Spark column that means exactly the same, or None when there is none."""
    match expr:
        case ir.Prop() | ir.Entity() | ir.ColumnRef() if _is_exact(type_of(expr)):
            return resolve(expr)
        case ir.Literal(value=value, type=type_) if value is not None and not isinstance(value, tuple | list):
            return literal(value, type_) if _is_exact(type_) else None
        case ir.Compare(op=op, left=left, right=right):
            return _comparison(op, left, right, resolve)
        case ir.IsNull(item=item, negated=negated) if isinstance(item, ir.Prop | ir.Entity | ir.ColumnRef):
            column = resolve(item)
            return column.isNotNull() if negated else column.isNull()
        case ir.StartsWith(text=text, prefix=ir.Literal(value=str() as prefix)):
            column = _plain(text, resolve)
            return None if column is None else column.startswith(prefix)
        case ir.In(item=item, items=ir.Literal(value=tuple() | list() as values)) if values and None not in values:
            column = _plain(item, resolve)
            return None if column is None else column.isin([literal(value, type_of(item)) for value in values])
        case ir.Not(item=item):
            column = _plain(item, resolve)
            return None if column is None else ~column
        case ir.And(items=items):
            return _joined(items, resolve, all_of=True)
        case ir.Or(items=items):
            return _joined(items, resolve, all_of=False)
        case _:
            return None


def _comparison(op: ir.CompareOp, left: ir.Expr, right: ir.Expr, resolve: Resolve) -> Column | None:
    if _class_of(left) is None or _class_of(left) != _class_of(right):
        return None
    a, b = _plain(left, resolve), _plain(right, resolve)
    if a is None or b is None:
        return None
    match op:
        case ir.CompareOp.EQ:
            return a == b
        case ir.CompareOp.NE:
            return a != b
        case ir.CompareOp.LT:
            return a < b
        case ir.CompareOp.LE:
            return a <= b
        case ir.CompareOp.GT:
            return a > b
        case ir.CompareOp.GE:
            return a >= b


def _joined(items: tuple[ir.Expr, ...], resolve: Resolve, *, all_of: bool) -> Column | None:
    joined: Column | None = None
    for item in items:
        column = _plain(item, resolve)
        if column is None:
            return None
        joined = column if joined is None else (joined & column) if all_of else (joined | column)
    return joined


def type_of(expr: ir.Expr) -> ValueType | None:
    """The type of a leaf; None for what has no single one."""
    return getattr(expr, "type", None)


def _class_of(expr: ir.Expr) -> str | None:
    """Expressions of one class compare in Spark as they do in process."""
    type_ = type_of(expr)
    if isinstance(type_, EnumType | EntityType):
        return "text"
    if not isinstance(type_, ScalarType) or type_.scalar not in _EXACT:
        return None
    if type_.scalar in (Scalar.I32, Scalar.I64):
        return "integer"
    return "text" if type_.scalar is Scalar.STRING else type_.scalar.value


def _is_exact(type_: ValueType | None) -> bool:
    return isinstance(type_, EnumType | EntityType) or (isinstance(type_, ScalarType) and type_.scalar in _EXACT)


def _evaluated(expr: ir.Expr, type_: ValueType, resolve: Resolve) -> Column:
    """Evaluate in the tasks, by the in-process engine's own function on Arrow arrays."""
    from pyspark.sql import functions as f

    needed = list(dict.fromkeys(leaf for leaf in leaves(expr) if isinstance(leaf, ir.Prop | ir.Entity | ir.ColumnRef)))
    if not needed:
        return literal(evaluate(expr, 1, _no_column)[0].as_py(), type_)
    types = [stored_type(type_of(leaf)) for leaf in needed]
    name = spark_type_name(type_) if not isinstance(type_, EntityType) else "string"

    def task(*arrays: pa.Array) -> pa.Array:
        columns = {leaf: array.cast(kind) for leaf, array, kind in zip(needed, arrays, types, strict=True)}
        return evaluate(expr, len(arrays[0]), columns.__getitem__)

    return f.arrow_udf(task, returnType=name)(*[resolve(leaf) for leaf in needed])


def stored_type(type_: ValueType | None) -> pa.DataType:
    """The Arrow type of a leaf's values in process."""
    return pa.string() if type_ is None or isinstance(type_, EntityType) else arrow_type(_property(type_))


def _property(type_: ValueType) -> PropertyType:
    assert not isinstance(type_, EntityType)
    return type_


def _no_column(leaf: ir.Expr) -> Any:
    raise TypeError(f"{leaf!r} is not constant")
