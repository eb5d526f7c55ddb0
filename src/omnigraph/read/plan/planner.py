"""The planner: from the unordered conjunction to a good order of steps.

Greedy, by estimated rows: start at the variable with the fewest, then always take the expansion that leaves the
fewest. Filters of one variable go where the variable is bound, so that scans and look-ups can use them; all other
conditions are applied as soon as their variables are there. Equal estimates keep the order of the text, so plans
are repeatable.
"""

from __future__ import annotations

from omnigraph.query import ir
from omnigraph.query.typing import variables_of
from omnigraph.read.plan.block import Block, EdgeAtom, edge_table, flatten
from omnigraph.read.plan.statistics import OTHER, Statistics
from omnigraph.read.plan.steps import (
    AntiStep,
    CheckStep,
    CombineStep,
    ExistsStep,
    ExpandStep,
    FilterStep,
    Plan,
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
    planner = _Planner(statistics, tables)
    steps = planner.block(flatten(operator, tables), outer_rows=1.0)
    return Plan(query, steps, tuple(reversed(upper)), tables)


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


class _Planner:
    """Plans blocks over one snapshot's statistics."""

    def __init__(self, statistics: Statistics, tables: dict[str, str]) -> None:
        self.statistics = statistics
        self.tables = tables

    def block(self, block: Block, outer_rows: float) -> tuple[Step, ...]:
        """The steps of a block that starts from its outer variables, if it has some."""
        return _BlockPlan(self, block, outer_rows).run()


class _BlockPlan:
    """The state of planning one block."""

    def __init__(self, planner: _Planner, block: Block, outer_rows: float) -> None:
        self.planner = planner
        self.statistics = planner.statistics
        self.tables = planner.tables
        self.block = block
        self.bound: set[str] = set(block.outer)
        self.rows = outer_rows
        self.steps: list[Step] = []
        self.edges = list(block.edges)
        self.anti = list(block.anti)
        self.own: dict[str, list[ir.Expr]] = {var: [] for var in block.tables}
        self.shared: list[ir.Expr] = []
        for predicate in block.filters:
            names = variables_of(predicate)
            if len(names) == 1 and (name := next(iter(names))) in self.own and name not in self.bound:
                self.own[name].append(predicate)
            else:
                self.shared.append(predicate)

    def run(self) -> tuple[Step, ...]:
        """Plan the block as a whole."""
        if self.bound or not self.own:
            self._grow()
        else:
            self._component()
        while any(var not in self.bound for var in self.own):
            self._combine()
        return tuple(self.steps)

    def _component(self) -> None:
        start = min((var for var in self.own if var not in self.bound and self._scannable(var)), key=self._scan_rows)
        self.rows = self._scan_rows(start)
        self.steps.append(ScanStep(start, self.tables[start], tuple(self.own[start]), self.rows))
        self.bound.add(start)
        self._grow()

    def _grow(self) -> None:
        """Follow edges from what is bound until none is left to follow."""
        self._conditions()
        while True:
            open_edges = [edge for edge in self.edges if edge.left in self.bound or edge.right in self.bound]
            if not open_edges:
                return
            edge = min(open_edges, key=self._rows_after)
            self._expand(edge)
            self._conditions()

    def _combine(self) -> None:
        """Plan the next unrelated group of variables on its own and join it."""
        other = _BlockPlan(self.planner, Block(tables=dict(self.block.tables)), 1.0)
        other.edges, other.anti = self.edges, self.anti
        other.own = {var: predicates for var, predicates in self.own.items() if var not in self.bound}
        other.shared = [p for p in self.shared if not (variables_of(p) & self.bound)]
        kept_shared = [p for p in self.shared if variables_of(p) & self.bound]
        other.anti = [anti for anti in self.anti if not (set(anti.vars) & self.bound)]
        kept_anti = [anti for anti in self.anti if set(anti.vars) & self.bound]
        other._component()
        on = tuple(pair for p in kept_shared if (pair := _equal_properties(p, self.bound, other.bound)) is not None)
        self.rows = self.rows * other.rows * (1 / max(self.rows, other.rows, 1.0) if on else 1.0)
        self.steps.append(CombineStep(tuple(other.steps), on, self.rows))
        self.bound |= other.bound
        self.edges, self.anti = other.edges, kept_anti + other.anti
        self.shared = [
            p for p in kept_shared if _equal_properties(p, self.bound - other.bound, other.bound) not in on
        ] + other.shared
        self._grow()

    def _conditions(self) -> None:
        """Whatever can be checked with the variables that are bound now."""
        for predicate in [p for p in self.shared if variables_of(p) <= self.bound]:
            self.shared.remove(predicate)
            self.rows *= OTHER
            self.steps.append(FilterStep(predicate, self.rows))
        for edge in [edge for edge in self.edges if edge.left in self.bound and edge.right in self.bound]:
            self._expand(edge)
        for anti in [anti for anti in self.anti if set(anti.vars) <= self.bound]:
            self.anti.remove(anti)
            inner, seeded = self._inner(anti)
            self.rows *= ANTI_KEEPS
            self.steps.append(AntiStep(anti.vars, inner, self.rows, seeded))

    def _inner(self, anti: ir.AntiJoin) -> tuple[tuple[Step, ...], bool]:
        """The inner steps, from the outer bindings or on their own, whichever looks at fewer rows."""
        seeded = shortened(self.planner.block(flatten(anti.inner, self.tables), self.rows))
        free_block = flatten(anti.inner, self.tables)
        free_block.outer = ()
        free_block.tables.update({var: self.tables[var] for var in anti.vars})
        free = self.planner.block(free_block, 1.0)
        if any(isinstance(step, CombineStep) for step in free) or _work(free) * 2 >= _work(seeded) + self.rows:
            return seeded, True
        return free, False

    def _expand(self, edge: EdgeAtom) -> None:
        self.edges.remove(edge)
        from_var = edge.left if edge.left in self.bound else edge.right
        direction, to_var = edge.seen_from(from_var)
        to_table = self.tables[to_var]
        sources = min(self.rows, float(self.statistics.rows(self.tables[from_var])))
        edge_filters = tuple(self.own.get(edge.edge_var, ())) if edge.edge_var is not None else ()
        self.rows = self._rows_after(edge)
        shape = (edge.edge, direction, edge.min_hops, edge.max_hops, edge.edge_var, edge_filters)
        if to_var in self.bound:
            self.steps.append(CheckStep(from_var, to_var, to_table, *shape, sources, self.rows))
        else:
            to_filters = tuple(self.own[to_var])
            reached = self.rows / max(self._selectivity(to_var), 1e-9)
            self.steps.append(ExpandStep(from_var, to_var, to_table, *shape, to_filters, sources, self.rows, reached))
        self.bound.add(to_var)
        if edge.edge_var is not None:
            self.bound.add(edge.edge_var)

    def _scannable(self, var: str) -> bool:
        return not any(edge.edge_var == var for edge in self.block.edges + self.edges)

    def _scan_rows(self, var: str) -> float:
        return self.statistics.rows(self.tables[var]) * self._selectivity(var)

    def _selectivity(self, var: str) -> float:
        product = 1.0
        for predicate in self.own.get(var, ()):
            product *= self.statistics.selectivity(self.tables[var], predicate)
        return product

    def _rows_after(self, edge: EdgeAtom) -> float:
        from_var = edge.left if edge.left in self.bound else edge.right
        direction, to_var = edge.seen_from(from_var)
        reached = self.reach(edge, direction, self.tables[to_var])
        kept = self._selectivity(edge.edge_var) if edge.edge_var is not None else 1.0
        if to_var in self.bound:
            return self.rows * min(1.0, reached / max(self.statistics.rows(self.tables[to_var]), 1)) * kept
        return self.rows * reached * kept * self._selectivity(to_var)

    def reach(self, edge: EdgeAtom, direction: ir.Direction, to_table: str) -> float:
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
    return (*steps[:-1], ExistsStep(last.from_var, last.edge, last.direction, last.sources, last.rows))


def _equal_properties(predicate: ir.Expr, left: set[str], right: set[str]) -> tuple[ir.Prop, ir.Prop] | None:
    """The two properties of `a.x = b.y` where one is bound on each side and both are of one hashable type."""
    match predicate:
        case ir.Compare(op=ir.CompareOp.EQ, left=ir.Prop() as one, right=ir.Prop() as two):
            if one.type != two.type or not isinstance(one.type, ScalarType) or one.type.scalar not in HASHABLE:
                return None
            if one.var in left and two.var in right:
                return one, two
            if two.var in left and one.var in right:
                return two, one
    return None


HASHABLE = INTEGERS | {Scalar.STRING, Scalar.DATE, Scalar.DATETIME}
