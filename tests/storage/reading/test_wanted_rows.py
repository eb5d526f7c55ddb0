"""Rows of a stream that are among very many wanted ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.storage.reading import wanted_rows
from omnigraph.storage.reading.wanted_rows import in_parts, members

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


def stream(batches: int, rows: int) -> pa.RecordBatchReader:
    def made(number: int) -> pa.RecordBatch:
        numbers = range(number * rows, (number + 1) * rows)
        return pa.record_batch([[f"p{n}" for n in numbers], list(numbers)], schema=SCHEMA)

    return pa.RecordBatchReader.from_batches(SCHEMA, (made(number) for number in range(batches)))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanted_rows, "_FEWEST_ROWS", 1)


def sizes(batches: int, rows: int, wanted: int) -> list[int]:
    return [part.num_rows for part in in_parts(stream(batches, rows), wanted)]


def test_small_rows_are_tested_in_parts_of_several_times_as_many_as_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sizes(10, 4, 2) == [16, 16, 8]
    monkeypatch.setattr(wanted_rows, "SCANNED_PART_BYTES", 1)
    assert sizes(10, 4, 2) == [4] * 10
    assert sizes(10, 4, 10) == [12, 12, 12, 4]


@pytest.mark.parametrize("most_bytes", [1, 1 << 20])
def test_every_wanted_row_is_found_once(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    monkeypatch.setattr(wanted_rows, "SCANNED_PART_BYTES", most_bytes)
    found = members(stream(10, 7), "id", pa.array(["p0", "p6", "p7", "p69", "nobody"]))
    assert found["n"].to_pylist() == [0, 6, 7, 69]
    assert members(stream(0, 1), "id", pa.array(["p0"])).schema == SCHEMA
