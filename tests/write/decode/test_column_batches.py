"""Batches of columns: all rows in order, and memory that knows neither the size of the file nor the width of a row."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import ValidationFailed
from omnigraph.write.decode import column_batches
from omnigraph.write.decode.column_batches import BYTES_PER_BATCH, bounded, open_parquet, parquet_batches


def test_a_file_takes_no_more_memory_the_longer_it_is(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    rows = pa.table({"text": [os.urandom(1 << 19).hex() for _ in range(8)]})
    with pq.ParquetWriter(path, rows.schema, use_dictionary=False) as writer:
        for _ in range(30):
            writer.write_table(rows)
    before = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() for _ in parquet_batches(open_parquet(str(path)))) - before
    assert path.stat().st_size > 3 * BYTES_PER_BATCH
    assert most < 2 * BYTES_PER_BATCH


def test_a_large_group_of_rows_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "one-group.parquet"
    texts = [os.urandom(1 << 19).hex() for _ in range(5 * (BYTES_PER_BATCH >> 20) // 2)]
    # Pages are closed where so many values were written; larger ones cannot be read in pieces by anyone.
    pq.write_table(pa.table({"text": texts}), path, use_dictionary=False, write_batch_size=4)
    del texts
    before = pa.total_allocated_bytes()
    sizes = []
    for batch in parquet_batches(open_parquet(str(path))):
        assert batch.nbytes <= BYTES_PER_BATCH
        sizes.append(pa.total_allocated_bytes() - before)
    assert len(sizes) >= 3
    assert max(sizes) < 2 * BYTES_PER_BATCH


@settings(max_examples=40, deadline=None)
@given(
    widths=st.lists(st.sampled_from([0, 1, 30, 400]), min_size=1, max_size=60),
    group=st.integers(1, 25),
    chosen=st.sampled_from([None, ["n"], ["text", "n"]]),
    which=st.sampled_from([None, [0], [-1, 0]]),
)
def test_batches_have_all_rows_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    widths: list[int],
    group: int,
    chosen: list[str] | None,
    which: list[int] | None,
) -> None:
    path = tmp_path_factory.mktemp("parquet") / "some.parquet"
    table = pa.table(
        {"n": range(len(widths)), "text": ["x" * width for width in widths], "other": [None] * len(widths)}
    )
    pq.write_table(table, path, row_group_size=group)
    file = pq.ParquetFile(path)
    groups = None if which is None else [number % file.num_row_groups for number in which]
    expected = file.read_row_groups(range(file.num_row_groups) if groups is None else groups, columns=chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_batches, "BYTES_PER_BATCH", 500)
        found = list(parquet_batches(open_parquet(str(path)), groups, chosen))
    assert pa.Table.from_batches(found, expected.schema).equals(expected)
    assert all(batch.num_rows == 1 or batch.nbytes <= 1500 for batch in found)


def test_a_batch_of_wide_rows_is_cut_and_a_batch_without_rows_is_left() -> None:
    wide = pa.RecordBatch.from_pydict({"text": ["x" * (1 << 20)] * 100})
    pieces = list(bounded([wide, wide.slice(0, 0)]))
    assert pa.Table.from_batches(pieces).equals(pa.Table.from_batches([wide]))
    assert max(piece.nbytes for piece in pieces) <= BYTES_PER_BATCH
    assert pieces[-1].num_rows == 0


def test_a_bad_record_behind_a_cut_keeps_its_number(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", schema="node D { slug: String @key  text: String }")
    texts: list[str | None] = ["x" * (1 << 20)] * 90
    texts[80] = None
    rows = pa.table({"slug": [f"d{n}" for n in range(90)], "text": texts})
    with pytest.raises(ValidationFailed) as refused:
        graph.load(rows, type="D", mode="append")
    [violation] = refused.value.violations
    assert (violation.record, violation.property) == (81, "text")
