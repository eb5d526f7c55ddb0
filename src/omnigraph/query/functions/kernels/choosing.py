"""`coalesce`, `least`, `greatest`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.functions.kernels.arguments import columns, fit


def coalesce(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The first value that is not null."""
    chosen, *rest = (fit(column, result) for column in columns(args))
    for column in rest:
        if not chosen.null_count:
            break
        chosen = pc.if_else(pc.is_valid(chosen), chosen, column)
    return chosen


def least(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The smallest value that is not null; NaN is the greatest number."""
    return _extreme(args, result, "<")


def greatest(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The greatest value that is not null."""
    return _extreme(args, result, ">")


def _extreme(args: Sequence[Any], result: pa.DataType, sign: str) -> pa.Array:
    from omnigraph.query.evaluate.comparisons import compare
    from omnigraph.query.ir import CompareOp

    chosen, *rest = (fit(column, result) for column in columns(args))
    for column in rest:
        better = compare(CompareOp(sign), column, chosen)
        take = pc.or_(pc.is_null(chosen), pc.fill_null(better, False))
        chosen = pc.if_else(pc.and_(take, pc.is_valid(column)), column, chosen)
    return chosen
