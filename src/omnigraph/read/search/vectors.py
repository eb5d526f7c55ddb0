"""How far vectors are from one, by each metric.

Distances are computed in 64 bits and rounded to 32, row by row, so that a row's distance does not depend on which
other rows are looked at or how it was found, and vectors that point the same way tie.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.schema.search_settings import Metric

CHUNK_ROWS = 8192


def matrix(column: pa.Array) -> npt.NDArray[np.float32]:
    """A vector column as a matrix; the rows of missing vectors hold anything."""
    dim = column.type.list_size
    values = column.values.slice(column.offset * dim, len(column) * dim)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float32).reshape(len(column), dim)


def distances(column: pa.Array, query: npt.NDArray[np.float32], metric: Metric) -> npt.NDArray[np.float32]:
    """The distance of each vector; not-a-number for one that is missing or, by cosine, has no direction."""
    rows = matrix(column)
    found = np.empty(len(rows), dtype=np.float32)
    wanted = query.astype(np.float64)
    for start in range(0, len(rows), CHUNK_ROWS):
        part = rows[start : start + CHUNK_ROWS].astype(np.float64)
        with np.errstate(over="ignore"):
            found[start : start + CHUNK_ROWS] = _exact(part, wanted, metric)
    if column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return found


def _exact(rows: npt.NDArray[np.float64], query: npt.NDArray[np.float64], metric: Metric) -> npt.NDArray[np.float64]:
    if metric is Metric.L2:
        apart = rows - query
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", apart, apart)))
    product = np.einsum("ij,j->i", rows, query)
    if metric is Metric.DOT:
        return np.asarray(1.0 - product)
    sizes = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * float(np.sqrt(np.einsum("i,i->", query, query)))
    with np.errstate(divide="ignore", invalid="ignore"):
        similarity = np.clip(product / sizes, -1.0, 1.0)
    return np.where(sizes > 0, 1.0 - similarity, np.nan)


def may_be_near(
    column: pa.Array, query: npt.NDArray[np.float32], metric: Metric, bound: float, count: int
) -> npt.NDArray[np.int64]:
    """The places of all vectors nearer than a bound, and of a few more: found at 32-bit width, which is far quicker.

    Without a bound yet (infinity) those that can be among the nearest `count`. The margin is far wider than the
    rounding of 32-bit products, so that the exact distances decide.
    """
    rows = matrix(column)
    with np.errstate(all="ignore"):
        # Not by the threads of a matrix product: waking them costs more than they save on a batch.
        product = np.einsum("ij,j->i", rows, query)
        sizes = np.einsum("ij,ij->i", rows, rows)
        own = float(query.astype(np.float64) @ query.astype(np.float64))
        scale = np.sqrt(sizes.astype(np.float64) * own)
        if metric is Metric.COSINE:
            rough, margin = 1.0 - product / scale, 1e-6 * np.sqrt(len(query)) + 1e-5
        elif metric is Metric.DOT:
            rough, margin = 1.0 - product, (scale + 1.0) * (1e-6 * np.sqrt(len(query)) + 1e-5)
        else:
            rough = sizes + own - 2.0 * product
            margin = (sizes + own + 1.0) * (2e-6 * np.sqrt(len(query)) + 2e-5)
            bound = bound * bound if np.isfinite(bound) else bound
        # What 32 bits cannot hold is looked at exactly.
        if np.isinf(bound) and 0 < count < len(rows):
            farthest = rough + margin
            farthest[column.is_null().to_numpy(zero_copy_only=False)] = np.nan
            return np.flatnonzero(~(rough - margin > np.partition(farthest, count - 1)[count - 1])).astype(np.int64)
        return np.flatnonzero(~(rough > bound + margin)).astype(np.int64)
