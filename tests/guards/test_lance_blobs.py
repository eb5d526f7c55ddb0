"""Whether Lance compacts tables with blobs right: optimize leans on it, and skips such tables where it does not."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
from lance.blob import blob_array, blob_field
from lance.optimize import Compaction

from omnigraph.storage.layout.compaction import LANCE_COMPACTS_BLOBS

SMALL, LARGE = 10, 200_000


def test_blobs_survive_a_compaction_byte_for_byte(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.string()), blob_field("body")])
    path = str(tmp_path / "t")
    bodies = {f"r{number}": bytes([number]) * (SMALL if number % 2 else LARGE) for number in range(6)}
    for name, body in bodies.items():
        row = pa.table({"id": [name], "body": blob_array([body])}, schema=schema)
        lance.write_dataset(row, path, mode="append", data_storage_version="2.2", enable_stable_row_ids=True)
    table = lance.dataset(path)
    table.delete("id = 'r1'")
    table = lance.dataset(path)
    Compaction.commit(lance.dataset(path), [task.execute(table) for task in Compaction.plan(table, {}).tasks])
    after = lance.dataset(path)
    assert len(after.get_fragments()) == 1
    rows = after.scanner(blob_handling="all_binary").to_table().to_pylist()
    found = {row["id"]: row["body"] for row in rows}
    expected = {name: body for name, body in bodies.items() if name != "r1"}
    assert (found == expected) is LANCE_COMPACTS_BLOBS
