"""Which properties are worth reading along with a scan, and which are better fetched for the rows that survive."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.query import ir
from omnigraph.query.predicates import leaves
from omnigraph.read.plan.steps import CombineStep, FilterStep, Plan, ScanStep, every_step_of
from omnigraph.read.tables.arrow_types import shown_columns
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.types import EntityType

FEW_ROWS = 1000
"""A scan that gives so few rows reads everything at once: one question instead of two."""


def carried_columns(plan: Plan, catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """For each scanned variable the properties to read with it.

    With a limit or a grouping most rows never show their other columns, so those wait until the survivors are known.
    """
    early: dict[str, set[str]] = {}
    for expr in _early(plan):
        _note(expr, early, catalog)
    late = shown_properties(plan, catalog)
    cut = any(isinstance(operator, ir.Limit | ir.GroupBy) for operator in plan.upper)
    carried: dict[str, tuple[str, ...]] = {}
    for step in every_step_of(plan):
        if isinstance(step, ScanStep):
            names = set(early.get(step.var, ()))
            if not cut or step.rows <= FEW_ROWS:
                names |= set(late.get(step.var, ()))
            carried[step.var] = tuple(sorted(names - {"id"}))
    return carried


def shown_properties(plan: Plan, catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """For each variable the properties that its rows show in the result."""
    late: dict[str, set[str]] = {}
    for column in plan.query.root.columns:
        _note(column.expr, late, catalog)
    return {var: tuple(sorted(names - {"id"})) for var, names in late.items()}


def _early(plan: Plan) -> Iterator[ir.Expr]:
    for step in every_step_of(plan):
        match step:
            case FilterStep(predicate=predicate):
                yield predicate
            case CombineStep(on=on):
                yield from (each.condition for each in on)
            case _:
                pass
    for operator in plan.upper:
        match operator:
            case ir.GroupBy(keys=keys, aggregates=aggregates):
                for column in (*keys, *aggregates):
                    yield column.expr
            case ir.Stage(columns=columns):
                for column in columns:
                    yield column.expr
            case ir.Sort(keys=keys):
                for key in keys:
                    yield key.expr
            case ir.Filter(predicate=predicate):
                yield predicate
            case _:
                pass


def _note(expr: ir.Expr, found: dict[str, set[str]], catalog: Catalog) -> None:
    for leaf in leaves(expr):
        if isinstance(leaf, ir.Prop):
            found.setdefault(leaf.var, set()).add(leaf.column)
    if isinstance(expr, ir.Entity) and isinstance(expr.type, EntityType):
        names = set(shown_columns(catalog, expr.type.table_key))
        found.setdefault(expr.var, set()).update(names)
