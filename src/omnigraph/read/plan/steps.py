"""The steps of a plan for one match block. Each takes the bindings found so far and gives more or fewer of them.

`rows` is the planner's estimate of the rows after the step. A step carries the conditions of the block that it takes
care of, so that `PlannedBlock` can see that none is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query import ir
from omnigraph.read.plan.block import Block, EdgeAtom, InnerBlock, Tables
from omnigraph.read.plan.obligations import Account


@dataclass(frozen=True, slots=True)
class ScanStep:
    """Bind a variable to the rows of its tables for which all filters hold."""

    var: str
    tables: Tables
    filters: tuple[ir.Expr, ...]
    rows: float


@dataclass(frozen=True, slots=True)
class ExpandStep:
    """Follow edges from a bound variable to a new one. `sources`: estimated distinct nodes to start from."""

    atom: EdgeAtom
    from_var: str
    to_tables: Tables
    edge_filters: tuple[ir.Expr, ...]
    to_filters: tuple[ir.Expr, ...]
    sources: float
    rows: float
    reached: float
    """Estimated rows before the filters of the new variable."""

    @property
    def to_var(self) -> str:
        """The new variable."""
        return self.atom.seen_from(self.from_var)[1]

    @property
    def direction(self) -> ir.Direction:
        """How the edges are followed."""
        return self.atom.seen_from(self.from_var)[0]


@dataclass(frozen=True, slots=True)
class CheckStep:
    """Keep the rows whose two bound variables are joined by an edge; with an edge variable, one row for each edge."""

    atom: EdgeAtom
    from_var: str
    edge_filters: tuple[ir.Expr, ...]
    sources: float
    rows: float

    @property
    def to_var(self) -> str:
        """The variable at the other end."""
        return self.atom.seen_from(self.from_var)[1]

    @property
    def direction(self) -> ir.Direction:
        """How the edges are followed."""
        return self.atom.seen_from(self.from_var)[0]


@dataclass(frozen=True, slots=True)
class ExistsStep:
    """Keep the rows whose variable has at least one edge: all that is asked of it inside `not { }` or `exists { }`."""

    atom: EdgeAtom
    from_var: str
    sources: float
    rows: float

    @property
    def direction(self) -> ir.Direction:
        """How the edges are followed."""
        return self.atom.seen_from(self.from_var)[0]


@dataclass(frozen=True, slots=True)
class FilterStep:
    """Keep the rows for which a predicate holds."""

    predicate: ir.Expr
    rows: float


@dataclass(frozen=True, slots=True)
class InnerStep:
    """`not { }` or `exists { }`: keep the rows whose outer variables have no match, or have one, in the inner steps."""

    operator: InnerBlock
    inner: PlannedBlock
    rows: float
    seeded: bool = True
    """Whether the inner steps start from the outer bindings. Else they find all matches on their own."""


@dataclass(frozen=True, slots=True)
class EitherStep:
    """Each row with every different binding that one of the arms finds."""

    operator: ir.Either
    arms: tuple[PlannedBlock, ...]
    rows: float


@dataclass(frozen=True, slots=True)
class OptionalStep:
    """The rows of the block below, each with every match of the inner steps, or once with nothing."""

    operator: ir.Optional
    below: PlannedBlock
    inner: PlannedBlock
    rows: float


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


Step = ScanStep | ExpandStep | CheckStep | ExistsStep | FilterStep | InnerStep | EitherStep | OptionalStep | CombineStep
EdgeStep = ExpandStep | CheckStep | ExistsStep
EDGE_STEPS = (ExpandStep, CheckStep, ExistsStep)


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """The steps of a whole block. It cannot be made of steps that leave a condition out, or apply one twice."""

    block: Block
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        account = Account(self.block)
        bound = set() if self.block.optional is not None else set(self.block.outer)
        _settle(self.steps, account, bound)
        account.close()


def _settle(steps: tuple[Step, ...], account: Account, bound: set[str]) -> None:
    """Strike off what each step takes care of, and follow which variables are bound by then."""
    for step in steps:
        match step:
            case ScanStep():
                account.bind((step.var,), bound)
                account.strike(step.filters, bound)
            case ExpandStep():
                account.reach(step.atom, step.from_var, bound)
                account.bind((step.to_var,), bound)
                account.strike((*step.edge_filters, *step.to_filters), bound)
            case CheckStep():
                account.reach(step.atom, step.from_var, bound)
                account.strike(step.edge_filters, bound)
            case ExistsStep():
                account.reach(step.atom, step.from_var, bound)
                account.bind((step.atom.seen_from(step.from_var)[1],), bound)
            case FilterStep():
                account.strike((step.predicate,), bound)
            case InnerStep():
                account.strike_block(step.operator, bound)
            case EitherStep():
                account.strike_block(step.operator, bound)
                account.bind((variable.name for variable in step.operator.binds), bound)
            case OptionalStep():
                bound |= step.below.block.bound
                account.strike_block(step.operator, bound)
                bound |= {variable.name for variable in step.operator.binds} | set(step.operator.paths)
            case CombineStep():
                inside: set[str] = set()
                _settle(step.steps, account, inside)
                bound |= inside
                account.strike((each.condition for each in step.on), bound)


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One stage of a query: the steps of its block, then the operators above it, lowest first.

    The last of those is the `Stage` whose rows the next one starts from, or the `Project` of the query.
    """

    block: PlannedBlock
    upper: tuple[ir.Operator, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query runs, stage by stage."""

    query: ir.ReadQuery
    stages: tuple[PlannedStage, ...]
    variables: dict[str, Tables]
    """The tables of every variable."""

    @property
    def upper(self) -> tuple[ir.Operator, ...]:
        """The operators above the blocks of all stages, in the order in which they run."""
        return tuple(operator for stage in self.stages for operator in stage.upper)


def every_step_of(plan: Plan) -> list[Step]:
    """All steps of all stages, those inside others included."""
    return [step for stage in plan.stages for step in every_step(stage.block.steps)]


def every_step(steps: tuple[Step, ...]) -> list[Step]:
    """All steps, those inside others included."""
    found: list[Step] = []
    for step in steps:
        found.append(step)
        for inside in inner_steps(step):
            found.extend(every_step(inside))
    return found


def inner_steps(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The lists of steps inside a step."""
    match step:
        case InnerStep(inner=inner):
            return (inner.steps,)
        case EitherStep(arms=arms):
            return tuple(arm.steps for arm in arms)
        case OptionalStep(below=below, inner=inner):
            return (below.steps, inner.steps)
        case CombineStep(steps=steps):
            return (steps,)
        case _:
            return ()
