"""Joining sets of bindings that no edge connects: on equal properties, or as a product."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.read.codes.arrays import Codes, combined, paired, ranges
from omnigraph.read.plan.steps import Equality
from omnigraph.read.state.frame import Frame
from omnigraph.read.state.run_state import Run


def combine(run: Run, left: Frame, right: Frame, on: tuple[Equality, ...]) -> Frame:
    """The product, or where properties must be equal, the pairs that agree on them."""
    if on:
        left_rows, right_rows = _matches(run, left, right, on)
    else:
        total = left.length * right.length
        run.memory.expect("the product of unrelated variables", 8 * total * (len(left.bindings) + len(right.bindings)))
        left_rows = np.repeat(np.arange(left.length, dtype=np.int64), right.length)
        right_rows = np.tile(np.arange(right.length, dtype=np.int64), left.length)
    return left.take(left_rows).joined(right.take(right_rows))


def _matches(run: Run, left: Frame, right: Frame, on: tuple[Equality, ...]) -> tuple[Codes, Codes]:
    key = np.zeros(left.length + right.length, dtype=np.int64)
    there = np.ones(len(key), dtype=bool)
    for each in on:
        values = pa.concat_arrays([combined(run.evaluate(each.left, left)), combined(run.evaluate(each.right, right))])
        encoded = values.dictionary_encode()
        valid = np.asarray(encoded.indices.is_valid().to_numpy(zero_copy_only=False))
        there &= valid
        key = paired(key, encoded.indices.fill_null(0).to_numpy().astype(np.int64))
    left_at = np.flatnonzero(there[: left.length])
    right_at = np.flatnonzero(there[left.length :])
    right_keys = key[left.length :][right_at]
    order = np.argsort(right_keys, kind="stable")
    right_keys, right_at = right_keys[order], right_at[order]
    left_keys = key[left_at]
    low = np.searchsorted(right_keys, left_keys)
    counts = np.searchsorted(right_keys, left_keys, side="right") - low
    run.memory.expect("the join of unrelated variables", 16 * int(counts.sum()))
    return np.repeat(left_at, counts), right_at[ranges(low, counts)]
