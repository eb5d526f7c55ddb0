"""Expressions of the IR over the rows of a Spark frame.

What Spark means by an expression exactly as we do (comparisons of text, whole numbers, booleans, dates and moments)
becomes a plain Spark column, which the optimizer can push down into Lance. Everything else is evaluated inside tasks
by the very function that the in-process engine uses, so that the two cannot differ: as an Arrow function of columns,
which Spark places where it likes; or, when it can fail for a row, as a step of its own that Spark cannot move
(`computed`, `kept`), so that it is evaluated for exactly the rows that reach it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import leaves
from omnigraph.query.typing import type_of
from omnigraph.read.tables.values import evaluate
from omnigraph.schema.types import EntityType, EnumType, Scalar, ScalarType, ValueType
from omnigraph.spark.query.needs import stored_type
from omnigraph.spark.spread import with_details
from omnigraph.spark.types import spark_type_name, travelling_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Resolve = Callable[[ir.Expr], "Column"]
"""The Spark column of a leaf: what the engine hands over to the evaluation of expressions."""

BOOLEAN = ScalarType(Scalar.BOOL)
Leaf = ir.Prop | ir.Entity | ir.TypeOf | ir.PathValue | ir.ColumnRef | ir.TextMatch
_EXACT = frozenset({Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.DATE, Scalar.DATETIME})


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column to compute: the name it gets in the frame, its bound expression and its type."""

    name: str
    expr: ir.Expr
    type: ValueType


def lower_expression(expr: ir.Expr, type_: ValueType, resolve: Resolve) -> Column:
    """The column of a bound expression (no parameters any more) that cannot fail; its value is of `type_`."""
    if isinstance(expr, Leaf):
        return resolve(expr)
    if isinstance(expr, ir.Literal):
        return literal(expr.value, type_)
    plain = _plain(expr, resolve)
    return plain if plain is not None else _evaluated(expr, type_, resolve)


def lower_predicate(expr: ir.Expr, resolve: Resolve) -> Column:
    """The column of a bound predicate that cannot fail: true, false or null."""
    return lower_expression(expr, BOOLEAN, resolve)


def literal(value: Any, type_: ValueType | None) -> Column:
    """A constant of a property's type."""
    from pyspark.sql import functions as f

    name = spark_name(type_)
    if value is None:
        return f.lit(None).cast(name)
    if isinstance(value, tuple | list):
        return f.array(*[f.lit(_passed(item)) for item in value]).cast(name)
    return f.lit(_passed(value)).cast(name)


def _passed(value: Any) -> Any:
    """A value in a form that reaches Spark whole: its long is signed, and its bridge to Python knows neither the first
    centuries nor that they had another calendar."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return Decimal(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def spark_name(type_: ValueType | None) -> str:
    """The name of a type in Spark's SQL. An entity as a value is its id, null without a type is text."""
    return "string" if type_ is None or isinstance(type_, EntityType) else spark_type_name(type_)


def spark_type(type_: ValueType | None) -> Any:
    """The Spark type of values of a type."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(travelling_type(stored_type(type_)))


# --- what means the same to Spark ----------------------------------------------------------------------------------


def _plain(expr: ir.Expr, resolve: Resolve) -> Column | None:
    """The Spark column that means exactly the same, or None when there is none."""
    match expr:
        case ir.Prop() | ir.Entity() | ir.TypeOf() | ir.ColumnRef() if _is_exact(type_of(expr)):
            return resolve(expr)
        case ir.Literal(value=value, type=type_) if value is not None and not isinstance(value, tuple | list):
            return literal(value, type_) if _is_exact(type_) else None
        case ir.Compare(op=op, left=left, right=right):
            return _comparison(op, left, right, resolve)
        case ir.IsNull(item=item, negated=negated) if isinstance(item, Leaf):
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


# --- what the tasks evaluate ---------------------------------------------------------------------------------------


def _evaluated(expr: ir.Expr, type_: ValueType, resolve: Resolve) -> Column:
    """An Arrow function of the columns that the expression looks at."""
    from pyspark.sql import functions as f

    needed = leaves_of([expr])
    if not needed:
        return literal(evaluate(expr, 1, _no_column)[0].as_py(), type_)
    values = _Values(needed, [expr], [type_])

    def task(*arrays: pa.Array) -> pa.Array:
        return values.of(arrays, len(arrays[0]))[0]

    return f.arrow_udf(task, returnType=spark_name(type_))(*[resolve(leaf) for leaf in needed])


def computed(frame: DataFrame, wanted: Sequence[Wanted], resolve: Resolve) -> DataFrame:
    """The frame with more columns, evaluated for exactly the rows that are in it now."""
    from pyspark.sql.types import StructField, StructType

    values = _Values(
        leaves_of([each.expr for each in wanted]), [each.expr for each in wanted], [w.type for w in wanted]
    )
    width = len(frame.columns)
    schema = StructType([*frame.schema.fields, *(StructField(each.name, spark_type(each.type)) for each in wanted)])
    names = schema.fieldNames()
    evaluated = with_details(values.of)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = evaluated(batch.columns[width:], batch.num_rows)
            yield pa.RecordBatch.from_arrays([*batch.columns[:width], *made], names=names)

    return values.handed_over(frame, resolve).mapInArrow(task, schema)


def kept(frame: DataFrame, predicate: ir.Expr, resolve: Resolve) -> DataFrame:
    """The rows for which a predicate is true, evaluated for exactly the rows that are in the frame now."""
    values = _Values(leaves_of([predicate]), [predicate], [BOOLEAN])
    width = len(frame.columns)
    evaluated = with_details(values.of)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = pc.fill_null(evaluated(batch.columns[width:], batch.num_rows)[0], False)
            yield batch.select(range(width)).filter(found)

    return values.handed_over(frame, resolve).mapInArrow(task, frame.schema)


@dataclass(frozen=True, slots=True)
class _Values:
    """Expressions as a function of the arrays of their leaves."""

    needed: Sequence[ir.Expr]
    exprs: Sequence[ir.Expr]
    types: Sequence[ValueType]

    def handed_over(self, frame: DataFrame, resolve: Resolve) -> DataFrame:
        """The frame with the leaves behind its own columns."""
        more = [resolve(leaf).alias(f"leaf{position}") for position, leaf in enumerate(self.needed)]
        return frame.select("*", *more)

    def of(self, arrays: Sequence[pa.Array], length: int) -> list[pa.Array]:
        """The value of each expression, in the types in which values cross to Spark."""
        pairs = zip(self.needed, arrays, strict=True)
        columns = {leaf: array.cast(stored_type(type_of(leaf))) for leaf, array in pairs}
        found = [evaluate(expr, length, columns.__getitem__) for expr in self.exprs]
        targets = [travelling_type(stored_type(type_)) for type_ in self.types]
        return [array if array.type == target else array.cast(target) for array, target in zip(found, targets)]


def leaves_of(exprs: Sequence[ir.Expr]) -> list[ir.Expr]:
    """What the evaluation of these expressions is handed, each leaf once."""
    return list(dict.fromkeys(leaf for expr in exprs for leaf in leaves(expr) if isinstance(leaf, Leaf)))


def _no_column(leaf: ir.Expr) -> Any:
    raise TypeError(f"{leaf!r} is not constant")
