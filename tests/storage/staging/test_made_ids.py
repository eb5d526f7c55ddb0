"""Ids that are made here take less room than by Lance's own choice, whatever writes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from omnigraph.schema.arrow import MADE_HERE_METADATA
from omnigraph.storage.staging.distributed import write_fragments
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.write.rows.ulids import new_ulids

ROWS = 100_000
PLAIN = pa.schema([pa.field("id", pa.string(), nullable=False)])
PACKED = pa.schema([pa.field("id", pa.string(), nullable=False, metadata=MADE_HERE_METADATA)])


def room(root: Path, location: str) -> int:
    return sum(file.stat().st_size for file in (root / location / "data").glob("*.lance"))


def test_they_take_less_room_by_every_way_of_writing(tmp_path: Path) -> None:
    tables = TableStore(parse_root(str(tmp_path)))
    ids = new_ulids(ROWS)
    rows = pa.table([ids], schema=PLAIN)
    plain, staged, spread = (
        tables.create(f"edges/{name}", schema) for name, schema in zip("abc", (PLAIN, PACKED, PACKED))
    )
    tables.commit_staged(tables.stage_append(plain, rows), "plain")
    version = tables.commit_staged(tables.stage_append(staged, rows), "staged")
    write_fragments(tables.write_target(spread), rows, PLAIN)
    assert room(tmp_path, "edges/b") < 0.9 * room(tmp_path, "edges/a")
    assert room(tmp_path, "edges/c") < 0.9 * room(tmp_path, "edges/a")
    found = tables.scan(version).read_all()
    assert found["id"].combine_chunks() == ids
