"""Stretches of the neighbours of vertices."""

from __future__ import annotations

import numpy as np

from omnigraph.read.tables.topology import Adjacency

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
