"""Keys of a frame write: few are told, many go through the store, and all are checked in buckets by the commit."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.schema.catalog import GraphType
from omnigraph.spark.load.load_messages import Kind, LoadContext, keys_from_bytes, plain_snapshot
from omnigraph.spark.source.keys import key_check, staged_keys
from omnigraph.spark.source.keys.key_check import check_keys
from omnigraph.spark.source.keys.key_parts import PARTS
from omnigraph.spark.source.keys.staged_keys import KeysOfTask, StagedKeys, clear_keys, few_messages, put_messages
from omnigraph.write.load.load import load
from omnigraph.write.load.load_keys import key_schema

SCHEMA = """
node Person { slug: String @key  mail: String? @unique }
edge Knows: Person -> Person { @unique(src, dst) }
"""
MARK = "__staging/w.json"


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    made = create_store(str(tmp_path / "graph.omni"), SCHEMA)
    load(made, [{"slug": f"p{n}", "mail": f"p{n}@x"} for n in range(200)], mode="append", type="Person")
    return made


def context_of(store: GraphStore, type_name: str, mode: str = "append") -> tuple[LoadContext, GraphType]:
    snapshot = store.snapshot()
    catalog = store.catalog(snapshot.schema_digest)
    type_ = catalog.table(type_name)
    assert type_ is not None
    lines = {type_name: table_of(snapshot.pin(type_name))}
    return LoadContext(store.uri, catalog, plain_snapshot(snapshot), lines, mode, 1), type_


def keys_table(type_: GraphType, rows: list[dict[str, Any]], source: str, first: int) -> pa.Table:
    placed = [{**row, "__source": source, "__record": first + number} for number, row in enumerate(rows)]
    schema = key_schema(type_)
    return pa.table([pa.array([row.get(field.name) for row in placed], field.type) for field in schema], schema=schema)


def staged(
    context: LoadContext, type_: GraphType, tasks: list[list[dict[str, Any]]], own_ids: bool = True
) -> list[KeysOfTask]:
    told = []
    for number, rows in enumerate(tasks):
        keys = StagedKeys(context, type_, MARK, number, attempt=9)
        for start in range(0, len(rows), 500):
            keys.put(keys_table(type_, rows[start : start + 500], f"task {number}", start + 1), own_ids=own_ids)
        told.append(keys.finish())
    return told


def people(numbers: range) -> list[dict[str, Any]]:
    return [{"id": f"q{n}", "mail": f"q{n}@x"} for n in numbers]


def test_few_keys_are_told_and_many_are_put(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_keys, "PIECE_BYTES", 40_000)
    context, type_ = context_of(store, "node:Person")
    few, many, none = staged(context, type_, [people(range(3)), people(range(10, 6000)), []])
    assert (len(few.few), few.pieces, many.few, none) == (1, [], [], KeysOfTask(2))
    assert len(many.pieces) > 2
    assert [entry.path for entry in store.objects.list("__staging")] == [piece.path for piece in many.pieces]
    clear_keys(store.objects, MARK)
    assert list(store.objects.list("__staging")) == []
    assert list(Path(store.uri, "__staging").glob("*")) == [], "a folder for each write would stay for ever"


def test_every_key_is_in_one_part(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_keys, "PIECE_BYTES", 40_000)
    context, type_ = context_of(store, "node:Person")
    told = staged(context, type_, [people(range(3)), people(range(10, 3000))])
    schema = pa.schema([field for field in key_schema(type_) if field.name in ("id", "__source", "__record")])
    found = list(few_messages(context, type_, told))
    for half in (range(0, PARTS, 2), range(1, PARTS, 2)):
        parts = {("node:Person/own", part) for part in half}
        chosen = [message for task in told for message in put_messages(store.objects, task, parts)]
        assert {(message.subject, message.bucket) for message in chosen} == parts
        found += chosen
    ids = [(message.bucket, keys_from_bytes(message.payload, schema)) for message in found if message.kind is Kind.IDS]
    assert sorted(name for _, keys in ids for name in keys["id"].to_pylist()) == sorted(
        row["id"] for row in [*people(range(3)), *people(range(10, 3000))]
    )
    where = {name: bucket for bucket, keys in ids for name in keys["id"].to_pylist()}
    assert all(where[name] == bucket for bucket, keys in ids for name in keys["id"].to_pylist())
    assert set(where.values()) == set(range(PARTS))


def test_a_bucket_is_one_stretch_of_each_piece(store: GraphStore) -> None:
    context, type_ = context_of(store, "node:Person")
    (told,) = staged(context, type_, [people(range(4000))])
    for buckets in (2, 16, PARTS):
        order = [entry.part % buckets for entry in told.pieces[0].entries]
        changes = sum(before != after for before, after in itertools.pairwise(order))
        assert changes == len(set(order)) - 1


@pytest.mark.parametrize("small", [False, True], ids=["one bucket", "many buckets"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_is_what_a_plain_count_finds(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch, small: bool, seed: int
) -> None:
    if small:
        monkeypatch.setattr(staged_keys, "PIECE_BYTES", 20_000)
        monkeypatch.setattr(staged_keys, "FEW_BYTES", 2_000)
        monkeypatch.setattr(key_check, "BUCKET_BYTES", 4_000)
    draw = random.Random(seed)
    context, type_ = context_of(store, "node:Person")
    tasks = [
        [{"id": f"q{draw.randrange(3000)}", "mail": f"m{draw.randrange(5000)}"} for _ in range(draw.choice([5, 700]))]
        for _ in range(3)
    ]
    taken = draw.sample(range(250), 10)
    tasks.append([{"id": f"p{draw.randrange(250)}", "mail": f"p{number}@x"} for number in taken])
    wanted: Counter[str] = Counter()
    ids, mails = Counter[str](), Counter[str]()
    known = {f"p{n}" for n in range(200)}
    for row in (row for rows in tasks for row in rows):
        wanted["duplicate_id"] += ids[row["id"]] > 0
        ids[row["id"]] += 1
        mails[row["mail"]] += 1
    wanted["existing_id"] = sum(number for name, number in ids.items() if name in known)
    reports = check_keys(store.objects, context, type_, staged(context, type_, tasks))
    found: Counter[str] = Counter()
    for report in reports:
        found.update(report.violations.counts)
    wanted["unique"] = sum(number - 1 for number in mails.values()) + sum(number < 200 for number in taken)
    assert found == +wanted
    assert (len(reports) > 2) is small


def test_ends_that_are_missing_are_found_in_every_bucket(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_keys, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(key_check, "BUCKET_BYTES", 4_000)
    context, type_ = context_of(store, "edge:Knows")
    rows = [{"src": f"p{n % 200}", "dst": f"p{n // 200}" if n % 97 else "nobody"} for n in range(3000)]
    reports = check_keys(store.objects, context, type_, staged(context, type_, [rows[:1500], rows[1500:]], False))
    found = [violation for report in reports for violation in report.violations.violations]
    assert sum(report.violations.counts.get("missing_endpoint", 0) for report in reports) == 31
    assert {(one.source, one.record) for one in found if one.kind == "missing_endpoint"} <= {
        (f"task {n // 1500}", n % 1500 + 1) for n in range(0, 3000, 97)
    }
    assert frozenset().union(*(report.reads for report in reports)) >= {"node:Person", "edge:Knows"}
