"""Keys of a frame write go through the store when they are many, and never twice through the driver."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.spark.source import staged_keys
from omnigraph.spark.source.staged_keys import StagedKeys, clear_keys, fetch_keys
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root


def test_few_keys_are_told_and_many_are_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_keys, "PIECE_BYTES", 100_000)
    objects = open_objects(parse_root(str(tmp_path)))
    given = []
    for task, rows in enumerate((3, 40_000)):
        keys = StagedKeys(str(tmp_path), "__staging/w.json", f"{task:06d}-9")
        for start in range(0, rows, 10_000):
            keys.put(pa.table({"id": [f"{task}-{n}" for n in range(start, min(rows, start + 10_000))]}))
        given.append(keys.finish())
    (few, nowhere), (none, put) = given
    assert (len(few), nowhere, none, len(put)) == (1, [], [], 3)
    assert [entry.path for entry in objects.list("__staging")] == put
    found = fetch_keys(objects, given, tmp_path)
    assert found is not None
    assert found["id"].to_pylist() == [*(f"0-{n}" for n in range(3)), *(f"1-{n}" for n in range(40_000))]
    clear_keys(objects, "__staging/w.json")
    assert list(objects.list("__staging")) == []


def test_a_task_without_rows_has_no_keys(tmp_path: Path) -> None:
    assert StagedKeys(str(tmp_path), "__staging/w.json", "0-0").finish() == ([], [])
    assert fetch_keys(open_objects(parse_root(str(tmp_path))), [([], [])], tmp_path) is None
