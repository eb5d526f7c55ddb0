"""Keys that are put aside for the tasks that check them come back as they were, are checked, and leave nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import ValidationFailed
from omnigraph.ledger.store import create_store
from omnigraph.spark.load.key_shelf import FEW_BYTES, KeyFile, runs_here
from omnigraph.spark.load.load_messages import keys_from_bytes, keys_to_bytes
from omnigraph.write.validate.key_changes import RECORD, SOURCE

SCHEMA = """
node Person { slug: String @key }
edge Knows: Person -> Person
"""
KEYS = pa.schema([("id", pa.string()), (SOURCE, pa.dictionary(pa.int32(), pa.string())), (RECORD, pa.int64())])
PEOPLE = 40_000
"""Keys of so many are beyond what travels with a message."""


def keys(count: int, name: str) -> pa.Table:
    ids = pa.array([f"{name}-{n}" for n in range(count)])
    source = pa.array([name] * count).dictionary_encode()
    return pa.table([ids, source, pa.array(range(count), pa.int64())], schema=KEYS)


def test_tables_of_one_file_come_back_as_they_were(tmp_path: Path) -> None:
    file = KeyFile(str(tmp_path))
    given = [keys(PEOPLE, name) for name in ("a", "ab", "abc")]
    sent = [keys_to_bytes(table, file) for table in given]
    assert all(len(payload) < 1000 for payload in sent), "the message says only where they are"
    assert len(list(tmp_path.iterdir())) == 1
    assert [keys_from_bytes(payload, KEYS).to_pylist() for payload in sent] == [table.to_pylist() for table in given]


def test_few_keys_make_no_file(tmp_path: Path) -> None:
    few = keys(100, "few")
    assert few.nbytes < FEW_BYTES
    assert keys_from_bytes(keys_to_bytes(few, KeyFile(str(tmp_path))), KEYS).to_pylist() == few.to_pylist()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[2,4]", True),
        ("local-cluster[2,1,2048]", False),
        ("spark://localhost:7077", False),
        ("yarn", False),
    ],
)
def test_only_tasks_of_one_machine_share_a_folder(master: str, here: bool) -> None:
    assert runs_here(master) is here


@pytest.mark.spark
def test_many_keys_are_checked_and_leave_nothing_behind(spark: Any, tmp_path: Path) -> None:
    from omnigraph.spark.load.load import load

    people = [{"type": "Person", "data": {"slug": f"person-{n}"}} for n in range(PEOPLE)]
    edges = [{"edge": "Knows", "from": f"person-{n}", "to": f"person-{(n * 7) % PEOPLE}"} for n in range(PEOPLE)]
    right, wrong = tmp_path / "right.jsonl", tmp_path / "wrong.jsonl"
    right.write_text("".join(json.dumps(record) + "\n" for record in [*people, *edges]))
    lost = [{"edge": "Knows", "from": "person-1", "to": "nobody"}, people[3]]
    wrong.write_text("".join(json.dumps(record) + "\n" for record in [*people, *edges, *lost]))
    store = create_store(str(tmp_path / "graph.omni"), SCHEMA)
    with pytest.raises(ValidationFailed) as refused:
        load(spark, store, str(wrong), mode="append")
    assert "nobody" in str(refused.value)
    assert str(2 * PEOPLE + 1) in str(refused.value), "the record of the edge"
    assert "person-3" in str(refused.value)
    assert _aside(spark) == []
    result = load(spark, store, str(right), mode="append")
    assert result.rows_loaded == 2 * PEOPLE
    assert result.metrics.shuffle_bytes < FEW_BYTES, "only where the keys are went through Spark"
    assert _aside(spark) == []


def _aside(spark: Any) -> list[Path]:
    return list(Path(spark.sparkContext._temp_dir).glob("omnigraph-keys-*"))
