"""Orders of codes against plain Python, at every limit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.read.codes.arrays import paired
from omnigraph.read.codes.order import first_places, total_order

CODES = st.lists(st.tuples(st.integers(-3, 3), st.integers(-(2**61), 2**61)), min_size=1, max_size=30)


@given(CODES, st.integers(0, 35))
def test_the_first_rows_of_a_total_order(rows: list[tuple[int, int]], limit: int) -> None:
    keys = [np.array([row[at] for row in rows], dtype=np.int64) for at in (0, 1)]
    expected = sorted(range(len(rows)), key=lambda at: rows[at])
    whole = total_order(keys)
    assert (list(range(len(rows))) if whole is None else whole.tolist()) == expected
    found = total_order(keys, limit)
    assert (list(range(len(rows))) if found is None else found.tolist())[:limit] == expected[:limit]


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.data())
def test_no_row_that_can_be_among_the_first_is_left_out(values: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(values)))
    last = sorted(values)[count - 1] if count else None
    expected = [at for at, value in enumerate(values) if last is not None and value <= last]
    assert first_places(np.array(values, dtype=np.int64), count).tolist() == expected


@given(CODES)
def test_pairs_order_as_tuples_do(rows: list[tuple[int, int]]) -> None:
    made = paired(*(np.array([row[at] for row in rows], dtype=np.int64) for at in (0, 1)))
    assert [sorted(made.tolist()).index(code) for code in made.tolist()] == [sorted(rows).index(row) for row in rows]


def test_pairs_of_the_widest_codes_order_as_tuples_do() -> None:
    """Codes whose differences, or whose sums, no code can hold."""
    widest = [(5, 2**63 - 1), (5, -(2**63)), (5, 0)]
    high = [(0, 2**62 + 1), (0, 2**62 - 1), (0, 2**62)]
    for rows in (widest, high):
        made = paired(*(np.array([row[at] for row in rows], dtype=np.int64) for at in (0, 1)))
        assert np.argsort(made).tolist() == [1, 2, 0]
