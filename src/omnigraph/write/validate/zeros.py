"""The two zeros of floats: one value wherever values are compared, though their bits differ.

Hashes and dictionaries look at bits, so columns of floats go through here before rows are told apart by their values.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def one_zero(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """The column with `0.0` for `-0.0`; columns of other types as they are."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def with_both_zeros(values: pa.Array) -> pa.Array:
    """Values to look rows up by: both zeros where there is one of them."""
    if not pa.types.is_floating(values.type) or not pc.any(pc.equal(values, 0)).as_py():
        return values
    others = values.filter(pc.not_equal(values, 0))
    return pa.concat_arrays([others, pa.array([0.0, -0.0], values.type)])
