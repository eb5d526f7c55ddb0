"""Aggregates: how they are written, computed exactly, and made."""

from __future__ import annotations

from dataclasses import dataclass

from tests.differential import tree
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.printing import written
from tests.differential.sql import Context, expression, meaning
from tests.differential.types import INTEGERS, NUMBERS, SINGLE


@dataclass(frozen=True)
class Aggregate(tree.Expr):
    """`function(argument)`."""

    function: str
    argument: tree.Expr
    distinct: bool = False

    @property
    def rounded(self) -> int:
        """How many steps the result may be off."""
        return 1 if self.function in ("avg", "median") else 8 if self.function == "stddev" else 0

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
    if ":" in node.argument.type:
        inside = f'DISTINCT {expression(node.argument, ctx)}."@id"' if node.distinct else "*"
        return f"count({inside})"
    value = expression(node.argument, ctx)
    words = "DISTINCT " if node.distinct else ""
    whole = node.argument.type in INTEGERS
    match node.function:
        case "count" | "min" | "max":
            return f"{node.function}({words}{value})"
        case "sum" if whole:
            sql_type = "UBIGINT" if node.argument.type.startswith("U") else "BIGINT"
            return f"CAST(sum({words}CAST({value} AS HUGEINT)) AS {sql_type})"
        case "avg" if whole:
            return f"exact_ratio(CAST(sum({words}CAST({value} AS HUGEINT)) AS HUGEINT), count({words}{value}))"
        case "sum" | "avg":
            function = "exact_sum" if node.function == "sum" else "exact_mean"
            return f"{function}(list({words}CAST({value} AS DOUBLE)) FILTER ({value} IS NOT NULL))"
    raise TypeError(node.function)


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
