"""Loads that are batches of a stream: each once, also across merges, branches, maintenance and other processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.errors import BadRequest, KeyConflict, ValidationFailed
from omnigraph.failpoints import active
from omnigraph.ledger.values import StreamBatch
from omnigraph.write.load.load_batch import load_batch

SCHEMA = """
node Person { slug: String @key  age: I32?  email: String? @unique  @range(age, 0..150) }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g.omni", schema=SCHEMA)


def put(graph: og.Graph, number: int, slug: str, **options: Any) -> bool:
    """Load one person as a batch; whether it was skipped."""
    return graph.load([{"slug": slug}], mode="append", type="Person", batch=("s", number), **options).skipped


def test_a_batch_that_is_there_is_skipped_whatever_happened_since(graph: og.Graph) -> None:
    assert [put(graph, n, f"p{n}") for n in (0, 1, 1, 0, 3, 2)] == [False, False, True, True, False, True]
    assert [commit.about for commit in graph.log(limit=3)] == [f"batch {n} of stream s" for n in (3, 1, 0)]
    graph.branch_create("b")
    assert put(graph, 3, "again", branch="b"), "a branch has what it was made from"
    assert not put(graph, 4, "p4", branch="b")
    assert not put(graph, 4, "main has it not", if_commit=graph.head().graph_commit_id)
    graph.restore(graph.log()[-1].graph_commit_id)
    assert put(graph, 4, "undone on purpose")
    graph.mutate('query q() { insert Person { slug: "other" } }')
    graph.apply_schema(SCHEMA.replace("edge Knows", "node Place { name: String }\nedge Knows"))
    graph.optimize()
    with override(cleanup_grace=0.0):
        graph.cleanup(keep_versions=3, confirm=True)
    assert put(graph, 4, "nothing of that is a reason")
    graph.close()
    with og.open(graph.uri) as reopened:
        assert put(reopened, 4, "nor is that")
        assert not reopened.load([{"slug": "z"}], mode="append", type="Person", batch=("other", 4)).skipped
        assert reopened.verify().ok


@pytest.mark.parametrize("moved", [False, True], ids=["fast forward", "merge"])
def test_a_merge_brings_the_batches_of_its_source(graph: og.Graph, moved: bool) -> None:
    graph.branch_create("b")
    assert not put(graph, 0, "p0", branch="b")
    if moved:
        graph.mutate('query q() { insert Person { slug: "other" } }')
    graph.merge("b")
    assert put(graph, 0, "p0")
    assert not put(graph, 1, "p1")
    assert put(graph, 1, "p1")


def test_a_batch_that_another_process_brings_meanwhile_is_skipped(graph: og.Graph) -> None:
    class Racing(list[dict[str, Any]]):
        def __iter__(self) -> Any:
            if not raced:
                raced.append(put(other, 0, "p0"))
            return super().__iter__()

    raced: list[bool] = []
    with og.open(graph.uri) as other:
        rows = Racing([{"slug": "p0"}])
        assert graph.load(rows, mode="append", type="Person", batch=("s", 0)).skipped
    assert raced == [False]
    assert graph.snapshot().pin("node:Person").row_count == 1


def test_a_batch_without_a_change_makes_no_commit(graph: og.Graph) -> None:
    head = graph.head()
    assert graph.load([], mode="append", type="Person", batch=("s", 0)).commit is None
    assert graph.head() == head


@pytest.mark.parametrize("batch", [("s", -1), ("", 1), ("s", True), ("s", "1"), "s1", ("s",)])
def test_what_is_no_batch_is_refused(graph: og.Graph, batch: Any) -> None:
    with pytest.raises(BadRequest, match="is no batch of a stream"):
        graph.load([], mode="append", type="Person", batch=batch)


def lines_file(tmp_path: Path, records: list[Any]) -> Path:
    file = tmp_path / "batch.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def person(slug: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"slug": slug, **data}}


