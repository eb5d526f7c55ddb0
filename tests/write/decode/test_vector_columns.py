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
LISTS = [pa.list_(pa.field("element", pa.float32())), pa.large_list(pa.float32()), pa.list_(pa.float32(), 2)]


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


@pytest.mark.parametrize("type_", LISTS[:2], ids=str)
def test_a_list_of_another_length_is_told_with_its_record(type_: pa.DataType) -> None:
    found = ViolationCollector()
    decoded([[1.0, 2.0], [1.0, 2.0, 3.0]], type_, found)
    with pytest.raises(ValidationFailed) as refused:
        found.raise_if_any("the load")
    assert [violation.record for violation in refused.value.violations] == [2]
