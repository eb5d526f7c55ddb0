"""Breadth-first search over an adjacency, from many vertices at once.

From each source, a vertex is reported if its shortest distance lies within the bounds. Visited vertices are neither
expanded nor reported again, the source included, except that a self-loop puts a vertex at distance 1 from itself.
"""

from __future__ import annotations

import numpy as np

from omnigraph.read.codes.arrays import Codes
from omnigraph.read.state.control import MemoryBudget, StopSign
from omnigraph.read.tables.topology import Adjacency

CELLS = 1 << 25
"""(source, vertex) pairs that are marked at a time. More sources are walked in turns."""


def breadth_first(
    adjacency: Adjacency,
    sources: Codes,
    size: int,
    min_hops: int,
    max_hops: int,
    stop: StopSign,
    memory: MemoryBudget,
) -> tuple[Codes, Codes]:
    """(index of the source, vertex) for every vertex within the bounds, each pair once. Sources are distinct."""
    turn = max(1, CELLS // max(size, 1))
    visited = np.zeros(min(turn, len(sources)) * size, dtype=bool)
    found: list[Codes] = []
    held = 0
    for start in range(0, len(sources), turn):
        stop.check()
        part = sources[start : start + turn]
        for keys in _walk(adjacency, part, size, min_hops, max_hops, visited, memory):
            found.append(keys + start * size)
            held += keys.nbytes
        memory.expect("reached nodes", 3 * held)
    keys = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
    at = keys // size if size else keys
    return at, keys - at * size


def _walk(
    adjacency: Adjacency,
    sources: Codes,
    size: int,
    min_hops: int,
    max_hops: int,
    visited: np.ndarray,
    memory: MemoryBudget,
) -> list[Codes]:
    """The reported pairs of one turn as `index * size + vertex`, level by level."""
    own = np.arange(len(sources), dtype=np.int64) * size + sources
    visited[own] = True
    touched = [own]
    found: list[Codes] = []
    base, frontier = np.arange(len(sources), dtype=np.int64) * size, sources
    for hop in range(1, max_hops + 1):
        counts = adjacency.degrees(frontier)
        memory.expect("reached nodes", 24 * int(counts.sum()))
        counts, places = adjacency.gather(frontier)
        keys = np.repeat(base, counts) + adjacency.targets[places]
        if hop == 1 and min_hops == 1:
            found.append(keys[keys == np.repeat(own, counts)])
        if hop > 1:
            # Sorted keys are easy to make distinct, and walk through the marks in their order in memory.
            keys.sort()
            keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))] if len(keys) else keys
        keys = keys[~visited[keys]]
        if len(keys) == 0:
            break
        visited[keys] = True
        touched.append(keys)
        if hop >= min_hops:
            found.append(keys)
        if hop < max_hops:
            index = keys // size
            base, frontier = index * size, keys - index * size
    for keys in touched:
        visited[keys] = False
    return found
