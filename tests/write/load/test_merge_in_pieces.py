"""Merging loads of several pieces: matched together with the committed rows, and each row still itself."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import ValidationFailed
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.write.committed import CommittedRows
from omnigraph.write.load import load_merge
from omnigraph.write.load.load import load

SCHEMA = """
node Item { slug: String @key  size: I32?  title: String  kind: String @default("plain") }
node Shape { slug: String @key  outline: Vector(64)? }
"""


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    return create_store(str(tmp_path / "graph.omni"), SCHEMA)


def write(folder: Path, number: int, records: list[dict[str, Any]], type_: str = "Item") -> None:
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps({"type": type_, "data": record}) + "\n" for record in records)
    (folder / f"{number:02d}.jsonl").write_text(text)


def stored(store: GraphStore) -> dict[str, dict[str, Any]]:
    pin = store.snapshot().pin("node:Item")
    found = store.tables.scan_table(table_of(pin), with_row_id=True).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row for row in found}


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ids were asked for in each look-up of rows."""
    counts: list[int] = []
    rows_with = CommittedRows.rows_with

    def counted(self: CommittedRows, table_key: str, column: str, values: pa.Array, *others: Any, **named: Any) -> Any:
        counts.append(len(values))
        return rows_with(self, table_key, column, values, *others, **named)

    monkeypatch.setattr(CommittedRows, "rows_with", counted)
    return counts


@pytest.mark.parametrize("most", [1, 7, 1_000_000])
def test_pieces_come_out_as_records_one_after_the_other(
    store: GraphStore, tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_merge, "MATCHED_ROWS", most)
    chosen = random.Random(most)
    load(
        store,
        [{"type": "Item", "data": {"slug": f"s{n}", "size": n, "title": f"t{n}"}} for n in range(40)],
        mode="append",
    )
    before = stored(store)
    expected = {slug: {name: row[name] for name in ("slug", "size", "title", "kind")} for slug, row in before.items()}
    for number in range(8):
        records = []
        for _ in range(chosen.randrange(12)):
            slug = f"s{chosen.randrange(60)}"
            record: dict[str, Any] = {"slug": slug, "title": f"n{chosen.randrange(3)}"}
            if chosen.random() < 0.5:
                record["size"] = chosen.choice([None, 1, 2])
            if chosen.random() < 0.3:
                record["kind"] = "odd"
            records.append(record)
            expected.setdefault(slug, {"slug": slug, "size": None, "kind": "plain"}).update(record)
        write(tmp_path / "in", number, records)
    load(store, tmp_path / "in", mode="merge")
    after = stored(store)
    assert {slug: {name: row[name] for name in expected[slug]} for slug, row in after.items()} == expected
    assert {slug: after[slug]["_rowid"] for slug in before} == {slug: row["_rowid"] for slug, row in before.items()}


def test_pieces_are_looked_up_and_written_together(store: GraphStore, tmp_path: Path, looked_up: list[int]) -> None:
    write(tmp_path / "first", 0, [{"slug": f"s{n}", "title": "old"} for n in range(60)])
    load(store, tmp_path / "first", mode="append")
    for number in range(6):
        write(tmp_path / "in", number, [{"slug": f"s{10 * number + n}", "title": "new"} for n in range(10)])
    looked_up.clear()
    load(store, tmp_path / "in", mode="merge")
    assert looked_up == [10, 60]  # the first ones tell how large rows are
    assert {row["title"] for row in stored(store).values()} == {"new"}
    pin = store.snapshot().pin("node:Item")
    assert len(store.tables.handles.at(table_of(pin)).get_fragments()) == 1


def test_long_rows_are_looked_up_few_at_a_time(
    store: GraphStore, tmp_path: Path, looked_up: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors that a record does not mention are read nevertheless."""
    monkeypatch.setattr(load_merge, "MATCHED_BYTES", 20 * 4 * 64)
    shapes = [{"slug": f"s{n}", "outline": [float(n)] * 64} for n in range(60)]
    write(tmp_path / "first", 0, shapes, "Shape")
    load(store, tmp_path / "first", mode="append")
    for number in range(6):
        write(tmp_path / "in", number, [{"slug": f"s{10 * number + n}"} for n in range(10)], "Shape")
    looked_up.clear()
    load(store, tmp_path / "in", mode="merge")
    assert looked_up == [10, *([10] * 6)]


def test_a_violation_of_a_later_piece_names_its_own_file(store: GraphStore, tmp_path: Path) -> None:
    for number in range(3):
        records: list[dict[str, Any]] = [{"slug": f"s{number}{n}", "title": "x"} for n in range(4)]
        if number == 2:
            del records[3]["title"]
        write(tmp_path / "in", number, records)
    files = set((tmp_path / "graph.omni").rglob("*.lance"))
    with pytest.raises(ValidationFailed) as failed:
        load(store, tmp_path / "in", mode="merge")
    (violation,) = failed.value.violations
    assert (Path(str(violation.source)).name, violation.record) == ("02.jsonl", 4)
    assert set((tmp_path / "graph.omni").rglob("*.lance")) == files
