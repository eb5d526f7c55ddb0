"""Vectors in columns of lists, as Spark, Parquet and pandas have them: whole columns at once, each fault told."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.errors import ValidationFailed
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.write.decode import frames
from omnigraph.write.decode.inputs import InputOptions, column_mapping
from omnigraph.write.validate.collector import ViolationCollector

CATALOG = compile_schema("node P { k: String @key  v: Vector(2)? }")
MAPPING = column_mapping(CATALOG, CATALOG.table("node:P"), InputOptions("P"))  # type: ignore[arg-type]
LISTS = [
    pa.list_(pa.field("element", pa.float32())),
    pa.large_list(pa.float32()),
    pa.list_(pa.float32(), 2),
    pa.list_(pa.float64()),
    pa.large_list(pa.float64()),
    pa.list_(pa.float64(), 2),
    pa.list_(pa.float16()),
]


def decoded(vectors: list[list[float] | None], type_: pa.DataType, found: ViolationCollector) -> pa.Table:
    keys = [f"p{n}" for n in range(len(vectors))]
    return frames.decode_frame(MAPPING, pa.table({"k": keys, "v": pa.array(vectors, type_)}), None, 1, found).table


@pytest.mark.parametrize("type_", LISTS, ids=str)
def test_lists_of_the_right_length_are_taken_as_a_whole(type_: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "to_value", None)
    found = ViolationCollector()
    rows = decoded([[1.0, 2.0], None, [3.0, 4.5]], type_, found)
    assert rows["v"].type == pa.list_(pa.float32(), 2)
    assert rows["v"].to_pylist() == [[1.0, 2.0], None, [3.0, 4.5]]
    assert not found


NUMBERS = compile_schema("node P { k: String @key  v: [I64]?  f: F32? }")


@pytest.mark.parametrize("given", [pa.list_(pa.int32()), pa.large_list(pa.int16()), pa.large_list(pa.int64())], ids=str)
def test_lists_of_other_numbers_are_taken_as_a_whole(given: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "to_value", None)
    mapping = column_mapping(NUMBERS, NUMBERS.table("node:P"), InputOptions("P"))  # type: ignore[arg-type]
    lists = [[9], None, [], [1, None, 3], [4]]
    table = pa.table({"k": list("zabcd"), "v": pa.array(lists, given), "f": pa.array([0.5] * 5, pa.float16())})
    # What stands before a stretch of a column is not part of it.
    rows = frames.decode_frame(mapping, table.slice(1), None, 1, ViolationCollector()).table
    assert rows["v"].type == pa.list_(pa.int64())
    assert rows["v"].to_pylist() == lists[1:]
    assert rows["f"].to_pylist() == [0.5] * 4


@pytest.mark.parametrize(("value", "why"), [(1e300, "too large"), (1e-300, "too small"), (16777217, "exactly")])
def test_a_list_with_a_number_that_would_change_is_told(value: float, why: str) -> None:
    found = ViolationCollector()
    decoded([[1, 2], [value, 2]], pa.list_(pa.int64() if isinstance(value, int) else pa.float64()), found)
    with pytest.raises(ValidationFailed, match=rf"record 2: .*{why}"):
        found.raise_if_any("the load")


@pytest.mark.parametrize("type_", LISTS[:2], ids=str)
def test_a_list_of_another_length_is_told_with_its_record(type_: pa.DataType) -> None:
    found = ViolationCollector()
    decoded([[1.0, 2.0], [1.0, 2.0, 3.0]], type_, found)
    with pytest.raises(ValidationFailed) as refused:
        found.raise_if_any("the load")
    assert [violation.record for violation in refused.value.violations] == [2]
