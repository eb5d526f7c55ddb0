"""Cosine distance of many vectors to one.

Distances are computed in 64 bits and rounded to 32, row by row, so that a row's distance does not depend on which
other rows are looked at, and vectors that point the same way tie.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

CHUNK_ROWS = 8192


def matrix(column: pa.Array) -> npt.NDArray[np.float32]:
    """A vector column as a matrix; the rows of missing vectors hold anything."""
    dim = column.type.list_size
    values = column.values.slice(column.offset * dim, len(column) * dim)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float32).reshape(len(column), dim)


def lengths(column: pa.Array) -> npt.NDArray[np.float64]:
    """The Euclidean length of each vector, 0 for a missing one."""
    rows = matrix(column)
    found = np.empty(len(rows))
    for start in range(0, len(rows), CHUNK_ROWS):
        part = rows[start : start + CHUNK_ROWS].astype(np.float64)
        found[start : start + CHUNK_ROWS] = np.sqrt(np.einsum("ij,ij->i", part, part))
    if column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = 0.0
    return found


def cosine_distances(column: pa.Array, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The distance of each vector, NaN for one that is missing or has no direction."""
    rows = matrix(column)
    found = np.empty(len(rows), dtype=np.float32)
    wanted = query.astype(np.float64)
    own = float(np.sqrt(np.einsum("i,i->", wanted, wanted)))
    for start in range(0, len(rows), CHUNK_ROWS):
        part = rows[start : start + CHUNK_ROWS].astype(np.float64)
        size = np.sqrt(np.einsum("ij,ij->i", part, part)) * own
        with np.errstate(divide="ignore", invalid="ignore"):
            similarity = np.clip(np.einsum("ij,j->i", part, wanted) / size, -1.0, 1.0)
        found[start : start + CHUNK_ROWS] = np.where(size > 0, 1.0 - similarity, np.nan)
    if column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return found


def best_candidates(
    rows: npt.NDArray[np.float32], sizes: npt.NDArray[np.float64], query: npt.NDArray[np.float32], count: int
) -> npt.NDArray[np.int64]:
    """Places that are sure to include the `count` nearest vectors, found at 32-bit width.

    The margin is far wider than the rounding of a 32-bit product, so that the exact distances decide.
    """
    own = float(np.linalg.norm(query.astype(np.float64)))
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = 1.0 - np.einsum("ij,j->i", rows, query) / (sizes * own)
    distances[~(sizes > 0)] = np.inf
    finite = int(np.count_nonzero(np.isfinite(distances)))
    if finite <= count:
        return np.flatnonzero(np.isfinite(distances)).astype(np.int64)
    worst = np.partition(distances, count - 1)[count - 1]
    margin = 1e-6 * np.sqrt(len(query)) + 1e-5
    return np.flatnonzero(distances <= worst + margin).astype(np.int64)