def test_bad_records_go_to_their_place_and_the_rest_is_loaded(graph: og.Graph, tmp_path: Path) -> None:
    good = [person(f"g{n}", age=n % 100) for n in range(200)]
    bad: list[Any] = [person(f"b{n}", age=1000 + n) for n in range(150)]
    bad += [person("g1"), {"type": "Persn"}, "not json", None, person("x", colour="red")]
    chain = [{"edge": "Knows", "from": "g1", "to": f"b{n}"} for n in range(20)]
    file = lines_file(tmp_path, [*bad[:75], *good[:100], *chain, *bad[75:], *good[100:]])
    store = graph._store
    result = load_batch(store, file, StreamBatch("s/1", 7), mode="append", bad_records=str(tmp_path / "letters"))
    assert result.load.rows_loaded == len(good)
    assert graph.snapshot().pin("node:Person").row_count == len(good)
    assert graph.snapshot().pin("edge:Knows").row_count == 0
    letters = [json.loads(line) for line in (tmp_path / "letters/s%2F1/batch-000000007.jsonl").read_text().splitlines()]
    assert result.bad_records == len(letters) == len(bad) + len(chain)
    assert {(letter["stream"], letter["batch"]) for letter in letters} == {("s/1", 7)}
    sent = [json.dumps(record) for record in bad if not isinstance(record, str)] + [json.dumps(edge) for edge in chain]
    assert sorted(letter["record"] for letter in letters) == sorted([*sent, "not json"])
    kinds = {reason["kind"] for letter in letters for reason in letter["reasons"]}
    assert kinds == {
        "range",
        "duplicate_id",
        "unknown_type",
        "malformed_record",
        "unknown_property",
        "missing_endpoint",
    }
    assert all(letter["reasons"][0]["message"] for letter in letters)
    again = load_batch(store, file, StreamBatch("s/1", 7), mode="append", bad_records=str(tmp_path / "letters"))
    assert again.load.skipped


def test_bad_rows_of_columns(graph: og.Graph, tmp_path: Path) -> None:
    table = pa.table({"slug": ["a", "b", "c", None], "age": [1, 151, 3, 4], "email": ["x", "y", "x", None]})
    file = tmp_path / "batch.arrow"
    with pyarrow.ipc.new_file(str(file), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    letters = tmp_path / "letters"
    result = load_batch(graph._store, file, StreamBatch("s", 0), mode="merge", type="Person", bad_records=str(letters))
    assert (result.load.rows_loaded, result.bad_records) == (1, 3)
    found = [json.loads(line) for line in (letters / "s/batch-000000000.jsonl").read_text().splitlines()]
    assert sorted((letter["record"]["slug"] or "", letter["reasons"][0]["kind"]) for letter in found) == [
        ("", "missing_key"),
        ("b", "range"),
        ("c", "unique"),
    ]


def test_letters_of_an_attempt_that_did_not_come_through_are_forgotten(graph: og.Graph, tmp_path: Path) -> None:
    file = lines_file(tmp_path, [person("a", age=200), person("b")])
    letters = tmp_path / "letters"
    how: Any = {"mode": "append", "bad_records": str(letters)}
    with active("batch.letters_written", "raise"), pytest.raises(Exception, match="failpoint"):
        load_batch(graph._store, file, StreamBatch("s", 0), **how)
    assert len(list(letters.rglob("*.jsonl"))) == 1
    graph.apply_schema(SCHEMA.replace("150", "250"))
    assert load_batch(graph._store, file, StreamBatch("s", 0), **how).bad_records == 0
    assert list(letters.rglob("*.jsonl")) == []


def test_without_a_place_for_them_bad_records_refuse_the_batch(graph: og.Graph, tmp_path: Path) -> None:
    file = lines_file(tmp_path, [person("a"), person("b", age=200)])
    with pytest.raises(ValidationFailed, match=r"^batch 3 of stream s breaks rules.*\n  input, record 2: ") as refused:
        load_batch(graph._store, file, StreamBatch("s", 3), mode="append")
    assert str(tmp_path) not in str(refused.value)
    load_batch(graph._store, lines_file(tmp_path, [person("a")]), StreamBatch("s", 3), mode="append")
    with pytest.raises(KeyConflict, match="batch 4 of stream s"):
        load_batch(graph._store, file, StreamBatch("s", 4), mode="append", branch="main")
