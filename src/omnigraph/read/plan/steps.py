"""The steps of a plan for one conjunctive block. Each takes the bindings found so far and gives more or fewer of them.

`rows` is the planner's estimate of the rows after the step.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query import ir


@dataclass(frozen=True, slots=True)
class ScanStep:
    """Bind a variable to the rows of a table for which all filters hold."""

    var: str
    table_key: str
    filters: tuple[ir.Expr, ...]
    rows: float


@dataclass(frozen=True, slots=True)
class ExpandStep:
    """Follow edges from a bound variable to a new one. `sources`: estimated distinct nodes to start from."""

    from_var: str
    to_var: str
    to_table: str
    edge: str
    direction: ir.Direction
    min_hops: int
    max_hops: int
    edge_var: str | None
    edge_filters: tuple[ir.Expr, ...]
    to_filters: tuple[ir.Expr, ...]
    sources: float
    rows: float
    reached: float
    """Estimated rows before the filters of the new variable."""


@dataclass(frozen=True, slots=True)
class CheckStep:
    """Keep the rows whose two bound variables are joined by an edge; with `edge_var`, one row for each such edge."""

    from_var: str
    to_var: str
    to_table: str
    edge: str
    direction: ir.Direction
    min_hops: int
    max_hops: int
    edge_var: str | None
    edge_filters: tuple[ir.Expr, ...]
    sources: float
    rows: float


@dataclass(frozen=True, slots=True)
class ExistsStep:
    """Keep the rows whose variable has at least one edge: all that is asked of it inside `not { }`."""

    from_var: str
    edge: str
    direction: ir.Direction
    sources: float
    rows: float


@dataclass(frozen=True, slots=True)
class FilterStep:
    """Keep the rows for which a predicate holds."""

    predicate: ir.Expr
    rows: float


@dataclass(frozen=True, slots=True)
class AntiStep:
    """Drop the rows whose outer variables have a match in the inner steps."""

    vars: tuple[str, ...]
    steps: tuple[Step, ...]
    rows: float
    seeded: bool = True
    """Whether the inner steps start from the outer bindings. Else they find all matches on their own."""


@dataclass(frozen=True, slots=True)
class CombineStep:
    """Join with an unrelated set of bindings: on equal properties when there are some, else the product."""

    steps: tuple[Step, ...]
    on: tuple[tuple[ir.Prop, ir.Prop], ...]
    rows: float


Step = ScanStep | ExpandStep | CheckStep | ExistsStep | FilterStep | AntiStep | CombineStep
EdgeStep = ExpandStep | CheckStep | ExistsStep
EDGE_STEPS = (ExpandStep, CheckStep, ExistsStep)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query runs: the steps of its block, then the operators above the block, lowest first."""

    query: ir.ReadQuery
    steps: tuple[Step, ...]
    upper: tuple[ir.Operator, ...]
    tables: dict[str, str]
    """The table of every variable."""


def every_step(steps: tuple[Step, ...]) -> list[Step]:
    """All steps, those inside others included."""
    found: list[Step] = []
    for step in steps:
        found.append(step)
        if isinstance(step, AntiStep | CombineStep):
            found.extend(every_step(step.steps))
    return found
