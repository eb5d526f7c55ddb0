"""Shortest walks: of several the one whose nodes have the least ids from its start on, then whose edges have.

A breadth-first search that looks at neighbours in the order of their ids, and at the nodes of a level in the order in
which it found them, meets every node first on its least shortest walk. So the first predecessor is the right one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.read.codes.arrays import Codes, distinct_codes
from omnigraph.read.matching.links import SHIFT, Known, Links, pair_numbers

TEXTS = pa.list_(pa.string())
PATH = pa.struct([("hops", pa.int64()), ("nodes", TEXTS), ("edges", TEXTS)])
"""How a path is held: a computed column under the name of its variable."""


@dataclass(frozen=True, slots=True)
class _Level:
    """The nodes at one distance: of which search, which node, and the place of the predecessor one level below."""

    search: Codes
    node: Codes
    before: Codes


def shortest_paths(links: Links, starts: Codes, ends: Codes, max_hops: int) -> pa.StructArray:
    """A least shortest walk from each start to its end. Every end can be reached within the bound."""
    if len(starts) == 0:
        return pa.array([], PATH)
    sources, search = distinct_codes(starts)
    nodes: list[Codes] = [np.empty(0, dtype=np.int64)] * len(starts)
    loops = np.flatnonzero(starts == ends)
    for row in loops.tolist():
        nodes[row] = np.array([starts[row], starts[row]])
    waiting = np.flatnonzero(starts != ends)
    levels = [_Level(np.arange(len(sources), dtype=np.int64), sources, np.arange(len(sources), dtype=np.int64))]
    visited = np.sort((levels[0].search << SHIFT) | sources)
    known = Known(links)
    for _ in range(max_hops):
        if len(waiting) == 0:
            break
        links.run.stop.check()
        level, visited = _next(levels[-1], visited, known)
        levels.append(level)
        links.run.memory.expect("paths", sum(3 * each.node.nbytes for each in levels))
        waiting = _take_found(levels, waiting, search, ends, nodes)
    return _as_array(links, nodes)


def _next(level: _Level, visited: Codes, known: Known) -> tuple[_Level, Codes]:
    """The next level in the order of finding, and all that was visited with it."""
    places, far = known.neighbours(level.node)
    keys = (level.search[places] << SHIFT) | far
    distinct, first = np.unique(keys, return_index=True)
    fresh = ~np.isin(distinct, visited, assume_unique=True)
    order = np.sort(first[fresh])
    found = _Level(level.search[places[order]], far[order], places[order])
    return found, np.union1d(visited, distinct[fresh])


def _take_found(levels: list[_Level], waiting: Codes, search: Codes, ends: Codes, nodes: list[Codes]) -> Codes:
    """Note the walks that end on the last level; the rows that still wait."""
    last = levels[-1]
    wanted, there = pair_numbers((search[waiting], ends[waiting]), (last.search, last.node))
    if len(there) == 0:
        return waiting
    order = np.argsort(there, kind="stable")
    at = np.minimum(np.searchsorted(there[order], wanted), len(there) - 1)
    hit = there[order][at] == wanted
    place = order[at[hit]]
    walks = np.empty((len(place), len(levels)), dtype=np.int64)
    for depth in range(len(levels) - 1, -1, -1):
        walks[:, depth] = levels[depth].node[place]
        place = levels[depth].before[place]
    for row, walk in zip(waiting[hit].tolist(), walks, strict=True):
        nodes[row] = walk
    rest: Codes = waiting[~hit]
    return rest


def _as_array(links: Links, nodes: list[Codes]) -> pa.StructArray:
    run = links.run
    lengths = np.array([len(walk) for walk in nodes], dtype=np.int64)
    flat = np.concatenate(nodes)
    last = np.zeros(len(flat), dtype=bool)
    last[np.cumsum(lengths) - 1] = True
    edges = _least_edges(links, flat[~last], flat[np.flatnonzero(~last) + 1])
    node_ids = run.ids(links.nodes, flat).cast(pa.string())
    edge_ids = run.ids(links.edge_tables, edges).cast(pa.string())
    hops = lengths - 1
    arrays = [
        pa.array(hops),
        pa.ListArray.from_arrays(_offsets(lengths), node_ids),
        pa.ListArray.from_arrays(_offsets(hops), edge_ids),
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(PATH))


def _offsets(lengths: Codes) -> pa.Array:
    return pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())


def _least_edges(links: Links, near: Codes, far: Codes) -> Codes:
    """Of the edges that join each pair of nodes, the one with the least id."""
    distinct, _ = distinct_codes(near)
    reached = links.neighbours(distinct, by_edge=True)
    assert reached.edges is not None
    order = np.argsort(links.run.order(links.edge_tables, reached.edges), kind="stable")
    pairs = (distinct[reached.sources][order], reached.targets[order])
    wanted, there = pair_numbers((near, far), pairs)
    by_pair = np.argsort(there, kind="stable")
    at = by_pair[np.searchsorted(there[by_pair], wanted)]
    return reached.edges[order][at]
