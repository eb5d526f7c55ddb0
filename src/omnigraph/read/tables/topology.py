"""Edges in memory: for every vertex the list of its neighbours, in compressed sparse form.

A topology is made from one edge table alone. Its vertices are the ids that the edges name, so it stays valid when
rows of the node tables change, and branches that share an edge table share it. `Alignment` relates its vertices to
the codes of a node table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.ir import Direction
from omnigraph.read.codes.arrays import Codes, codes_of, combined, ranges
from omnigraph.read.codes.ids import NodeIds, SortedIds

Window = tuple[int, int]
"""A stretch of the entries of a vertex: how many are left out at its start, and how many it has at most."""

NOWHERE = -1
"""Where the only entry of a vertex leads that has none, if there has to be one."""


@dataclass(frozen=True, slots=True)
class Adjacency:
    """The neighbours of vertex `v` are `targets[offsets[v]:offsets[v + 1]]`, sorted.

    `edges`, when it is there, holds the row of the edge table behind each entry; parallel edges then have an entry
    each. Without it every neighbour comes once.
    """

    offsets: Codes
    targets: Codes
    edges: Codes | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.offsets.nbytes + self.targets.nbytes + (0 if self.edges is None else self.edges.nbytes)

    def degrees(self, vertices: Codes) -> Codes:
        """How many entries each vertex has."""
        if len(self.offsets) == 1:  # no vertices at all
            return np.zeros(len(vertices), dtype=np.int64)
        return self.offsets[vertices + 1] - self.offsets[vertices]

    def gather(self, vertices: Codes, window: Window | None = None) -> tuple[Codes, Codes | slice]:
        """For each vertex its count of entries, and the places of all those entries one after the other.

        With a window only so many entries of each vertex, behind the first few.
        """
        counts = self.degrees(vertices)
        if window is None:
            if _is_run(vertices):
                return counts, slice(int(self.offsets[vertices[0]]), int(self.offsets[vertices[-1] + 1]))
            return counts, ranges(self.offsets[vertices], counts)
        first, most = window
        counts = np.clip(counts - first, 0, most)
        return counts, ranges(self.offsets[vertices] + first, counts)


class Topology:
    """One edge table: vertices, ends of each edge, and adjacency in each direction, made when first asked for."""

    def __init__(self, source: Codes, target: Codes, source_ids: SortedIds, target_ids: SortedIds) -> None:
        self.source = source
        self.target = target
        self.source_ids = source_ids
        self.target_ids = target_ids
        self.one_kind = source_ids is target_ids
        """Whether both ends are of one node type: only then can a path have more than one hop."""
        self._lock = threading.Lock()
        self._adjacency: dict[tuple[Direction, bool, bool], Adjacency] = {}

    @property
    def nbytes(self) -> int:
        """Bytes held, everything that was made so far included."""
        ids = self.source_ids.nbytes + (0 if self.one_kind else self.target_ids.nbytes)
        made = list(self._adjacency.values())
        return self.source.nbytes + self.target.nbytes + ids + sum(adjacency.nbytes for adjacency in made)

    def adjacency(self, direction: Direction, *, by_edge: bool = False) -> Adjacency:
        """Neighbours in a direction: each once, or with `by_edge` one entry for each edge."""
        make = self._by_edge if by_edge else self._distinct
        return self._made((direction, by_edge, False), lambda: make(direction))

    def or_nothing(self, direction: Direction, *, by_edge: bool = False) -> Adjacency:
        """As `adjacency`, and a vertex without entries has one that leads nowhere (-1).

        So has one vertex more, behind all others: it stands for every node that no edge names. What `optional` asks of
        many nodes is then a stretch of what is there, as it is for a join.
        """
        plain = self.adjacency(direction, by_edge=by_edge)
        return self._made((direction, by_edge, True), lambda: _with_nothing(plain))

    def _made(self, key: tuple[Direction, bool, bool], make: Callable[[], Adjacency]) -> Adjacency:
        found = self._adjacency.get(key)
        if found is not None:
            return found
        with self._lock:
            if key not in self._adjacency:
                made = make()
                for part in (made.offsets, made.targets, made.edges):
                    if part is not None:
                        # Queries look at stretches of it: none may write there.
                        part.setflags(write=False)
                self._adjacency[key] = made
            return self._adjacency[key]

    def ids_at(self, direction: Direction, *, far: bool) -> SortedIds:
        """The vertices on the near or far side when edges are followed in this direction."""
        if self.one_kind:
            return self.source_ids
        return self.target_ids if (direction is Direction.IN) != far else self.source_ids

    def _sides(self, direction: Direction) -> tuple[Codes, Codes]:
        if direction is Direction.OUT:
            return self.source, self.target
        if direction is Direction.IN:
            return self.target, self.source
        return np.concatenate([self.source, self.target]), np.concatenate([self.target, self.source])

    def _distinct(self, direction: Direction) -> Adjacency:
        near, far = self._sides(direction)
        near_size = len(self.ids_at(direction, far=False))
        far_size = max(1, len(self.ids_at(direction, far=True)))
        pairs = np.sort(near * far_size + far)
        if len(pairs):
            pairs = pairs[np.concatenate(([True], pairs[1:] != pairs[:-1]))]
        vertices = pairs // far_size
        return Adjacency(_offsets(vertices, near_size), pairs - vertices * far_size)

    def _by_edge(self, direction: Direction) -> Adjacency:
        near, far = self._sides(direction)
        edges = np.arange(len(self.source), dtype=np.int64)
        if direction is Direction.BOTH:
            # A self-loop matches in both orientations and is one row all the same.
            loop = self.source == self.target
            keep = np.concatenate([np.ones(len(edges), dtype=bool), ~loop])
            near, far, edges = near[keep], far[keep], np.concatenate([edges, edges])[keep]
        order = np.argsort(near, kind="stable")
        near_size = len(self.ids_at(direction, far=False))
        return Adjacency(_offsets(near[order], near_size), far[order], edges[order])


def _with_nothing(plain: Adjacency) -> Adjacency:
    counts = np.append(np.diff(plain.offsets), 0)
    empty = plain.offsets[counts == 0]
    edges = None if plain.edges is None else np.insert(plain.edges, empty, NOWHERE)
    offsets = np.concatenate(([0], np.cumsum(np.maximum(counts, 1))))
    return Adjacency(offsets, np.insert(plain.targets, empty, NOWHERE), edges)


def _is_run(vertices: Codes) -> bool:
    """Whether vertices follow one another without a gap, as those of a whole table do: so do their entries then."""
    if len(vertices) == 0 or int(vertices[-1]) - int(vertices[0]) != len(vertices) - 1:
        return False
    return bool(np.all(vertices[1:] > vertices[:-1]))


def _offsets(sorted_vertices: Codes, size: int) -> Codes:
    counts = np.bincount(sorted_vertices, minlength=size) if len(sorted_vertices) else np.zeros(size, dtype=np.int64)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def build_topology(edges: pa.Table, *, one_kind: bool) -> Topology:
    """A topology from the `src` and `dst` columns. Both ends are encoded at the same time, on two threads."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        encoded = list(pool.map(lambda name: combined(edges.column(name)).dictionary_encode(), ("src", "dst")))
        if not one_kind:
            (source, source_ids), (target, target_ids) = pool.map(_sorted_codes, encoded)
            return Topology(source, target, source_ids, target_ids)
    names = pa.concat_arrays([encoded[0].dictionary, encoded[1].dictionary]).unique()
    ids = SortedIds(names.take(pc.sort_indices(names)))
    with ThreadPoolExecutor(max_workers=2) as pool:
        source, target = pool.map(lambda column: _recoded(column, ids), encoded)
    return Topology(source, target, ids, ids)


def _sorted_codes(encoded: pa.DictionaryArray) -> tuple[Codes, SortedIds]:
    ids = SortedIds(encoded.dictionary.take(pc.sort_indices(encoded.dictionary)))
    return _recoded(encoded, ids), ids


def _recoded(encoded: pa.DictionaryArray, ids: SortedIds) -> Codes:
    if len(encoded) == 0:
        return np.empty(0, dtype=np.int64)
    return ids.find(encoded.dictionary)[codes_of(encoded.indices)]


@dataclass(frozen=True, slots=True)
class Alignment:
    """The codes of a node table beside the vertices of a topology. None where both are numbered alike."""

    vertex_of: Codes | None
    code_of: Codes | None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in (self.vertex_of, self.code_of) if array is not None)


def align(nodes: NodeIds, vertices: SortedIds) -> Alignment:
    """How node codes and vertices correspond. A node without edges has the vertex -1."""
    if nodes.ids.equals(vertices.ids):
        return Alignment(None, None)
    code_of = nodes.find(vertices.ids)
    vertex_of = np.full(len(nodes), -1, dtype=np.int64)
    known = code_of >= 0
    vertex_of[code_of[known]] = np.flatnonzero(known)
    return Alignment(vertex_of, code_of)
