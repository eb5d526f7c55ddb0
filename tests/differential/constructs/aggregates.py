"""Aggregates: how they are written, computed exactly, and made."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from fractions import Fraction

from tests.differential import tree
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.printing import written
from tests.differential.sql import Context, duck, expression, meaning
from tests.differential.types import FLOATS, INTEGERS, NUMBERS, SINGLE


@dataclass(frozen=True)
class Aggregate(tree.Expr):
    """`function(argument)`."""

    function: str
    argument: tree.Expr
    distinct: bool = False

    @property
    def rounded(self) -> int:
        """How many steps the result may be off."""
        exact = self.argument.type in INTEGERS
        return 1 if self.function in ("avg", "median") and not exact else 8 if self.function == "stddev" else 0

    @property
    def type(self) -> str:  # type: ignore[override]
        """The type of the result, which depends on the function and the argument."""
        if self.function == "count":
            return "I64"
        if self.function in ("avg", "median", "stddev"):
            return "F64"
        if self.function == "sum":
            return {"I32": "I64", "I64": "I64", "U32": "U64", "U64": "U64"}.get(self.argument.type, "F64")
        return f"[{self.argument.type}]" if self.function == "collect" else self.argument.type


@written.register
def _(node: Aggregate) -> str:
    return f"{node.function}({'distinct ' if node.distinct else ''}{written(node.argument)})"


@meaning.register
def _(node: Aggregate, ctx: Context) -> str:
    value = expression(node.argument, ctx)
    if ":" in node.argument.type:
        mixed = node.argument.type.startswith("interface:") or "|" in node.argument.type
        # Entities of two types may have one id, and are two all the same.
        several = mixed and node.distinct and node.function == "count"
        value = f"""({value}."@type" || ' ' || {value}."@id")""" if several else f'{value}."@id"'
        if node.function == "count" and not node.distinct and not ctx.variables[node.argument.var].nullable:
            return "count(*)"
    words = "DISTINCT " if node.distinct else ""
    whole = node.argument.type in INTEGERS
    match node.function:
        case "min" | "max" if node.argument.type in FLOATS:
            return (
                f"{node.function}({words}{value} + CAST(0.0 AS {'FLOAT' if node.argument.type == 'F32' else 'DOUBLE'}))"
            )
        case "count" | "min" | "max":
            return f"{node.function}({words}{value})"
        case "sum" if whole:
            sql_type = "UBIGINT" if node.argument.type.startswith("U") else "BIGINT"
            return f"CAST(sum({words}CAST({value} AS HUGEINT)) AS {sql_type})"
        case "avg" if whole:
            return f"exact_ratio(CAST(sum({words}CAST({value} AS HUGEINT)) AS HUGEINT), count({words}{value}))"
        case "median" if whole:
            return f"middle(list({words}CAST({value} AS HUGEINT)) FILTER ({value} IS NOT NULL))"
        case "collect":
            return collected(node, value, ctx)
    function = {"sum": "exact_sum", "avg": "exact_mean", "median": "exact_median", "stddev": "deviation"}[node.function]
    return f"{function}(list({words}CAST({value} AS DOUBLE)) FILTER ({value} IS NOT NULL))"


def collected(node: Aggregate, value: str, ctx: Context) -> str:
    """The values in the order of the rows, of equal ones the first when only different ones count; null of no rows."""
    order = f" ORDER BY {', '.join(f'{each} NULLS FIRST' for each in ctx.row_order)}" if ctx.row_order else ""
    listed = f"list({value}{order}) FILTER ({value} IS NOT NULL)"
    if node.distinct:
        listed = f"list_filter({listed}, lambda each_value, place: list_position({listed}, each_value) = place)"
    return f"CASE WHEN count(*) = 0 THEN NULL ELSE coalesce({listed}, []) END"


@duck("exact_sum", ["DOUBLE[]"], "DOUBLE")
def exact_sum(values: list[float]) -> float:
    """The sum, rounded once."""
    return math.fsum(values)


@duck("exact_mean", ["DOUBLE[]"], "DOUBLE")
def exact_mean(values: list[float]) -> float:
    """The mean, rounded once."""
    return float(sum(map(Fraction, values)) / len(values))


@duck("exact_ratio", ["HUGEINT", "BIGINT"], "DOUBLE")
def exact_ratio(total: int, count: int) -> float:
    """A quotient of integers, rounded once."""
    return float(Fraction(total) / count)


@duck("middle", ["HUGEINT[]"], "DOUBLE")
def middle(values: list[int]) -> float:
    """The same for integers of any size."""
    return float(statistics.median(map(Fraction, values)))


@duck("exact_median", ["DOUBLE[]"], "DOUBLE")
def exact_median(values: list[float]) -> float:
    """The value in the middle, or the mean of the two there."""
    return float(statistics.median(map(Fraction, values)))


@duck("deviation", ["DOUBLE[]"], "DOUBLE", nullable=True)
def deviation(values: list[float] | None) -> float | None:
    """The standard deviation of a sample."""
    return None if values is None or len(values) < 2 else math.sqrt(float(statistics.variance(map(Fraction, values))))


@makes("aggregate", 3)
def count_rows(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    var = q.rng.choice(scope.named())
    return Aggregate("count", tree.Entity(var, scope.variables[var]))


@makes("aggregate", 2)
def count_values(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.single(scope)
    return None if prop is None else Aggregate("count", prop)


@makes("aggregate", 2, "sum")
def sum_numbers(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.type in NUMBERS and each.type != "U64")
    return None if prop is None else Aggregate("sum", prop)


@makes("aggregate", 1.5)
def mean_of_numbers(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.type in NUMBERS)
    return None if prop is None else Aggregate("avg", prop)


@makes("aggregate", 2.5)
def least_or_greatest(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.type in SINGLE and each.type != "enum")
    return None if prop is None else Aggregate(q.rng.choice(("min", "max")), prop)


@makes("aggregate", 1)
def distinct_aggregate(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    made = q.make("aggregate", scope)
    return (
        None
        if not isinstance(made, Aggregate) or made.distinct
        else Aggregate(made.function, made.argument, distinct=True)
    )


@makes("aggregate", 1.5)
def collect(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.single(scope)
    return None if prop is None or prop.type == "enum" else Aggregate("collect", prop)


@makes("aggregate", 1)
def median_or_deviation(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.type in NUMBERS)
    if prop is None:
        return None
    return Aggregate("median" if prop.type in ("I64", "U64") else q.rng.choice(("median", "stddev")), prop)


@makes("aggregate", 2)
def aggregate_of_a_value(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """Of what is computed for each row first."""
    made = q.make("column", scope)
    if made is None or made.type not in NUMBERS or made.type == "U64":
        return None
    return Aggregate(q.rng.choice(("sum", "avg", "min", "max", "count")), made, q.chance(0.2))
