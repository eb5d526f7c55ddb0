"""The two physical forms of following an edge type, with one result: pairs of (index of the source, reached entity).

`Csr` uses the adjacency in memory. `Indexed` asks the edge table for the edges of the nodes at hand. Which one a
step uses is the choice of `choice.py`; the rows are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.query.ir import Direction
from omnigraph.read.codes.arrays import Codes, Mask, combined, factorize, inserted, ranges
from omnigraph.read.matching.walk import breadth_first
from omnigraph.read.state.frame import NULL
from omnigraph.read.state.run_state import Run
from omnigraph.read.state.spaces import SortedSpace
from omnigraph.read.tables.topology import Alignment, Topology, Window
from omnigraph.schema.catalog import EdgeType

MUCH_SHARE = 2
"""When one vertex in so many is asked for, what all of them reach is kept in the form that is wanted."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Pairs, in no particular order. `edges` is there when the edge itself is bound."""

    sources: Codes
    targets: Codes
    edges: Codes | None = None


@dataclass(frozen=True, slots=True)
class Ends:
    """The node tables at both ends of an edge type, as a direction sees them."""

    near: str
    far: str
    one_kind: bool


def ends(run: Run, edge: str, direction: Direction) -> Ends:
    """The tables that an edge type leads from and to in a direction."""
    edge_type = run.catalog.table(edge)
    if not isinstance(edge_type, EdgeType):
        raise TypeError(f"{edge} is no edge type")
    source, target = f"node:{edge_type.source}", f"node:{edge_type.target}"
    if direction is Direction.IN:
        source, target = target, source
    return Ends(source, target, edge_type.source == edge_type.target)


