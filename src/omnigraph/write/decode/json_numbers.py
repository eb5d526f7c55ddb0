"""Numbers that Arrow's JSON reader has changed in silence: found by what it made of them, and by the text they were.

Arrow reads a whole number into a float column as the nearest float, and a decimal that is too small as zero. Such
values are few and far from others, so only their lines are looked at as text.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.catalog import GraphType
from omnigraph.schema.types import FLOATS, ListType, PropertyType, Scalar, ScalarType, VectorType

_EXACT = {Scalar.F32: 2.0**24, Scalar.F64: 2.0**53}
"""Up to here every whole number is a float of the width."""

_LONG_WHOLE = {Scalar.F32: r"[^0-9.eE+-]-?[0-9]{8,}[^0-9.eE]", Scalar.F64: r"[^0-9.eE+-]-?[0-9]{16,}[^0-9.eE]"}
_MANY_ZEROS = 300
_TINY = rf"[1-9][0-9.]*[eE]-[0-9]{{3}}|0{{{_MANY_ZEROS}}}"


def are_exact(type_: GraphType, columns: dict[str, pa.ChunkedArray], lines: pa.Array) -> bool:
    """Whether every float that Arrow read is surely the nearest one to what its line says."""
    for property_ in type_.properties:
        scalar = _float_of(property_.type)
        column = columns.get(property_.name)
        if scalar is None or column is None or column.null_count == len(column):
            continue
        large, zero = _suspects(column, scalar)
        if _says(lines, large, _LONG_WHOLE[scalar]) or _says_tiny(lines, zero):
            return False
    return True


def _float_of(type_: PropertyType) -> Scalar | None:
    match type_:
        case ScalarType(scalar=scalar) | ListType(item=scalar) if scalar in FLOATS:
            return scalar
        case VectorType():
            return Scalar.F32
    return None


def _suspects(column: pa.ChunkedArray, scalar: Scalar) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The rows with a number that a whole one may have been rounded to, and those with a zero; None for no row."""
    rows: np.ndarray | None = None
    if pa.types.is_list(column.type):
        parts = [(pc.list_parent_indices(chunk), len(chunk)) for chunk in column.chunks]
        starts = np.cumsum([0, *(length for _, length in parts)])
        rows = np.concatenate([np.asarray(found) + start for (found, _), start in zip(parts, starts)])
        column = pc.list_flatten(column)
    numbers = pc.fill_null(column, 1.0).to_numpy()
    return _rows_where(np.abs(numbers) >= _EXACT[scalar], rows), _rows_where(numbers == 0, rows)


def _may_be_tiny(lines: pa.Array) -> bool:
    """Whether a line can hold a number that is as good as zero: with an exponent, or with very many zeros."""
    return bool(
        (pc.max(pc.binary_length(lines)).as_py() or 0) > _MANY_ZEROS
        or pc.any(pc.match_substring(lines, "e-")).as_py()
        or pc.any(pc.match_substring(lines, "E-")).as_py()
    )


def _rows_where(mask: np.ndarray, rows: np.ndarray | None) -> np.ndarray | None:
    if not mask.any():
        return None
    found = np.flatnonzero(mask)
    return found if rows is None else np.unique(rows[found])


def _says(lines: pa.Array, rows: np.ndarray | None, pattern: str) -> bool:
    if rows is None:
        return False
    return bool(pc.any(pc.match_substring_regex(lines.take(pa.array(rows)), pattern)).as_py())


def _says_tiny(lines: pa.Array, zeros: np.ndarray | None) -> bool:
    """Whether a line that was read as a zero says a number that is none. Few are zero, so only those are looked at."""
    if zeros is None:
        return False
    told = lines.take(pa.array(zeros))
    return _may_be_tiny(told) and bool(pc.any(pc.match_substring_regex(told, _TINY)).as_py())
