"""Match blocks to operators. The shape is described in lower.py."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.query import ir
from omnigraph.query.check.blocks import Binding, Block, Condition, Hop, Without
from omnigraph.query.typing import variables_of


def lower_block(block: Block, outer: tuple[str, ...] = ()) -> ir.Operator:
    """The operators of one block. `outer` are variables that are bound around it (inside `not { }`)."""
    conditions = [clause.predicate for clause in block.clauses if isinstance(clause, Condition)]
    pending = [predicate for condition in conditions for predicate in _searches_apart(condition)]
    tree: ir.Operator | None = None
    bound: set[str] = set()
    if outer:
        tree, bound = ir.Outer(outer), set(outer)
        tree = _expand_all(tree, bound, _hops(block), pending)
    for component in _components(block, outer):
        names: set[str] = {component.start.name}
        part: ir.Operator = ir.Scan(component.start.name, component.start.table_key)
        part = _filters(part, names, pending)
        part = _expand_all(part, names, component.hops, pending)
        tree = part if tree is None else ir.Join(tree, part)
        bound |= names
        tree = _filters(tree, bound, pending)
    if tree is None:
        tree = ir.Unit()
    tree = _filters(tree, bound, pending)
    for clause in block.clauses:
        if isinstance(clause, Without):
            tree = ir.AntiJoin(tree, lower_block(clause.block, clause.outer), clause.outer)
    return tree


def _searches_apart(condition: ir.Expr) -> list[ir.Expr]:
    """A text search is always the whole predicate of a filter: those joined by `and` with others are taken out."""
    if not isinstance(condition, ir.And):
        return [condition]
    searches: list[ir.Expr] = [item for item in condition.items if isinstance(item, ir.TextMatch)]
    others = tuple(item for item in condition.items if not isinstance(item, ir.TextMatch))
    rest: list[ir.Expr] = [ir.And(others)] if len(others) > 1 else list(others)
    return rest + searches


def tables_of(block: Block) -> set[str]:
    """The tables that a block reads, those of its `not` blocks included."""
    tables: set[str] = set()
    for clause in block.clauses:
        match clause:
            case Binding(_, table_key):
                tables.add(table_key)
            case Hop():
                tables |= {clause.source_table, clause.target_table, f"edge:{clause.edge}"}
            case Without(inner):
                tables |= tables_of(inner)
    return tables


class _Component:
    """Variables that traversals connect, starting from one of them."""

    __slots__ = ("hops", "start")

    def __init__(self, start: ir.Variable, hops: list[Hop]) -> None:
        self.start = start
        self.hops = hops


def _hops(block: Block) -> list[Hop]:
    return [clause for clause in block.clauses if isinstance(clause, Hop)]


def _components(block: Block, outer: Iterable[str]) -> list[_Component]:
    """The components that do not hang on an outer variable, in the order of their first variable."""
    hops = _hops(block)
    declared = {clause.variable for clause in block.clauses if isinstance(clause, Binding)}
    edges = {hop.edge_variable for hop in hops}
    nodes = [variable for variable in block.variables if variable.name not in edges]
    seen = _reachable(set(outer), hops)
    components: list[_Component] = []
    for variable in nodes:
        if variable.name in seen:
            continue
        members = _reachable({variable.name}, hops)
        seen |= members
        own = [each for each in nodes if each.name in members]
        start = next((each for each in own if each.name in declared), own[0])
        components.append(_Component(start, [hop for hop in hops if hop.source in members]))
    return components


def _reachable(start: set[str], hops: list[Hop]) -> set[str]:
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


def _expand_all(tree: ir.Operator, bound: set[str], hops: list[Hop], pending: list[ir.Expr]) -> ir.Operator:
    """Follow the hops that hang on what is bound, in text order as far as that goes. Extends `bound`."""
    tree = _filters(tree, bound, pending)
    waiting = list(hops)
    while True:
        hop = next((each for each in waiting if each.source in bound or each.target in bound), None)
        if hop is None:
            return tree
        waiting.remove(hop)
        tree = _expand(tree, hop, bound)
        bound |= {hop.source, hop.target}
        if hop.edge_variable is not None:
            bound.add(hop.edge_variable)
        tree = _filters(tree, bound, pending)


def _expand(tree: ir.Operator, hop: Hop, bound: set[str]) -> ir.Expand:
    forward = hop.source in bound
    direction = ir.Direction.BOTH if hop.undirected else ir.Direction.OUT if forward else ir.Direction.IN
    start, end = (hop.source, hop.target) if forward else (hop.target, hop.source)
    return ir.Expand(
        tree,
        start,
        hop.edge,
        direction,
        end,
        hop.target_table if forward else hop.source_table,
        hop.min_hops,
        hop.max_hops,
        hop.edge_variable,
        to_bound=end in bound,
    )


def _filters(tree: ir.Operator, bound: set[str], pending: list[ir.Expr]) -> ir.Operator:
    """Put the filters on top whose variables are all bound. Takes them out of `pending`."""
    ready = [predicate for predicate in pending if variables_of(predicate) <= bound]
    for predicate in ready:
        pending.remove(predicate)
        tree = ir.Filter(tree, predicate)
    return tree
