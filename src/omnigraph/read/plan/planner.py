"""The planner: from the unordered conjunction to a good order of steps.

Greedy, by estimated rows: start at the variable with the fewest, then always take the expansion that leaves the
fewest. Filters of one variable go where the variable is bound, so that scans and look-ups can use them; all other
conditions are applied as soon as their variables are there. Equal estimates keep the order of the text, so plans
are repeatable.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.errors import InternalError
from omnigraph.query import ir
from omnigraph.query.typing import variables_of
from omnigraph.read.plan.block import Block, EdgeAtom, InnerBlock, Tables, flatten, reads_columns
from omnigraph.read.plan.statistics import OTHER, Statistics
from omnigraph.read.plan.steps import (
    CheckStep,
    CombineStep,
    EitherStep,
    Equality,
    ExistsStep,
    ExpandStep,
    FilterStep,
    InnerStep,
    OptionalStep,
    Plan,
    PlannedBlock,
    PlannedStage,
    ScanStep,
    Step,
)
from omnigraph.schema.types import INTEGERS, Scalar, ScalarType

INNER_KEEPS = 0.5
"""The part of the rows that `not { }` or `exists { }` keeps."""
UPPER = ir.Project | ir.Stage | ir.Limit | ir.Sort | ir.GroupBy | ir.Rank | ir.Fuse


def plan_query(query: ir.ReadQuery, statistics: Statistics) -> Plan:
    """The plan of a compiled read."""
    variables = {variable.name: variable.all_tables for variable in query.all_variables or query.variables}
    nullable = frozenset(variable.name for variable in query.all_variables if variable.nullable)
    _note_variables(query.root, variables)
    stages: list[PlannedStage] = []
    operator: ir.Operator | None = query.root
    while operator is not None:
        upper: list[ir.Operator] = [operator]
        assert isinstance(operator, ir.Project | ir.Stage)
        below: ir.Operator = operator.input
        while (isinstance(below, UPPER) and not isinstance(below, ir.Stage)) or _is_above_block(below):
            upper.append(below)
            below = below.input  # type: ignore[union-attr]  # all of these have one input
        block = flatten(below, variables)
        planned = _BlockPlanner(statistics, variables, nullable, block).run(outer_rows=1.0)
        stages.append(PlannedStage(planned, tuple(reversed(upper))))
        operator = _stage_below(below)
    return Plan(query, tuple(reversed(stages)), variables)


def _is_above_block(operator: ir.Operator) -> bool:
    """Whether a filter is already past the conjunctive block (a filter on a score or on a group, say)."""
    if not isinstance(operator, ir.Filter):
        return False
    below: ir.Operator = operator
    while isinstance(below, ir.Filter):
        below = below.input
    return isinstance(below, ir.Rank | ir.Fuse | ir.GroupBy | ir.Sort | ir.Limit)


def _stage_below(operator: ir.Operator) -> ir.Stage | None:
    """The stage that a block starts from."""
    match operator:
        case ir.Stage():
            return operator
        case ir.Join(left=left, right=right):
            return _stage_below(left) or _stage_below(right)
        case ir.Unit() | ir.Outer() | ir.Scan():
            return None
        case _:
            return _stage_below(operator.input)


def _note_variables(operator: ir.Operator, variables: dict[str, Tables]) -> None:
    """The tables of variables that only inner blocks bind."""
    match operator:
        case ir.Unit() | ir.Outer():
            return
        case ir.Scan(var=var):
            variables.setdefault(var, operator.all_tables)
            return
        case ir.Join(left=left, right=right):
            _note_variables(left, variables)
            _note_variables(right, variables)
            return
        case ir.AntiJoin(inner=inner) | ir.SemiJoin(inner=inner) | ir.Optional(inner=inner):
            _note_variables(operator.input, variables)
            _note_variables(inner, variables)
            return
        case ir.Either(arms=arms):
            _note_variables(operator.input, variables)
            for arm in arms:
                _note_variables(arm, variables)
            return
        case ir.Expand():
            _note_variables(operator.input, variables)
            variables.setdefault(operator.to_var, operator.all_to_tables)
            if operator.edge_var is not None:
                variables.setdefault(operator.edge_var, tuple(f"edge:{name}" for name in operator.all_edges))
        case _:
            _note_variables(operator.input, variables)


@dataclass(slots=True)
class _Part:
    """Variables that hang together, as far as planned. `seeded`: it has the rows that the block starts from."""

    bound: set[str]
    rows: float
    seeded: bool = False
    steps: list[Step] = field(default_factory=list)


class _BlockPlanner:
    """Plans one block. What waits for its turn is in pools; each thing leaves its pool when a step takes it."""

    def __init__(
        self, statistics: Statistics, variables: dict[str, Tables], nullable: frozenset[str], block: Block
    ) -> None:
        self.statistics = statistics
        self.variables = variables
        self.nullable = nullable
        self.block = block
        self.edges = list(block.edges)
        self.inner = list(block.inner)
        self.either = list(block.either)
        self.unscanned = {variable.name for either in block.either for variable in either.binds}
        self.unscanned |= {edge.edge_var for edge in block.edges if edge.edge_var is not None}
        self.own: dict[str, list[ir.Expr]] = {var: [] for var in block.tables}
        self.shared: list[ir.Expr] = []
        from_either = {variable.name for either in block.either for variable in either.binds}
        for predicate in block.filters:
            names = variables_of(predicate)
            name = next(iter(names)) if len(names) == 1 else None
            if name in self.own and name not in from_either and not reads_columns(predicate):
                self.own[name].append(predicate)
            else:
                self.shared.append(predicate)

    def run(self, outer_rows: float) -> PlannedBlock:
        """The steps of the block, from the rows that it starts from if it has some."""
        if self.block.seeded or not self.own:
            part = self._grown(self._start(outer_rows))
        else:
            part = self._component(set())
        while any(var not in part.bound for var in self.own) or self.either:
            part = self._joined(part, self._component(part.bound))
        for last in self.block.tail:
            if isinstance(last, ir.AntiJoin | ir.SemiJoin):
                self._add_inner(part, last)
            else:
                self._add_filter(part, last)
        return PlannedBlock(self.block, tuple(part.steps))

    def _start(self, outer_rows: float) -> _Part:
        block = self.block
        if block.optional is None or block.below is None:
            return _Part(set(block.outer), outer_rows, True)
        below = self._plan(block.below, outer_rows)
        rows = below.steps[-1].rows if below.steps else outer_rows
        inner = self._plan(flatten(block.optional.inner, self.variables), rows)
        matched = inner.steps[-1].rows if inner.steps else rows
        step = OptionalStep(block.optional, below, inner, max(rows, matched))
        return _Part(set(block.outer), step.rows, True, [step])

    def _component(self, elsewhere: set[str]) -> _Part:
        """The variables that hang on the one with the fewest rows, among those that are not bound elsewhere."""
        candidates = [var for var in self.own if var not in elsewhere and var not in self.unscanned]
        if not candidates:
            free = next((either for either in self.either if not either.vars), None)
            if free is None:
                raise InternalError("the plan of this query is not right: nothing is left to start from")
            part = _Part(set(), 1.0)
            self._add_either(part, free)
            return self._grown(part)
        start = min(candidates, key=self._scan_rows)
        part = _Part({start}, self._scan_rows(start))
        part.steps.append(ScanStep(start, self.block.tables[start], tuple(self.own[start]), part.rows))
        return self._grown(part)

    def _grown(self, part: _Part) -> _Part:
        """Follow edges from what is bound until none is left to follow."""
        self._settle(part)
        while open_edges := [edge for edge in self.edges if self._can_follow(part, edge)]:
            self._expand(part, min(open_edges, key=lambda edge: self._rows_after(part, edge)))
            self._settle(part)
        return part

    def _can_follow(self, part: _Part, edge: EdgeAtom) -> bool:
        """Whether one end is bound. An end that an `either` binds is not reached: the arms decide what it is."""
        if edge.left not in part.bound and edge.right not in part.bound:
            return False
        return all(end in part.bound or end not in self.unscanned for end in (edge.left, edge.right))

    def _joined(self, left: _Part, right: _Part) -> _Part:
        """Two parts that no edge connects, as one."""
        on = [found for p in self.shared if (found := _equality(p, left.bound, right.bound)) is not None]
        for each in on:
            self.shared.remove(each.condition)
        rows = left.rows * right.rows * (1 / max(left.rows, right.rows, 1.0) if on else 1.0)
        combine = CombineStep(tuple(right.steps), tuple(on), rows)
        return self._grown(_Part(left.bound | right.bound, rows, left.seeded, [*left.steps, combine]))

    def _settle(self, part: _Part) -> None:
        """Whatever can be checked with the variables that are bound now, until nothing more can be.

        An edge that closes between bound nodes may bind its own variable, and so make more conditions ready.
        """
        while True:
            predicate = next((p for p in self.shared if self._is_ready(part, p)), None)
            edge = next((e for e in self.edges if e.left in part.bound and e.right in part.bound), None)
            inner = next((i for i in self.inner if self._has_outer(part, i)), None)
            either = next((e for e in self.either if e.vars and self._has_outer(part, e)), None)
            if predicate is not None:
                self.shared.remove(predicate)
                self._add_filter(part, predicate)
            elif edge is not None:
                self._expand(part, edge)
            elif inner is not None:
                self.inner.remove(inner)
                self._add_inner(part, inner)
            elif either is not None:
                self._add_either(part, either)
            else:
                return

    def _is_ready(self, part: _Part, predicate: ir.Expr) -> bool:
        if not variables_of(predicate) <= part.bound:
            return False
        return part.seeded or not reads_columns(predicate)

    def _has_outer(self, part: _Part, operator: InnerBlock | ir.Either) -> bool:
        return set(operator.vars) <= part.bound and (part.seeded or not operator.columns)

    def _add_filter(self, part: _Part, predicate: ir.Expr) -> None:
        part.rows *= OTHER
        part.steps.append(FilterStep(predicate, part.rows))

    def _add_inner(self, part: _Part, operator: InnerBlock) -> None:
        inner, seeded = self._inner(part, operator)
        part.rows *= INNER_KEEPS
        part.steps.append(InnerStep(operator, inner, part.rows, seeded))

    def _add_either(self, part: _Part, either: ir.Either) -> None:
        self.either.remove(either)
        arms = tuple(self._plan(flatten(arm, self.variables), part.rows) for arm in either.arms)
        found = sum(arm.steps[-1].rows if arm.steps else part.rows for arm in arms)
        part.rows = found if either.binds else part.rows * INNER_KEEPS
        part.steps.append(EitherStep(either, arms, part.rows))
        part.bound |= {variable.name for variable in either.binds}

    def _inner(self, part: _Part, operator: InnerBlock) -> tuple[PlannedBlock, bool]:
        """The inner steps, from the outer bindings or on their own, whichever looks at fewer rows."""
        seeded = self._plan(flatten(operator.inner, self.variables), part.rows)
        seeded = PlannedBlock(seeded.block, shortened(seeded))
        free_block = flatten(operator.inner, self.variables)
        if not self._may_be_free(operator, free_block):
            return seeded, True
        free_block.outer, free_block.seeded = (), False
        free_block.tables.update({var: self.variables[var] for var in operator.vars})
        free = self._plan(free_block, 1.0)
        combines = any(isinstance(step, CombineStep) for step in free.steps)
        if combines or _work(free.steps) * 2 >= _work(seeded.steps) + part.rows:
            return seeded, True
        return free, False

    def _may_be_free(self, operator: InnerBlock, block: Block) -> bool:
        """Whether all matches can be found without looking at the outer rows.

        Not where those hold computed columns or a variable that may be null, and not below what can fail.
        """
        plain = not operator.columns and not block.tail and block.optional is None and not block.either
        nodes = all(self.variables[var][0].startswith("node:") for var in operator.vars if var in self.variables)
        known = all(var in self.variables and var not in self.nullable for var in operator.vars)
        return plain and nodes and known and not any(inner.columns for inner in block.inner)

    def _plan(self, block: Block, outer_rows: float) -> PlannedBlock:
        return _BlockPlanner(self.statistics, self.variables, self.nullable, block).run(outer_rows)

    def _expand(self, part: _Part, edge: EdgeAtom) -> None:
        self.edges.remove(edge)
        from_var = edge.left if edge.left in part.bound else edge.right
        _, to_var = edge.seen_from(from_var)
        sources = min(part.rows, float(self.statistics.rows_of(self.variables[from_var])))
        edge_filters = tuple(self.own[edge.edge_var]) if edge.edge_var is not None else ()
        part.rows = self._rows_after(part, edge)
        if to_var in part.bound:
            part.steps.append(CheckStep(edge, from_var, edge_filters, sources, part.rows))
        else:
            to_filters = tuple(self.own[to_var])
            reached = part.rows / max(self._selectivity(to_var), 1e-9)
            tables = self.block.tables[to_var]
            part.steps.append(ExpandStep(edge, from_var, tables, edge_filters, to_filters, sources, part.rows, reached))
        part.bound |= {to_var, *edge.binds}

    def _scan_rows(self, var: str) -> float:
        return self.statistics.rows_of(self.variables[var]) * self._selectivity(var)

    def _selectivity(self, var: str) -> float:
        product = 1.0
        for predicate in self.own.get(var, ()):
            product *= self.statistics.selectivity(self.variables[var][0], predicate)
        return product

    def _rows_after(self, part: _Part, edge: EdgeAtom) -> float:
        from_var = edge.left if edge.left in part.bound else edge.right
        direction, to_var = edge.seen_from(from_var)
        reached = self._reach(edge, direction, self.variables[to_var])
        kept = self._selectivity(edge.edge_var) if edge.edge_var is not None else 1.0
        if to_var in part.bound:
            return part.rows * min(1.0, reached / max(self.statistics.rows_of(self.variables[to_var]), 1)) * kept
        return part.rows * reached * kept * self._selectivity(to_var)

    def _reach(self, edge: EdgeAtom, direction: ir.Direction, to_tables: Tables) -> float:
        """How many nodes a traversal finds from one node."""
        degree = sum(self.statistics.degree(each, direction) for each in edge.edges)
        if edge.where is not None:
            degree *= self.statistics.selectivity(edge.edges[0], edge.where)
        if edge.max_hops == 1:
            return degree
        total = sum(degree**hops for hops in range(edge.min_hops, min(edge.max_hops, 16) + 1))
        return min(total, float(self.statistics.rows_of(to_tables)))


def _work(steps: tuple[Step, ...]) -> float:
    """Rows that the steps look at: those an expansion makes before its filters have a say count in full."""
    return sum(max(step.rows, step.reached) if isinstance(step, ExpandStep) else step.rows for step in steps)


def shortened(planned: PlannedBlock) -> tuple[Step, ...]:
    """Where only existence counts, a last expansion that asks nothing of its end is a look at the degree."""
    steps = planned.steps
    if not steps or not isinstance(steps[-1], ExpandStep):
        return steps
    last = steps[-1]
    plain = len(last.atom.edges) == 1 and last.atom.where is None and last.atom.path_var is None
    if last.to_filters or last.edge_filters or last.atom.min_hops > 1 or not plain:
        return steps
    return (*steps[:-1], ExistsStep(last.atom, last.from_var, last.sources, last.rows))


def _equality(predicate: ir.Expr, left: set[str], right: set[str]) -> Equality | None:
    """The condition `a.x = b.y` where one is bound on each side and both are of one hashable type."""
    match predicate:
        case ir.Compare(op=ir.CompareOp.EQ, left=ir.Prop() as one, right=ir.Prop() as two):
            if one.type != two.type or not isinstance(one.type, ScalarType) or one.type.scalar not in HASHABLE:
                return None
            if one.var in left and two.var in right:
                return Equality(one, two, predicate)
            if two.var in left and one.var in right:
                return Equality(two, one, predicate)
    return None


HASHABLE = INTEGERS | {Scalar.STRING, Scalar.DATE, Scalar.DATETIME}
