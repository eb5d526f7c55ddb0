"""How many partitions of a vector index are enough for a query.

The centres of the partitions tell where the rows that were found lie: each row is in the partition of the centre that
is nearest to it, and partitions are probed in the order of their centres from the query. Where the best rows all lie
in the first few of those that were probed, the ones behind would not have changed the answer; where they are spread
over all that were probed, more are probed. Without centres (several segments, products) the same is learnt by asking
twice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnigraph.schema.search_settings import Metric

FIRST_PROBES = 32
"""Partitions that are looked into first."""
GROWTH = 4
"""So many times more are looked into where the answer is spread too far."""
EARLY_SHARE = 8
"""An answer stands when it lies in the first of so many equal parts of what was probed."""
BLIND_PROBES = 16
"""Without centres: the answer stands when twice as many partitions do not change it."""

MANY_PRODUCTS = 8 << 20
"""From so many multiplications on, threads are worth waking."""

Matrix = npt.NDArray[np.float32]


def ladder(partitions: int, with_centres: bool) -> list[int]:
    """How many partitions to look into, each time the answer before does not stand; the last is all of them."""
    steps: list[int] = []
    probes = FIRST_PROBES if with_centres else BLIND_PROBES
    while probes < partitions and (with_centres or len(steps) < 2):
        steps.append(probes)
        probes *= GROWTH if with_centres else 2
    return [*steps, partitions]


def lies_early(rows: Matrix, query: Matrix, centres: Matrix, metric: Metric, probes: int) -> bool:
    """Whether all these rows lie in the partitions nearest to the query, of those that were probed."""
    with np.errstate(all="ignore"):
        if metric is Metric.COSINE:
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            query = query / np.linalg.norm(query)
        sizes = np.einsum("ij,ij->i", centres, centres)
        order = np.argsort(sizes - 2 * _products(query[None], centres)[0], kind="stable")
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        own = np.argmin(sizes - 2 * _products(rows, centres), axis=1)
        return bool(np.all(places[own] < max(1, probes // EARLY_SHARE)))


def _products(rows: Matrix, centres: Matrix) -> Matrix:
    """Each row by each centre. Small ones on this thread alone: others may be busy, and waiting costs more."""
    if len(rows) * centres.size < MANY_PRODUCTS:
        return np.asarray(np.einsum("ij,kj->ik", rows, centres))
    return np.asarray(rows @ centres.T)
