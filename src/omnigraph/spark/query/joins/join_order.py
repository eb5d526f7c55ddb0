"""In which order the parts of a block that no traversal connects are joined: first what a condition connects.

Spark would find that order by itself, but for the questions that are asked along the way (stopping.py): they are
conditions on what has been joined, and so every two parts would look connected to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import variables_of
from omnigraph.query.typing import can_fail
from omnigraph.spark.query.bindings import Bindings


def parts_and_conditions(operator: ir.Operator) -> tuple[list[ir.Operator], list[ir.Expr]]:
    """What a tree of joins joins, in its order, and the conditions in between. One that can fail is evaluated where it
    stands, for exactly the rows that reach it, so what is below it is one part."""
    match operator:
        case ir.Join(left=left, right=right):
            parts, conditions = parts_and_conditions(left)
            more_parts, more_conditions = parts_and_conditions(right)
            return [*parts, *more_parts], [*conditions, *more_conditions]
        case ir.Filter(input=ir.Join() | ir.Filter() as below, predicate=predicate) if not can_fail(predicate):
            parts, conditions = parts_and_conditions(below)
            return parts, [*conditions, predicate]
        case _:
            return [operator], []


def next_to_join(rows: Bindings, parts: Sequence[Bindings]) -> int:
    """The place of the first part that shares a variable with the rows or that a condition connects with them; without
    one, of the first part."""
    known = _variables(rows)
    for place, part in enumerate(parts):
        own = _variables(part)
        if known & own:
            return place
        named = [variables_of(each) for each in (*rows.waiting, *part.waiting)]
        if any(each & known and each & own and each <= known | own for each in named):
            return place
    return 0


def _variables(rows: Bindings) -> set[str]:
    return {var for var, _ in rows.places}
