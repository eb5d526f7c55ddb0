"""The planner: from the unordered conjunction to a good order of steps.

Greedy, by estimated rows: start at the variable with the fewest, then always take the expansion that leaves the
fewest. Filters of one variable go where the variable is bound, so that scans and look-ups can use them; all other
conditions are applied as soon as their variables are there. Equal estimates keep the order of the text, so plans
are repeatable.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.query import ir
from omnigraph.query.typing import variables_of
from omnigraph.read.plan.block import Block, EdgeAtom, edge_table, flatten
from omnigraph.read.plan.statistics import OTHER, Statistics
from omnigraph.read.plan.steps import (
    AntiStep,
    CheckStep,
    CombineStep,
    Equality,
    ExistsStep,
    ExpandStep,
    FilterStep,
    Plan,
    PlannedBlock,
    ScanStep,
    Step,
)
from omnigraph.schema.types import INTEGERS, Scalar, ScalarType

ANTI_KEEPS = 0.5


def plan_query(query: ir.ReadQuery, statistics: Statistics) -> Plan:
    """The plan of a compiled read."""
    upper: list[ir.Operator] = []
    operator: ir.Operator = query.root
    while isinstance(operator, ir.Project | ir.Limit | ir.Sort | ir.GroupBy | ir.Rank | ir.Fuse) or (
        isinstance(operator, ir.Filter) and _is_above_block(operator.input)
    ):
        upper.append(operator)
        operator = operator.input
    tables = {variable.name: variable.table_key for variable in query.variables}
    _note_tables(operator, tables)
    block = _BlockPlanner(statistics, tables, flatten(operator, tables)).run(outer_rows=1.0)
    return Plan(query, block, tuple(reversed(upper)), tables)


def _is_above_block(operator: ir.Operator) -> bool:
    """Whether a filter's input is already past the conjunctive block (a filter on a score, say)."""
    while isinstance(operator, ir.Filter):
        operator = operator.input
    return isinstance(operator, ir.Rank | ir.Fuse | ir.GroupBy | ir.Sort | ir.Limit)


def _note_tables(operator: ir.Operator, tables: dict[str, str]) -> None:
    match operator:
        case ir.Scan(var=var, table_key=table_key):
            tables.setdefault(var, table_key)
        case ir.Join(left=left, right=right):
            _note_tables(left, tables)
            _note_tables(right, tables)
        case ir.Expand():
            _note_tables(operator.input, tables)
            tables.setdefault(operator.to_var, operator.to_table)
            if operator.edge_var is not None:
                tables.setdefault(operator.edge_var, edge_table(operator))
        case ir.Filter(input=below):
            _note_tables(below, tables)
        case ir.AntiJoin(input=below, inner=inner):
            _note_tables(below, tables)
            _note_tables(inner, tables)
        case _:
            pass


@dataclass(slots=True)
class _Part:
    """Variables that hang together, as far as they are planned."""

    bound: set[str]
    rows: float
    steps: list[Step] = field(default_factory=list)


