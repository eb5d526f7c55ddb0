"""Unsigned integers of 64 bits, which Spark hands over as decimals, are whole numbers again; no value is changed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.spark.load.load_input import as_stored

U64 = pa.decimal128(20, 0)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.array([Decimal(2**64 - 1), None], U64), pa.uint64()),
        (pa.array([[Decimal(0), Decimal(2**64 - 1)], None], pa.list_(U64)), pa.list_(pa.uint64())),
        (pa.array([Decimal(-1)], U64), U64),
        (pa.array([[Decimal(-1)]], pa.list_(U64)), pa.list_(U64)),
        (pa.array([Decimal(10**30)], pa.decimal128(38, 0)), pa.decimal128(38, 0)),
        (pa.array([Decimal("0.5")], pa.decimal128(3, 1)), pa.decimal128(3, 1)),
    ],
)
def test_decimals_become_whole_numbers_where_all_of_them_are(given: Any, stored: pa.DataType) -> None:
    found = as_stored(pa.RecordBatch.from_arrays([given], names=["n"])).column(0)
    assert found.type == stored
    assert found.to_pylist() == given.to_pylist()
