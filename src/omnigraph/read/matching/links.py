"""The edges that a traversal may take, as one: of several types, between nodes of several types, under a condition.

Nodes are coded over all node tables that the edge types touch. What the physical forms do for one edge type is put
together here, hop by hop.
"""

from __future__ import annotations

import numpy as np

from omnigraph.query.ir import Direction
from omnigraph.read.codes.arrays import Codes, factorize, ranges
from omnigraph.read.matching.reach import Reached, form_of
from omnigraph.read.plan.block import EdgeAtom, Tables
from omnigraph.read.state.run_state import Run
from omnigraph.read.state.union import UnionSpace
from omnigraph.read.tables.values import true_mask

SHIFT = 40
"""A source and a node in one integer: the node takes the lower bits."""
TURN = 1 << 20
"""Sources that are walked from at a time."""


class Links:
    """Follows the edges of a traversal in one direction."""

    def __init__(self, run: Run, atom: EdgeAtom, direction: Direction) -> None:
        self.run = run
        self.where = atom.where
        self.edge_tables: Tables = atom.edges if atom.edge_var is None else run.variables[atom.edge_var]
        self.forms = [(edge, form_of(run, edge, direction)) for edge in atom.edges]
        ends = {table for _, form in self.forms for table in (form.ends.near, form.ends.far)}
        self.nodes: Tables = tuple(sorted(ends))

    def neighbours(self, nodes: Codes, *, by_edge: bool) -> Reached:
        """One hop from distinct nodes: (place of the node, neighbour) pairs each once, or one for each edge."""
        parts = []
        for edge, form in self.forms:
            at, local = part_of(self.run, self.nodes, nodes, form.ends.near)
            reached = form.reach(local, 1, 1, by_edge=by_edge or self.where is not None)
            if self.where is not None:
                assert reached.edges is not None
                kept = np.flatnonzero(true_mask(self.run.evaluate_in(self.where, edge, reached.edges)))
                reached = Reached(reached.sources[kept], reached.targets[kept], reached.edges[kept])
            targets = code_in(self.run, self.nodes, form.ends.far, reached.targets)
            edges = None
            if by_edge and reached.edges is not None:
                edges = code_in(self.run, self.edge_tables, edge, reached.edges)
            parts.append(Reached(at[reached.sources], targets, edges))
        sources = np.concatenate([part.sources for part in parts])
        targets = np.concatenate([part.targets for part in parts])
        if by_edge:
            return Reached(sources, targets, np.concatenate([part.edges for part in parts if part.edges is not None]))
        if len(parts) > 1 or self.where is not None:
            keys = np.unique((sources << SHIFT) | targets)
            sources, targets = keys >> SHIFT, keys & ((1 << SHIFT) - 1)
        return Reached(sources, targets)

    def within(self, sources: Codes, min_hops: int, max_hops: int) -> Reached:
        """Everything whose shortest distance from a source lies within the bounds. Sources are distinct."""
        parts = [
            self._walk(sources[start : start + TURN], start, min_hops, max_hops)
            for start in range(0, len(sources), TURN)
        ]
        if not parts:
            return Reached(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        return Reached(np.concatenate([p.sources for p in parts]), np.concatenate([p.targets for p in parts]))

    def _walk(self, sources: Codes, first: int, min_hops: int, max_hops: int) -> Reached:
        at = np.arange(len(sources), dtype=np.int64)
        own = (at << SHIFT) | sources
        visited = np.sort(own)
        frontier = sources
        known = Known(self)
        found: list[Codes] = []
        for hop in range(1, max_hops + 1):
            self.run.stop.check()
            places, far = known.neighbours(frontier)
            self.run.memory.expect("reached nodes", 24 * len(far))
            keys = (at[places] << SHIFT) | far
            if hop == 1 and min_hops == 1:
                found.append(np.intersect1d(keys, own))
            keys = np.setdiff1d(keys, visited)
            if len(keys) == 0:
                break
            visited = np.union1d(visited, keys)
            if hop >= min_hops:
                found.append(keys)
            at, frontier = keys >> SHIFT, keys & ((1 << SHIFT) - 1)
        keys = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
        return Reached((keys >> SHIFT) + first, keys & ((1 << SHIFT) - 1))


class Known:
    """The neighbours of the nodes that a walk has come by: each node is asked for once."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._near = np.empty(0, dtype=np.int64)
        self._far = np.empty(0, dtype=np.int64)
        self._asked = np.empty(0, dtype=np.int64)

    def neighbours(self, nodes: Codes) -> tuple[Codes, Codes]:
        """(place among the nodes, neighbour) for each neighbour of each node, neighbours in the order of their ids."""
        fresh = np.setdiff1d(nodes, self._asked)
        if len(fresh):
            reached = self._links.neighbours(fresh, by_edge=False)
            near = np.concatenate([self._near, fresh[reached.sources]])
            far = np.concatenate([self._far, reached.targets])
            order = np.lexsort((self._links.run.order(self._links.nodes, far), near))
            self._near, self._far = near[order], far[order]
            self._asked = np.union1d(self._asked, fresh)
        low = np.searchsorted(self._near, nodes)
        counts = np.searchsorted(self._near, nodes, side="right") - low
        return np.repeat(np.arange(len(nodes), dtype=np.int64), counts), self._far[ranges(low, counts)]


def part_of(run: Run, tables: Tables, codes: Codes, table_key: str) -> tuple[Codes, Codes]:
    """Where entities of one table are among codes over several, and their codes in that table."""
    space = run.entities(tables)
    if isinstance(space, UnionSpace):
        return space.part(codes, table_key)
    at = np.arange(len(codes), dtype=np.int64) if tables[0] == table_key else np.empty(0, dtype=np.int64)
    return at, codes[at]


def code_in(run: Run, tables: Tables, table_key: str, codes: Codes) -> Codes:
    """The codes over several tables of entities of one of them."""
    space = run.entities(tables)
    return space.code(table_key, codes) if isinstance(space, UnionSpace) else codes


def recoded(run: Run, codes: Codes, tables: Tables, wanted: Tables, allowed: Tables) -> tuple[Codes, Codes]:
    """Which of the entities are of an allowed table, and their codes over other tables."""
    if tables == wanted and set(tables) <= set(allowed):
        return np.arange(len(codes), dtype=np.int64), codes
    places, found = [], []
    for table_key in tables:
        if table_key in wanted and table_key in allowed:
            at, local = part_of(run, tables, codes, table_key)
            places.append(at)
            found.append(code_in(run, wanted, table_key, local))
    if not places:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    at = np.concatenate(places)
    order = np.argsort(at, kind="stable")
    return at[order], np.concatenate(found)[order]


def pair_numbers(one: tuple[Codes, Codes], two: tuple[Codes, Codes]) -> tuple[Codes, Codes]:
    """Numbers for pairs of two lists, equal for equal pairs."""
    columns = [np.concatenate([first, second]) for first, second in zip(one, two, strict=True)]
    numbers, _ = factorize(columns, len(columns[0]))
    return numbers[: len(one[0])], numbers[len(one[0]) :]