class _BlockPlanner:
    """Plans one block. What waits for its turn is in four pools; each thing leaves its pool when a step takes it."""

    def __init__(self, statistics: Statistics, tables: dict[str, str], block: Block) -> None:
        self.statistics = statistics
        self.tables = tables
        self.block = block
        self.edges = list(block.edges)
        self.anti = list(block.anti)
        self.own: dict[str, list[ir.Expr]] = {var: [] for var in block.tables if var not in block.outer}
        self.shared: list[ir.Expr] = []
        for predicate in block.filters:
            names = variables_of(predicate)
            if len(names) == 1 and (name := next(iter(names))) in self.own:
                self.own[name].append(predicate)
            else:
                self.shared.append(predicate)

    def run(self, outer_rows: float) -> PlannedBlock:
        """The steps of the block, from its outer variables if it has some."""
        if self.block.outer or not self.own:
            part = self._grown(_Part(set(self.block.outer), outer_rows))
        else:
            part = self._component(set())
        while any(var not in part.bound for var in self.own):
            part = self._joined(part, self._component(part.bound))
        return PlannedBlock(self.block, tuple(part.steps))

    def _component(self, elsewhere: set[str]) -> _Part:
        """The variables that hang on the one with the fewest rows, among those that are not bound elsewhere."""
        start = min((var for var in self.own if var not in elsewhere and self._scannable(var)), key=self._scan_rows)
        part = _Part({start}, self._scan_rows(start))
        part.steps.append(ScanStep(start, self.tables[start], tuple(self.own[start]), part.rows))
        return self._grown(part)

    def _grown(self, part: _Part) -> _Part:
        """Follow edges from what is bound until none is left to follow."""
        self._settle(part)
        while open_edges := [edge for edge in self.edges if edge.left in part.bound or edge.right in part.bound]:
            self._expand(part, min(open_edges, key=lambda edge: self._rows_after(part, edge)))
            self._settle(part)
        return part

    def _joined(self, left: _Part, right: _Part) -> _Part:
        """Two parts that no edge connects, as one."""
        on = [found for p in self.shared if (found := _equality(p, left.bound, right.bound)) is not None]
        for each in on:
            self.shared.remove(each.condition)
        rows = left.rows * right.rows * (1 / max(left.rows, right.rows, 1.0) if on else 1.0)
        combine = CombineStep(tuple(right.steps), tuple(on), rows)
        return self._grown(_Part(left.bound | right.bound, rows, [*left.steps, combine]))

    def _settle(self, part: _Part) -> None:
        """Whatever can be checked with the variables that are bound now, until nothing more can be.

        An edge that closes between bound nodes may bind its own variable, and so make more conditions ready.
        """
        while True:
            predicate = next((p for p in self.shared if variables_of(p) <= part.bound), None)
            edge = next((e for e in self.edges if e.left in part.bound and e.right in part.bound), None)
            anti = next((a for a in self.anti if set(a.vars) <= part.bound), None)
            if predicate is not None:
                self.shared.remove(predicate)
                part.rows *= OTHER
                part.steps.append(FilterStep(predicate, part.rows))
            elif edge is not None:
                self._expand(part, edge)
            elif anti is not None:
                self.anti.remove(anti)
                inner, seeded = self._inner(part, anti)
                part.rows *= ANTI_KEEPS
                part.steps.append(AntiStep(anti, inner, part.rows, seeded))
            else:
                return

    def _inner(self, part: _Part, anti: ir.AntiJoin) -> tuple[PlannedBlock, bool]:
        """The inner steps, from the outer bindings or on their own, whichever looks at fewer rows."""
        seeded = self._plan(flatten(anti.inner, self.tables), part.rows)
        seeded = PlannedBlock(seeded.block, shortened(seeded.steps))
        free_block = flatten(anti.inner, self.tables)
        free_block.outer = ()
        free_block.tables.update({var: self.tables[var] for var in anti.vars})
        free = self._plan(free_block, 1.0)
        combines = any(isinstance(step, CombineStep) for step in free.steps)
        if combines or _work(free.steps) * 2 >= _work(seeded.steps) + part.rows:
            return seeded, True
        return free, False

    def _plan(self, block: Block, outer_rows: float) -> PlannedBlock:
        return _BlockPlanner(self.statistics, self.tables, block).run(outer_rows)

    def _expand(self, part: _Part, edge: EdgeAtom) -> None:
        self.edges.remove(edge)
        from_var = edge.left if edge.left in part.bound else edge.right
        direction, to_var = edge.seen_from(from_var)
        to_table = self.tables[to_var]
        sources = min(part.rows, float(self.statistics.rows(self.tables[from_var])))
        edge_filters = tuple(self.own[edge.edge_var]) if edge.edge_var is not None else ()
        part.rows = self._rows_after(part, edge)
        shape = (edge.edge, direction, edge.min_hops, edge.max_hops, edge.edge_var, edge_filters)
        if to_var in part.bound:
            part.steps.append(CheckStep(from_var, to_var, to_table, *shape, edge, sources, part.rows))
        else:
            to_filters = tuple(self.own[to_var])
            reached = part.rows / max(self._selectivity(to_var), 1e-9)
            part.steps.append(
                ExpandStep(from_var, to_var, to_table, *shape, to_filters, edge, sources, part.rows, reached)
            )
        part.bound.add(to_var)
        if edge.edge_var is not None:
            part.bound.add(edge.edge_var)

    def _scannable(self, var: str) -> bool:
        return not any(edge.edge_var == var for edge in self.block.edges)

    def _scan_rows(self, var: str) -> float:
        return self.statistics.rows(self.tables[var]) * self._selectivity(var)

    def _selectivity(self, var: str) -> float:
        product = 1.0
        for predicate in self.own.get(var, ()):
            product *= self.statistics.selectivity(self.tables[var], predicate)
        return product

    def _rows_after(self, part: _Part, edge: EdgeAtom) -> float:
        from_var = edge.left if edge.left in part.bound else edge.right
        direction, to_var = edge.seen_from(from_var)
        reached = self._reach(edge, direction, self.tables[to_var])
        kept = self._selectivity(edge.edge_var) if edge.edge_var is not None else 1.0
        if to_var in part.bound:
            return part.rows * min(1.0, reached / max(self.statistics.rows(self.tables[to_var]), 1)) * kept
        return part.rows * reached * kept * self._selectivity(to_var)

    def _reach(self, edge: EdgeAtom, direction: ir.Direction, to_table: str) -> float:
        """How many nodes a traversal finds from one node."""
        degree = self.statistics.degree(edge.edge, direction)
        if edge.max_hops == 1:
            return degree
        total = sum(degree**hops for hops in range(edge.min_hops, min(edge.max_hops, 16) + 1))
        return min(total, float(self.statistics.rows(to_table)))


def _work(steps: tuple[Step, ...]) -> float:
    """Rows that the steps look at: those an expansion makes before its filters have a say count in full."""
    return sum(max(step.rows, step.reached) if isinstance(step, ExpandStep) else step.rows for step in steps)


def shortened(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Inside `not { }` only existence counts: a last expansion that asks nothing of its end is a look at the degree."""
    if not steps or not isinstance(steps[-1], ExpandStep):
        return steps
    last = steps[-1]
    if last.to_filters or last.edge_filters or last.min_hops > 1:
        return steps
    return (*steps[:-1], ExistsStep(last.from_var, last.edge, last.direction, last.atom, last.sources, last.rows))


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
