"""Stretches of the neighbours of vertices."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.query.ir import Direction
from omnigraph.read.codes.ids import SortedIds
from omnigraph.read.tables.topology import Adjacency, Topology

NEIGHBOURS = [[1, 4, 5], [], [2], [0, 1, 3, 6]]


def test_a_window_holds_only_entries_of_the_vertex_itself() -> None:
    offsets = np.cumsum([0, *(len(each) for each in NEIGHBOURS)])
    adjacency = Adjacency(offsets, np.array([target for each in NEIGHBOURS for target in each], dtype=np.int64))
    vertices = np.array([3, 0, 1, 2], dtype=np.int64)
    for first in range(5):
        for most in range(1, 6):
            wanted = [NEIGHBOURS[vertex][first : first + most] for vertex in vertices]
            counts, places = adjacency.gather(vertices, (first, most))
            assert counts.tolist() == [len(each) for each in wanted]
            assert adjacency.targets[places].tolist() == [target for each in wanted for target in each]


def test_a_vertex_without_entries_has_one_that_leads_nowhere_where_that_is_asked_for() -> None:
    source, target = np.array([3, 0, 3]), np.array([1, 1, 3])
    ids = SortedIds(pa.array(list("abcd"), pa.large_string()))
    topology = Topology(source, target, ids, ids)
    for by_edge in (False, True):
        made = topology.or_nothing(Direction.OUT, by_edge=by_edge)
        assert made is topology.or_nothing(Direction.OUT, by_edge=by_edge)
        # The last one stands for all nodes that are in no edge.
        assert made.degrees(np.arange(5)).tolist() == [1, 1, 1, 2, 1]
        assert made.targets.tolist() == [1, -1, -1, 1, 3, -1]
        assert made.edges is None or made.edges.tolist() == [1, -1, -1, 0, 2, -1]
    before = topology.nbytes
    assert topology.or_nothing(Direction.IN).targets.tolist() == [-1, 0, 3, -1, 3, -1]
    assert topology.nbytes > before
    nobody = SortedIds(pa.array([], pa.large_string()))
    empty = np.empty(0, dtype=np.int64)
    assert Topology(empty, empty, nobody, nobody).or_nothing(Direction.OUT).targets.tolist() == [-1]
