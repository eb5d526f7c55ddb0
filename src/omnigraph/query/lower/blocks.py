"""Match blocks to operators. The shape is described in compile.py. A clause that is left out is an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from omnigraph.errors import InternalError
from omnigraph.query import ir
from omnigraph.query.check.blocks import Binding, Block, Condition, Exists, Hop, Maybe, OneOf, Without
from omnigraph.query.check.scope import joined_key
from omnigraph.query.ir.expression_parts import variables_of
from omnigraph.query.typing import can_fail


def lower_block(
    block: Block,
    tables: dict[str, ir.Variable],
    start: ir.Operator | None = None,
    bound: Sequence[str] = (),
) -> ir.Operator:
    """The operators of one block. It starts from `start`, where the variables `bound` are bound already.

    `tables` are the variables around the block by name; inside, a variable may range over fewer tables than outside.
    """
    own = {variable.name: variable for variable in block.variables}
    return _Lowering(block, {**tables, **own}, set(bound)).run(start)


@dataclass(slots=True)
class _Lowering:
    block: Block
    tables: dict[str, ir.Variable]
    bound: set[str]
    pending: list[ir.Expr] = field(default_factory=list)
    failing: list[ir.Expr] = field(default_factory=list)
    nested: list[Without | Exists | OneOf] = field(default_factory=list)

    def run(self, start: ir.Operator | None) -> ir.Operator:
        """Conditions as soon as they can be, then blocks, then conditions that can fail; then each `optional`."""
        for clause in self.block.clauses:
            if isinstance(clause, Condition):
                for predicate in _searches_apart(clause.predicate):
                    (self.failing if can_fail(predicate) else self.pending).append(predicate)
            elif isinstance(clause, Without | Exists | OneOf):
                self.nested.append(clause)
        tree = start
        if tree is not None:
            tree = self._expand_all(tree, self._hops())
        for component in self._components():
            part = self._component(component)
            tree = part if tree is None else ir.Join(tree, part)
            tree = self._filters(tree)
        tree = self._rest(ir.Unit() if tree is None else tree)
        for clause in self.block.clauses:
            if isinstance(clause, Maybe):
                tree = self._rest(self._optional(tree, clause))
        if self.pending or self.failing or self.nested:
            raise InternalError("a clause of a match block was left out of the query")
        return tree

    def _hops(self) -> list[Hop]:
        return [clause for clause in self.block.clauses if isinstance(clause, Hop)]

    # --- components

    def _component(self, component: _Component) -> ir.Operator:
        around = self.bound
        self.bound = {component.start.name}
        part: ir.Operator = ir.Scan(component.start.name, component.start.table_key, component.start.tables)
        part = self._expand_all(self._filters(part), component.hops)
        self.bound |= around
        return part

    def _components(self) -> list[_Component]:
        """The components that do not hang on what is bound already, in the order of their first variable."""
        hops = self._hops()
        declared = {clause.variable for clause in self.block.clauses if isinstance(clause, Binding)}
        seen = _reachable(self.bound, hops)
        components: list[_Component] = []
        for variable in self.block.nodes:
            if variable.name in seen:
                continue
            members = _reachable({variable.name}, hops)
            seen |= members
            own = [each for each in self.block.nodes if each.name in members]
            start = next((each for each in own if each.name in declared), own[0])
            components.append(_Component(start, [hop for hop in hops if hop.source in members]))
        return components

    # --- hops

    def _expand_all(self, tree: ir.Operator, hops: Sequence[Hop]) -> ir.Operator:
        """Follow the hops that hang on what is bound, in text order as far as that goes."""
        tree = self._filters(tree)
        waiting = list(hops)
        while True:
            hop = next((each for each in waiting if each.source in self.bound or each.target in self.bound), None)
            if hop is None:
                return tree
            waiting.remove(hop)
            tree = self._expand(tree, hop)
            new = (hop.source, hop.target, hop.edge_variable, hop.path)
            self.bound |= {name for name in new if name is not None}
            tree = self._filters(tree)

    def _expand(self, tree: ir.Operator, hop: Hop) -> ir.Expand:
        forward = hop.source in self.bound
        direction = ir.Direction.BOTH if hop.undirected else ir.Direction.OUT if forward else ir.Direction.IN
        start, end = (hop.source, hop.target) if forward else (hop.target, hop.source)
        target = self.tables[end]
        return ir.Expand(
            tree,
            start,
            "|".join(hop.edges),
            direction,
            end,
            joined_key(target.all_tables),
            hop.min_hops,
            hop.max_hops,
            hop.edge_variable,
            to_bound=end in self.bound,
            edges=hop.edges if len(hop.edges) > 1 else (),
            to_tables=target.tables,
            where=hop.where,
            path_var=hop.path,
            path_start=None if hop.path is None else hop.source,
        )

    # --- conditions and blocks

    def _filters(self, tree: ir.Operator) -> ir.Operator:
        """Put the conditions on top whose variables are all bound, save those that can fail."""
        ready = [predicate for predicate in self.pending if variables_of(predicate) <= self.bound]
        for predicate in ready:
            self.pending.remove(predicate)
            tree = ir.Filter(tree, predicate)
        return tree

    def _rest(self, tree: ir.Operator) -> ir.Operator:
        """Everything else that can be said with what is bound now."""
        tree = self._filters(tree)
        # One `either` may bind what the next one starts from.
        while clause := next((o for o in self.nested if isinstance(o, OneOf) and set(o.outer) <= self.bound), None):
            self.nested.remove(clause)
            arms = tuple(self._inner(arm, clause.outer, clause.columns) for arm in clause.arms)
            tree = ir.Either(tree, arms, clause.outer, clause.binds, clause.columns)
            self.bound |= {variable.name for variable in clause.binds}
            tree = self._filters(tree)
        for within in [each for each in self.nested if not isinstance(each, OneOf) and set(each.outer) <= self.bound]:
            self.nested.remove(within)
            make = ir.AntiJoin if isinstance(within, Without) else ir.SemiJoin
            inner = self._inner(within.block, within.outer, within.columns)
            tree = make(tree, inner, within.outer, within.columns)
        for predicate in [each for each in self.failing if variables_of(each) <= self.bound]:
            self.failing.remove(predicate)
            tree = ir.Filter(tree, predicate)
        return tree

    def _optional(self, tree: ir.Operator, clause: Maybe) -> ir.Operator:
        block = clause.block
        binds = tuple(self.tables.get(variable.name, variable) for variable in block.variables)
        inner = self._inner(block, clause.outer, clause.columns)
        self.bound |= {variable.name for variable in block.variables} | set(block.paths)
        return ir.Optional(tree, inner, clause.outer, binds, clause.columns, block.paths)

    def _inner(self, block: Block, outer: tuple[str, ...], columns: tuple[str, ...]) -> ir.Operator:
        start = ir.Outer(outer, columns) if outer or columns else None
        return lower_block(block, self.tables, start, outer)


@dataclass(frozen=True, slots=True)
class _Component:
    """Variables that traversals connect, starting from one of them."""

    start: ir.Variable
    hops: list[Hop]


def _reachable(start: set[str], hops: Sequence[Hop]) -> set[str]:
    """All variables that hops connect with the given ones."""
    reached = set(start)
    grown = True
    while grown:
        grown = False
        for hop in hops:
            if (hop.source in reached) != (hop.target in reached):
                reached |= {hop.source, hop.target}
                grown = True
    return reached


def _searches_apart(condition: ir.Expr) -> list[ir.Expr]:
    """Text searches that are joined by `and` with other conditions become filters of their own: an index answers them.

    A condition that can fail stays whole, since what stands before a part guards it.
    """
    if not isinstance(condition, ir.And) or can_fail(condition):
        return [condition]
    searches: list[ir.Expr] = [item for item in condition.items if isinstance(item, ir.TextMatch)]
    others = tuple(item for item in condition.items if not isinstance(item, ir.TextMatch))
    rest: list[ir.Expr] = [ir.And(others)] if len(others) > 1 else list(others)
    return rest + searches


def tables_of(block: Block, tables: dict[str, ir.Variable]) -> set[str]:
    """The tables that a block reads, those of blocks inside it included."""
    found = {table for variable in block.variables for table in variable.all_tables}
    for clause in block.clauses:
        match clause:
            case Hop():
                found |= {f"edge:{edge}" for edge in clause.edges}
                found |= {table for end in (clause.source, clause.target) for table in tables[end].all_tables}
            case Without(inner) | Exists(inner) | Maybe(inner):
                found |= tables_of(inner, tables)
            case OneOf(arms):
                for arm in arms:
                    found |= tables_of(arm, tables)
    return found
