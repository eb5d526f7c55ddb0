"""The steps of a plan for one conjunctive block. Each takes the bindings found so far and gives more or fewer of them.

`rows` is the planner's estimate of the rows after the step. A step carries the conditions of the block that it takes
care of, so that `PlannedBlock` can see that none is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query import ir
from omnigraph.read.plan.block import Block, EdgeAtom
from omnigraph.read.plan.obligations import Account


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
    atom: EdgeAtom
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
    atom: EdgeAtom
    sources: float
    rows: float


@dataclass(frozen=True, slots=True)
class ExistsStep:
    """Keep the rows whose variable has at least one edge: all that is asked of it inside `not { }`."""

    from_var: str
    edge: str
    direction: ir.Direction
    atom: EdgeAtom
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

    anti: ir.AntiJoin
    inner: PlannedBlock
    rows: float
    seeded: bool = True
    """Whether the inner steps start from the outer bindings. Else they find all matches on their own."""


@dataclass(frozen=True, slots=True)
class Equality:
    """A condition `left = right` whose properties are bound on the two sides of a join."""

    left: ir.Prop
    right: ir.Prop
    condition: ir.Expr


@dataclass(frozen=True, slots=True)
class CombineStep:
    """Join with an unrelated set of bindings: on equal properties when there are some, else the product."""

    steps: tuple[Step, ...]
    on: tuple[Equality, ...]
    rows: float


Step = ScanStep | ExpandStep | CheckStep | ExistsStep | FilterStep | AntiStep | CombineStep
EdgeStep = ExpandStep | CheckStep | ExistsStep
EDGE_STEPS = (ExpandStep, CheckStep, ExistsStep)


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """The steps of a whole block. It cannot be made of steps that leave a condition out, or apply one twice."""

    block: Block
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        account = Account(self.block)
        _settle(self.steps, account, set(self.block.outer))
        account.close()


def _settle(steps: tuple[Step, ...], account: Account, bound: set[str]) -> None:
    """Strike off what each step takes care of, and follow which variables are bound by then."""
    for step in steps:
        match step:
            case ScanStep():
                account.bind(step.var, bound)
                account.strike(step.filters, bound)
            case ExpandStep():
                account.reach(step.atom, step.from_var, bound)
                account.bind(step.to_var, bound)
                account.strike((*step.edge_filters, *step.to_filters), bound)
            case CheckStep():
                account.reach(step.atom, step.from_var, bound)
                account.strike((*step.edge_filters,), bound)
            case ExistsStep():
                account.reach(step.atom, step.from_var, bound)
                account.bind(step.atom.seen_from(step.from_var)[1], bound)
            case FilterStep():
                account.strike((step.predicate,), bound)
            case AntiStep():
                account.strike_block(step.anti, bound)
            case CombineStep():
                inside: set[str] = set()
                _settle(step.steps, account, inside)
                bound |= inside
                account.strike(tuple(each.condition for each in step.on), bound)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query runs: the steps of its block, then the operators above the block, lowest first."""

    query: ir.ReadQuery
    block: PlannedBlock
    upper: tuple[ir.Operator, ...]
    tables: dict[str, str]
    """The table of every variable."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the block."""
        return self.block.steps


def every_step(steps: tuple[Step, ...]) -> list[Step]:
    """All steps, those inside others included."""
    found: list[Step] = []
    for step in steps:
        found.append(step)
        found.extend(every_step(inner_steps(step)))
    return found


def inner_steps(step: Step) -> tuple[Step, ...]:
    """The steps inside a step."""
    match step:
        case AntiStep(inner=inner):
            return inner.steps
        case CombineStep(steps=steps):
            return steps
        case _:
            return ()