class Csr:
    """Follows edges in the adjacency."""

    def __init__(self, run: Run, edge: str, direction: Direction) -> None:
        self.run = run
        self.direction = direction
        self.ends = ends(run, edge, direction)
        self.topology: Topology = run.caches.topology(run.reader, edge, one_kind=self.ends.one_kind)
        self.near = self._alignment(edge, self.ends.near, far=False)
        self.far = self.near if self.ends.one_kind else self._alignment(edge, self.ends.far, far=True)

    def _alignment(self, edge: str, table_key: str, *, far: bool) -> Alignment:
        space = self.run.space(table_key)
        assert isinstance(space, SortedSpace)
        end = "dst" if (self.direction is Direction.IN) != far else "src"
        vertices = self.topology.ids_at(self.direction, far=far)
        return self.run.caches.alignment(self.run.reader, table_key, space.nodes, edge, end, vertices)

    def degrees(self, sources: Codes, *, by_edge: bool) -> Codes:
        """How many entries each source has."""
        vertices = sources if self.near.vertex_of is None else self.near.vertex_of[sources]
        degrees = self.topology.adjacency(self.direction, by_edge=by_edge).degrees(np.maximum(vertices, 0))
        return np.where(vertices >= 0, degrees, 0)

    def reach(
        self, sources: Codes, min_hops: int, max_hops: int, *, by_edge: bool, window: Window | None = None
    ) -> Reached:
        """Everything within the bounds of each source. For more than one hop the sources must be distinct.

        `window`: of a single hop only some entries of each source.
        """
        if max_hops > 1 and not self.ends.one_kind:
            max_hops = 1
        if min_hops > max_hops:
            return _nothing(by_edge)
        vertices = sources if self.near.vertex_of is None else self.near.vertex_of[sources]
        known: Codes | None = None
        if self.near.vertex_of is not None and len(vertices) and int(vertices.min()) < 0:
            known = np.flatnonzero(vertices >= 0)
            vertices = vertices[known]
        adjacency = self.topology.adjacency(self.direction, by_edge=by_edge)
        edges = None
        if max_hops == 1:
            if window is None:
                self.run.memory.expect("reached nodes", 24 * int(adjacency.degrees(vertices).sum()))
            counts, places = adjacency.gather(vertices, window)
            at = np.repeat(np.arange(len(vertices), dtype=np.int64), counts)
            targets = adjacency.targets[places]
            edges = None if adjacency.edges is None else adjacency.edges[places]
        else:
            size = len(self.topology.source_ids)
            run = self.run
            at, targets = breadth_first(adjacency, vertices, size, min_hops, max_hops, run.stop, run.memory)
        if known is not None:
            at = known[at]
        if self.far.code_of is None:
            return Reached(at, targets, edges)
        codes = self.far.code_of[targets]
        if len(codes) and int(codes.min()) < 0:
            there = codes >= 0
            at, codes, edges = at[there], codes[there], None if edges is None else edges[there]
        return Reached(at, codes, edges)

    def reach_or_nothing(self, sources: Codes, *, by_edge: bool) -> Reached | None:
        """As one hop of `reach`, and a source that has no entry comes once, with nothing reached.

        None where entries lead to nodes that are not there: those have to be left out first.
        """
        if self.far.code_of is not None and int(self.far.code_of.min(initial=0)) < 0:
            return None
        vertices = sources if self.near.vertex_of is None else self.near.vertex_of[sources]
        if MUCH_SHARE * len(vertices) >= len(self.topology.ids_at(self.direction, far=False)):
            return self._stretch_or_nothing(vertices, by_edge=by_edge)
        adjacency = self.topology.adjacency(self.direction, by_edge=by_edge)
        known = np.flatnonzero(vertices >= 0)
        whole = len(known) == len(vertices)
        counts, places = adjacency.gather(vertices if whole else vertices[known])
        if not whole:
            own = counts
            counts = np.zeros(len(vertices), dtype=np.int64)
            counts[known] = own
        alone = np.flatnonzero(counts == 0)
        self.run.memory.expect("reached nodes", 24 * (int(counts.sum()) + len(alone)))
        before = (np.cumsum(counts) - counts)[alone]
        nothing = np.full(len(alone), NULL, dtype=np.int64)
        targets = adjacency.targets[places]
        targets = targets if self.far.code_of is None else self.far.code_of[targets]
        edges = None if adjacency.edges is None else inserted(adjacency.edges[places], before, nothing)
        at = np.repeat(np.arange(len(vertices), dtype=np.int64), np.maximum(counts, 1))
        return Reached(at, inserted(targets, before, nothing), edges)

    def _stretch_or_nothing(self, vertices: Codes, *, by_edge: bool) -> Reached:
        """The same for much of a table: entries that lead nowhere are kept among the others, so nothing is put in."""
        adjacency = self.topology.or_nothing(self.direction, by_edge=by_edge)
        if self.near.vertex_of is not None:
            vertices = np.where(vertices < 0, len(adjacency.offsets) - 2, vertices)
        self.run.memory.expect("reached nodes", 24 * int(adjacency.degrees(vertices).sum()))
        counts, places = adjacency.gather(vertices)
        at = np.repeat(np.arange(len(vertices), dtype=np.int64), counts)
        targets = adjacency.targets[places]
        if self.far.code_of is not None:
            # What leads nowhere finds the last code.
            targets = np.append(self.far.code_of, NULL)[targets]
        return Reached(at, targets, None if adjacency.edges is None else adjacency.edges[places])

    def has_any(self, sources: Codes) -> Mask:
        """Whether each source has an edge at all."""
        vertices = sources if self.near.vertex_of is None else self.near.vertex_of[sources]
        offsets = self.topology.adjacency(self.direction).offsets
        connected = np.append(offsets[1:] > offsets[:-1], False)
        return connected[vertices]

    def joined(self, sources: Codes, targets: Codes) -> Mask:
        """Whether an edge leads from each source to its target: a binary search in the sorted neighbours."""
        near = sources if self.near.vertex_of is None else self.near.vertex_of[sources]
        far = targets if self.far.vertex_of is None else self.far.vertex_of[targets]
        adjacency = self.topology.adjacency(self.direction)
        if len(adjacency.targets) == 0:
            return np.zeros(len(sources), dtype=bool)
        known = (near >= 0) & (far >= 0)
        near = np.where(known, near, 0)
        low, end = adjacency.offsets[near].copy(), adjacency.offsets[near + 1]
        high = end.copy()
        for _ in range(int((end - low).max(initial=0)).bit_length()):
            open_ = low < high
            middle = np.minimum((low + high) // 2, len(adjacency.targets) - 1)
            less = adjacency.targets[middle] < far
            low = np.where(open_ & less, middle + 1, low)
            high = np.where(open_ & ~less, middle, high)
        at = np.minimum(low, len(adjacency.targets) - 1)
        found: Mask = known & (low < end) & (adjacency.targets[at] == far)
        return found


class Indexed:
    """Follows edges by asking the edge table."""

    def __init__(self, run: Run, edge: str, direction: Direction) -> None:
        self.run = run
        self.edge = edge
        self.direction = direction
        self.ends = ends(run, edge, direction)

    def reach(self, sources: Codes, min_hops: int, max_hops: int, *, by_edge: bool) -> Reached:
        """Everything within the bounds of each source. Sources are distinct."""
        if max_hops > 1 and not self.ends.one_kind:
            max_hops = 1
        if min_hops > max_hops or len(sources) == 0:
            return _nothing(by_edge)
        near, far, edges = self._edges_of(sources, by_edge=by_edge)
        if max_hops == 1:
            index = np.full(self.run.space(self.ends.near).size(), -1, dtype=np.int64)
            index[sources] = np.arange(len(sources))
            return Reached(index[near], far, edges)
        return self._walk(sources, near, far, min_hops, max_hops)

    def has_any(self, sources: Codes) -> Mask:
        """Whether each source has an edge at all."""
        near, _, _ = self._edges_of(np.unique(sources), by_edge=False)
        return np.isin(sources, near)

    def joined(self, sources: Codes, targets: Codes) -> Mask:
        """Whether an edge leads from each source to its target."""
        near, far, _ = self._edges_of(np.unique(sources), by_edge=False)
        numbers, _ = factorize(
            [np.concatenate([sources, near]), np.concatenate([targets, far])], len(sources) + len(near)
        )
        return np.isin(numbers[: len(sources)], numbers[len(sources) :])

    def _walk(self, sources: Codes, near: Codes, far: Codes, min_hops: int, max_hops: int) -> Reached:
        shift = np.int64(1) << 32
        own = np.arange(len(sources), dtype=np.int64) * shift + sources
        visited = np.sort(own)
        at, frontier = np.arange(len(sources), dtype=np.int64), sources
        fetched = np.sort(sources)
        found: list[Codes] = []
        for hop in range(1, max_hops + 1):
            self.run.stop.check()
            fresh = np.setdiff1d(frontier, fetched)
            if len(fresh):
                more_near, more_far, _ = self._edges_of(fresh, by_edge=False)
                near, far = np.concatenate([near, more_near]), np.concatenate([far, more_far])
                fetched = np.union1d(fetched, fresh)
            order = np.argsort(near, kind="stable")
            near, far = near[order], far[order]
            low, high = np.searchsorted(near, frontier), np.searchsorted(near, frontier, side="right")
            self.run.memory.expect("reached nodes", 24 * int((high - low).sum()))
            keys = np.repeat(at, high - low) * shift + far[ranges(low, high - low)]
            if hop == 1 and min_hops == 1:
                found.append(np.intersect1d(keys, own))
            keys = np.setdiff1d(keys, visited)
            if len(keys) == 0:
                break
            visited = np.union1d(visited, keys)
            if hop >= min_hops:
                found.append(keys)
            at, frontier = keys >> 32, keys & (shift - 1)
        keys = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
        return Reached(keys >> 32, keys & (shift - 1))

    def _edges_of(self, nodes: Codes, *, by_edge: bool) -> tuple[Codes, Codes, Codes | None]:
        """The edges of these distinct nodes: (near, far) pairs each once, or one entry per edge."""
        ids = self.run.space(self.ends.near).ids(nodes)
        parts = []
        if self.direction is not Direction.IN:
            parts.append(self._ask("src", "dst", ids, by_edge))
        if self.direction is not Direction.OUT:
            parts.append(self._ask("dst", "src", ids, by_edge))
        near = np.concatenate([part[0] for part in parts])
        far = np.concatenate([part[1] for part in parts])
        if not by_edge:
            _, first = factorize([near, far], len(near))
            first = first if len(near) else np.empty(0, dtype=np.int64)
            near, far = near[first], far[first]
            there = (near >= 0) & (far >= 0)
            return near[there], far[there], None
        edges = np.concatenate([part[2] for part in parts])
        there = (near >= 0) & (far >= 0)
        if len(parts) == 2:
            # A self-loop answers both questions and is one row all the same.
            second = np.arange(len(near)) >= len(parts[0][0])
            there &= ~(second & (near == far))
        return near[there], far[there], edges[there]

    def _ask(self, near: str, far: str, ids: pa.Array, by_edge: bool) -> tuple[Codes, Codes, Codes]:
        names = ["src", "dst", "id"] if by_edge else ["src", "dst"]
        table = self.run.reader.lookup(self.edge, near, ids, names)
        near_codes = self.run.space(self.ends.near).encode(combined(table.column(near)))
        far_codes = self.run.space(self.ends.far).encode(combined(table.column(far)))
        if not by_edge:
            return near_codes, far_codes, near_codes
        return near_codes, far_codes, self.run.space(self.edge).encode(combined(table.column("id")))


def _nothing(by_edge: bool) -> Reached:
    empty = np.empty(0, dtype=np.int64)
    return Reached(empty, empty, empty if by_edge else None)


def form_of(run: Run, edge: str, direction: Direction) -> Csr | Indexed:
    """The form that was chosen for an edge type."""
    return Csr(run, edge, direction) if edge in run.csr_edges else Indexed(run, edge, direction)
