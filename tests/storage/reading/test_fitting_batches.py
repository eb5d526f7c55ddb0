"""Rows so large that a batch of the usual number of them does not exist are read in smaller ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.storage.reading.fitting_batches import pieces
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root

LARGE = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("note", pa.string())])


@pytest.mark.slow
def test_more_text_than_a_column_can_hold_is_read_in_parts(tmp_path: Path) -> None:
    tables = TableStore(parse_root(tmp_path))
    notes = pa.array(["x" * (64 << 20)] * 12)
    wanted = [f"p{number:02d}" for number in range(36)]
    rows = pa.table([pa.array(wanted), pa.chunked_array([notes] * 3)], schema=LARGE)
    table = tables.create("nodes/n1", LARGE, rows=rows)
    assert [id_ for batch in tables.scan(table) for id_ in batch["id"].to_pylist()] == wanted
    limited = tables.scan(table, offset=1, limit=34, batch_size=100)
    assert [id_ for batch in limited for id_ in batch["id"].to_pylist()] == wanted[1:35]


def test_a_large_batch_is_handed_on_in_pieces() -> None:
    batch = pa.record_batch({"id": [f"p{n}" for n in range(10)], "note": ["x" * 1000] * 10})
    cut = list(pieces(batch, 3000))
    assert [piece.num_rows for piece in cut] == [3, 3, 3, 1]
    assert pa.Table.from_batches(cut) == pa.Table.from_batches([batch])
    assert [piece.num_rows for piece in pieces(batch, 1 << 20)] == [10]
    assert [piece.num_rows for piece in pieces(batch.slice(0, 1), 10)] == [1]
    assert [piece.num_rows for piece in pieces(batch.slice(0, 0), 10)] == [0]
