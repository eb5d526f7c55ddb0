"""Loads in process: modes, sources, all violations at once, one commit or nothing."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import BadRequest, KeyConflict, NotFound, StorageError, ValidationFailed
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.storage.objects import open_objects
from omnigraph.storage.uri import parse_root
from omnigraph.write.load import load
from omnigraph.write.progress import Progress
from tests.write.graphs import company, edge, fill, ids, person, rows, run


def lines(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def refused(store: GraphStore, *records: Any, mode: str = "append") -> ValidationFailed:
    """The refusal of a load; it published nothing and left no file."""
    before, files = store.snapshot(), _files(store)
    with pytest.raises(ValidationFailed) as failed:
        load(store, list(records), mode=mode)
    assert store.snapshot() == before
    assert _files(store) == files
    return failed.value


def _files(store: GraphStore) -> set[str]:
    root = store.root.uri.removeprefix("file://")
    return {
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
        if "__locks" not in folder and "_deletions" not in folder
    }


# --- modes -------------------------------------------------------------------------------------------------------


def test_a_load_of_many_tables_is_one_commit(store: GraphStore):
    before = store.snapshot()
    result = fill(
        store, person("a"), company("acme"), edge("WorksAt", "a", "acme"), person("b"), edge("Knows", "a", "b")
    )
    assert result.commit is not None
    assert result.commit.parent_commit_id == before.head.graph_commit_id
    assert result.commit.kind == "Load"
    assert {table.table_key: table.rows_loaded for table in result.tables} == {
        "edge:Knows": 1,
        "edge:WorksAt": 1,
        "node:Company": 1,
        "node:Person": 2,
    }
    assert store.snapshot().head == result.commit


def test_the_result_lists_pending_indexes_and_prints_as_the_surfaces_do(store: GraphStore):
    result = fill(store, company("acme"), person("a"))
    assert [(index.table_key, index.property) for index in result.pending_indexes] == [("node:Company", "size")]
    assert (result.engine, result.rows_loaded) == ("local", 2)
    body = result.to_json()
    assert list(body)[:7] == ["uri", "branch", "base_branch", "branch_created", "mode", "tables", "commit"]
    assert body["tables"] == [
        {"table_key": "node:Company", "rows_loaded": 1},
        {"table_key": "node:Person", "rows_loaded": 1},
    ]


def test_append_refuses_an_id_that_exists(store: GraphStore):
    fill(store, person("a"), person("b"))
    with pytest.raises(KeyConflict, match='id "a" exists already; load with mode merge') as failed:
        fill(store, person("c"), person("a"))
    assert failed.value.details["violations"][0]["record"] == 2
    assert (failed.value.violations[0].record, failed.value.counts) == (2, {"existing_id": 1})
    assert failed.value.outcome.exit_code == 3
    with pytest.raises(ValidationFailed) as failed:
        fill(store, person("c", age=200), person("a"))
    assert failed.value.counts == {"range": 1, "existing_id": 1}
    assert failed.value.outcome.exit_code == 1
    assert ids(store, "node:Person") == ["a", "b"]


def test_append_refuses_an_id_that_comes_twice(store: GraphStore):
    assert refused(store, person("a"), person("b"), person("a")).counts == {"duplicate_id": 1}
    assert refused(
        store, {"type": "Note", "data": {"id": "n", "text": "x"}}, {"type": "Note", "data": {"id": "n", "text": "y"}}
    ).counts == {"duplicate_id": 1}


def test_append_adds_parallel_edges(store: GraphStore):
    fill(store, person("a"), edge("Knows", "a", "a"), edge("Knows", "a", "a"))
    fill(store, edge("Knows", "a", "a"))
    assert len(ids(store, "edge:Knows")) == 3


def test_merge_keeps_what_a_record_does_not_mention_and_takes_null_as_said(store: GraphStore):
    fill(store, person("a", name="A", age=1, status="active"), company("c", listed=True))
    fill(
        store, person("a", age=2, status=None), person("b", name="B"), company("c", size=1), company("d"), mode="merge"
    )
    by_id = {row["id"]: row for row in rows(store, "node:Person")}
    assert (by_id["a"]["name"], by_id["a"]["age"], by_id["a"]["status"]) == ("A", 2, None)
    assert by_id["b"]["name"] == "B"
    assert [row["listed"] for row in rows(store, "node:Company")] == [True, False]


def test_merge_never_joins_an_edge_without_a_tuple_to_one_with(tmp_path: Path):
    with create_store(tmp_path / "graph", "node P { k: String @key }  edge E: P -> P { n: I32? @unique }") as made:
        fill(made, {"type": "P", "data": {"k": "a"}}, edge("E", "a", "a"), edge("E", "a", "a", n=1), mode="merge")
        assert [row["n"] for row in rows(made, "edge:E")] == [None, 1]
        fill(made, {**edge("E", "a", "a", n=2), "id": "own"}, edge("E", "a", "a", n=2), mode="merge")
        assert len(rows(made, "edge:E")) == 3


def test_merge_collapses_records_of_one_id_the_last_wins_by_property(store: GraphStore):
    result = fill(
        store, person("a", name="1", age=1), person("b"), person("a", name="2"), person("a", age=3), mode="merge"
    )
    assert {table.table_key: table.rows_loaded for table in result.tables} == {"node:Person": 2}
    row = rows(store, "node:Person")[0]
    assert (row["name"], row["age"]) == ("2", 3)


def test_merge_keeps_row_ids_and_the_order_of_creation(store: GraphStore):
    from omnigraph.ledger.snapshots import table_of

    fill(store, person("a"), person("b"), person("c"))

    def row_ids() -> dict[str, int]:
        table = store.tables.scan_table(table_of(store.snapshot().pin("node:Person")), with_row_id=True)
        return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist()))

    before = row_ids()
    fill(store, person("d"), person("b", age=5), mode="merge")
    after = row_ids()
    assert {key: after[key] for key in before} == before
    assert len(after) == 4


def test_merge_of_what_is_there_already_publishes_nothing(store: GraphStore):
    fill(store, person("a", age=1), company("c", tags=["x"], shape=[1, 2], logo="aGk="))
    before = store.snapshot()
    result = fill(
        store, person("a"), person("a", age=1), company("c", tags=["x"], shape=[1, 2], logo="aGk="), mode="merge"
    )
    assert result.commit is None
    assert store.snapshot() == before


def test_merge_matches_an_edge_without_key_and_id_by_its_first_unique_tuple(store: GraphStore):
    fill(store, person("a"), person("b"), company("c"), edge("WorksAt", "a", "c", since="2026-01-01"))
    (old,) = rows(store, "edge:WorksAt")
    fill(
        store,
        edge("WorksAt", "a", "c", since="2026-02-02"),
        edge("WorksAt", "b", "c"),
        edge("WorksAt", "b", "c", since="2026-03-03"),
        mode="merge",
    )
    found = {row["src"]: row for row in rows(store, "edge:WorksAt")}
    assert found["a"]["id"] == old["id"]
    assert [str(found[key]["since"]) for key in "ab"] == ["2026-02-02", "2026-03-03"]


def test_merge_of_an_edge_with_neither_adds_a_parallel_one(store: GraphStore):
    fill(store, person("a"), edge("Knows", "a", "a"))
    fill(store, edge("Knows", "a", "a"), mode="merge")
    assert len(ids(store, "edge:Knows")) == 2
    given = ids(store, "edge:Knows")[0]
    fill(store, edge("Knows", "a", "a", id=given, strength=4), mode="merge")
    assert {row["id"]: row["strength"] for row in rows(store, "edge:Knows")}[given] == 4
    assert len(ids(store, "edge:Knows")) == 2


def test_merge_needs_required_values_only_of_rows_that_are_new(store: GraphStore):
    fill(store, {"type": "Note", "data": {"id": "n", "text": "x"}})
    fill(store, {"type": "Note", "data": {"id": "n"}}, mode="merge")
    error = refused(store, {"type": "Note", "data": {"id": "n"}}, {"type": "Note", "data": {"id": "m"}}, mode="merge")
    assert error.counts == {"missing_value": 1}
    assert error.violations[0].record == 2


def test_overwrite_replaces_the_types_that_appear_and_no_other(store: GraphStore):
    fill(store, person("a"), person("b"), company("c"), edge("Knows", "a", "b"))
    fill(store, person("b"), person("z"), edge("Knows", "z", "b"), mode="overwrite")
    assert ids(store, "node:Person") == ["b", "z"]
    assert ids(store, "node:Company") == ["c"]
    assert [row["src"] for row in rows(store, "edge:Knows")] == ["z"]


def test_overwrite_must_leave_a_valid_graph(store: GraphStore):
    fill(store, person("a"), person("b"), company("c"), edge("Knows", "a", "b"), edge("WorksAt", "a", "c"))
    error = refused(store, person("a"), mode="overwrite")
    assert error.counts == {"dangling_edge": 1}
    assert error.violations[0].table_key == "edge:Knows"
    assert refused(store, edge("Knows", "a", "gone"), mode="overwrite").counts == {"missing_endpoint": 1}
    fill(store, person("a"), edge("Knows", "a", "a"), mode="overwrite")


def test_a_mode_must_be_known(store: GraphStore):
    with pytest.raises(BadRequest, match="append, merge or overwrite"):
        load(store, [], mode="replace")


def test_a_load_of_nothing_publishes_nothing(store: GraphStore):
    result = load(store, [], mode="append")
    assert (result.commit, result.tables) == (None, ())


# --- rules -------------------------------------------------------------------------------------------------------


def test_all_kinds_of_violation_are_reported_at_once_with_their_places(store: GraphStore):
    fill(store, person("old", mail="m@x"))
    data = (
        lines(
            person("UP"),
            person("a", age=200, status="gone"),
            person("b", agee=1),
            person("c", age="1"),
            {"type": "Nobody"},
            {"type": "Person", "data": {}},
            person("d", mail="m@x"),
            person("e", mail="n@x"),
            person("f", mail="n@x"),
            edge("Knows", "a", "nowhere"),
            edge("WorksAt", "a", "acme"),
            edge("WorksAt", "a", "initech"),
            company("acme"),
            company("initech"),
            company("v", shape=[1]),
            {"type": "Note", "data": {"text": None}},
            person("g"),
            person("g"),
        )
        + b"{broken\n"
    )
    before = store.snapshot()
    with pytest.raises(ValidationFailed) as failed:
        load(store, data, mode="append")
    assert store.snapshot() == before
    assert failed.value.counts == {
        "malformed_record": 1,
        "unknown_type": 1,
        "unknown_property": 1,
        "wrong_type": 1,
        "missing_value": 1,
        "enum": 1,
        "range": 1,
        "check": 1,
        "vector_dimension": 1,
        "missing_key": 1,
        "duplicate_id": 1,
        "unique": 2,
        "missing_endpoint": 1,
        "cardinality": 1,
    }
    places = {v.kind: v.record for v in failed.value.violations}
    assert places["malformed_record"] == 19
    assert (places["check"], places["range"], places["unknown_property"], places["wrong_type"]) == (1, 2, 3, 4)
    assert (places["missing_endpoint"], places["missing_value"], places["duplicate_id"]) == (10, 16, 18)
    assert all(v.source == "<data>" for v in failed.value.violations)


def test_the_first_ten_of_each_kind_are_named_and_all_are_counted(store: GraphStore):
    error = refused(store, *(person(f"p{n}", age=200) for n in range(25)))
    assert error.counts == {"range": 25}
    assert [v.record for v in error.violations] == list(range(1, 11))


def test_a_row_with_a_bad_value_still_counts_as_the_end_of_an_edge(store: GraphStore):
    assert refused(store, person("a", age="x"), edge("Knows", "a", "a")).counts == {"wrong_type": 1}


def test_ends_may_be_committed_or_in_the_input(store: GraphStore):
    fill(store, person("a"))
    fill(store, edge("Knows", "a", "b"), person("b"))
    assert refused(store, edge("Knows", "a", "c"), edge("WorksAt", "x", "y")).counts == {"missing_endpoint": 3}


def test_uniqueness_holds_against_committed_rows_and_exempts_nulls(store: GraphStore):
    fill(store, person("a", name="N", age=1), person("b", name="N"))
    fill(store, person("c", name="N"), person("d", age=1))
    error = refused(store, person("e", name="N", age=1))
    assert error.counts == {"unique": 1}
    assert 'row "a" has the same' in error.violations[0].message


def test_merge_may_move_a_unique_value_from_one_row_to_another(store: GraphStore):
    fill(store, person("a", mail="1@x"), person("b", mail="2@x"))
    fill(store, person("a", mail="2@x"), person("b", mail="1@x"), mode="merge")
    assert [row["mail"] for row in rows(store, "node:Person")] == ["2@x", "1@x"]
    assert refused(store, person("a", mail="1@x"), mode="merge").counts == {"unique": 1}


def test_cardinality_counts_committed_edges(store: GraphStore):
    fill(store, person("a"), company("c"), company("d"), edge("WorksAt", "a", "c"))
    assert refused(store, edge("WorksAt", "a", "d")).counts == {"cardinality": 1}
    assert refused(store, edge("WorksAt", "a", "d"), mode="merge").counts == {"cardinality": 1}
    fill(store, edge("WorksAt", "a", "d"), mode="overwrite")


def test_merge_reports_each_thing_that_is_wrong_once(store: GraphStore):
    error = refused(store, {"type": "Rates"}, {"type": "Note", "data": {"text": None}}, mode="merge")
    assert error.counts == {"unknown_type": 1, "missing_value": 1}
    assert refused(store, {"type": "Note", "data": {"text": 5}}, mode="merge").counts == {"wrong_type": 1}
    assert refused(store, {"type": "Note"}, mode="merge").counts == {"missing_value": 1}


def test_merge_of_one_id_in_several_files_names_the_file_that_wins(store: GraphStore, tmp_path: Path):
    fill(store, person("a"), company("c"))
    (tmp_path / "1.jsonl").write_bytes(lines(person("x", mail="m"), person("y")))
    (tmp_path / "2.jsonl").write_bytes(lines(person("y"), person("z"), person("x", name="n")))
    (tmp_path / "3.jsonl").write_bytes(lines(person("w", mail="m"), edge("Rates", "a", "c")))
    (tmp_path / "4.jsonl").write_bytes(lines(edge("Rates", "a", "c")))
    with pytest.raises(ValidationFailed) as failed:
        load(store, tmp_path, mode="merge")
    places = {(v.kind, Path(v.source or "").name, v.record) for v in failed.value.violations}
    assert places == {("unique", "2.jsonl", 3), ("missing_value", "4.jsonl", 1)}


def test_text_that_is_no_text_is_reported_in_words_that_can_be_printed(store: GraphStore):
    half = json.dumps({"type": "Note", "data": {"text": "\ud800", "\ud801": 1}}).encode()
    with pytest.raises(ValidationFailed) as failed:
        load(store, half, mode="append")
    assert failed.value.counts == {"unknown_property": 1, "wrong_type": 1}
    assert r"\ud800" in failed.value.message
    assert orjson.dumps(failed.value.to_json())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'[{"type": "Note"}]', "write its items one after the other"),
        (b'{"type": "Person", "data": {"slug": "a", "age": ' + b"9" * 5000 + b"}}", "5000 digits"),
    ],
)
def test_a_record_of_the_wrong_shape_says_what_to_write(store: GraphStore, data: bytes, words: str):
    with pytest.raises(ValidationFailed, match=words) as failed:
        load(store, data, mode="append")
    assert "sys." not in failed.value.message


def test_a_line_beyond_all_bounds_is_refused_before_it_fills_the_memory(
    store: GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("omnigraph.write.decode.blocks.BLOCK_BYTES", 100)
    monkeypatch.setattr("omnigraph.write.decode.blocks.LONGEST_LINE", 1000)
    (tmp_path / "one-line.json").write_bytes(b"[" + b", ".join([lines(person("a")).strip()] * 50) + b"]")
    with pytest.raises(BadRequest, match=r"one-line.json: a line is longer than .*one record per line"):
        load(store, tmp_path / "one-line.json", mode="append")
    assert ids(store, "node:Person") == []


# --- sources -----------------------------------------------------------------------------------------------------


def test_files_may_be_plain_or_compressed_by_what_they_are(store: GraphStore, tmp_path: Path):
    (tmp_path / "a.jsonl").write_bytes(lines(person("a")))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines(person("b"))))
    (tmp_path / "c.jsonl.zst").write_bytes(pa.Codec("zstd").compress(lines(person("c")), asbytes=True))
    (tmp_path / "_skipped.jsonl").write_bytes(b"nonsense")
    (tmp_path / "notes.txt").write_bytes(b"nonsense")
    load(store, tmp_path, mode="append")
    assert ids(store, "node:Person") == ["a", "b", "c"]
    load(store, [tmp_path / "a.jsonl", str(tmp_path / "b.jsonl.gz")], mode="merge")
    load(store, str(tmp_path / "[abc].jsonl*"), mode="overwrite")
    assert ids(store, "node:Person") == ["a", "b", "c"]


def test_a_violation_names_its_file(store: GraphStore, tmp_path: Path):
    (tmp_path / "a.jsonl").write_bytes(lines(person("a")))
    (tmp_path / "b.jsonl").write_bytes(lines(person("b"), person("c", age=999)))
    with pytest.raises(ValidationFailed) as failed:
        load(store, tmp_path, mode="append")
    (found,) = failed.value.violations
    assert (found.source, found.record) == (str(tmp_path / "b.jsonl"), 2)


def test_bytes_open_files_and_streams_that_cannot_be_rewound(store: GraphStore, tmp_path: Path):
    load(store, lines(person("a")), mode="append")
    load(store, gzip.compress(lines(person("b"))), mode="append")
    load(store, io.BytesIO(lines(person("c"))), mode="append")
    read, write = os.pipe()
    os.write(write, lines(person("d")))
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        load(store, pipe, mode="append")
    (tmp_path / "x.jsonl").write_bytes(lines(person("e")))
    with (tmp_path / "x.jsonl").open() as text:
        load(store, text, mode="append")
    load(store, io.StringIO(lines(person("f")).decode()), mode="append")
    assert ids(store, "node:Person") == ["a", "b", "c", "d", "e", "f"]


def test_blobs_are_read_from_where_their_uris_say(store: GraphStore, tmp_path: Path):
    (tmp_path / "logo").write_bytes(b"bytes")
    logo = (tmp_path / "logo").as_uri()
    load(store, lines(company("a", logo=logo), company("b", logo="aGk=")), mode="append")
    (tmp_path / "c.csv").write_text(f"name,logo\nc,{logo}\n")
    load(store, tmp_path / "c.csv", type="Company", mode="append")
    assert [row["logo"] for row in rows(store, "node:Company")] == [b"bytes", b"hi", b"bytes"]
    error = refused(store, company("d"), company("e", logo=logo + "-not-there"))
    assert [(v.kind, v.property, v.record) for v in error.violations] == [("wrong_type", "logo", 2)]
    assert "there is no such file" in error.message


@pytest.mark.s3
def test_blobs_are_read_from_an_object_store(store: GraphStore, s3_uri: Callable[[], str]):
    root = s3_uri()
    open_objects(parse_root(root)).put("logo", b"bytes")
    fill(store, company("a", logo=f"{root}/logo"))
    assert [row["logo"] for row in rows(store, "node:Company")] == [b"bytes"]
    assert "there is no such object" in refused(store, company("b", logo=f"{root}/gone")).message


def test_text_in_the_place_of_a_path_is_told_from_one(store: GraphStore):
    with pytest.raises(BadRequest, match="give it as bytes"):
        load(store, lines(person("a")).decode(), mode="append")


def test_a_pipe_by_its_name_is_read_once_and_prepared_again_like_a_file(store: GraphStore, tmp_path: Path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    feeder = threading.Thread(target=lambda: pipe.write_bytes(lines(person("a"), person("b"))))
    feeder.start()
    raced = []

    def another_writer_first(progress: Progress) -> None:
        if progress.step == "commit" and not raced:
            raced.append(fill(store, person("other")))

    load(store, pipe, mode="append", progress=another_writer_first)
    feeder.join()
    assert raced
    assert ids(store, "node:Person") == ["a", "b", "other"]


def test_python_rows_as_records_or_of_one_type(store: GraphStore):
    load(store, [person("a")], mode="append")
    load(store, (person(f"g{n}") for n in range(3)), mode="append")
    load(store, [{"slug": "b", "age": 5}], type="Person", mode="append")
    load(store, [{"src": "a", "dst": "b"}, {"src": "b", "dst": "a"}], type="Knows", mode="append")
    load(store, [{"from": "a", "to": "b"}], type="knows", mode="append")
    load(
        store,
        [{"who": "a", "whom": "b", "years": 3}],
        type="Knows",
        src="who",
        dst="whom",
        columns={"years": "strength"},
        mode="append",
    )
    assert len(ids(store, "edge:Knows")) == 4
    assert {row["strength"] for row in rows(store, "edge:Knows")} == {None, 3}


def test_arrow_pandas_and_polars(store: GraphStore):
    load(store, pa.table({"slug": ["a", "b"], "age": pa.array([1, None], pa.int64())}), type="Person", mode="append")
    load(store, pd.DataFrame({"slug": ["c"], "name": [None]}), type="Person", mode="append")
    load(store, pl.DataFrame({"slug": ["d"], "age": [7]}), type="Person", mode="append")
    load(store, pa.table({"a": ["a"], "b": ["b"]}), type="Knows", src="a", dst="b", mode="append")
    assert [(row["id"], row["age"]) for row in rows(store, "node:Person")] == [
        ("a", 1),
        ("b", None),
        ("c", None),
        ("d", 7),
    ]
    assert len(ids(store, "edge:Knows")) == 1


def test_columns_are_taken_as_strictly_as_json(store: GraphStore):
    table = pa.table({"slug": ["a", "b", "c"], "age": [1.0, 1.5, 2.0]})
    with pytest.raises(ValidationFailed) as failed:
        load(store, table, type="Person", mode="append")
    assert failed.value.counts == {"wrong_type": 3}
    with pytest.raises(ValidationFailed) as failed:
        load(store, pa.table({"slug": ["a"], "age": pa.array([2**40])}), type="Person", mode="append")
    assert failed.value.counts == {"wrong_type": 1}
    with pytest.raises(BadRequest, match="`agee` is no property of Person; did you mean `age`"):
        load(store, pa.table({"slug": ["a"], "agee": [1]}), type="Person", mode="append")
    with pytest.raises(BadRequest, match="no column gives the `dst`"):
        load(store, pa.table({"src": ["a"]}), type="Knows", mode="append")
    with pytest.raises(BadRequest, match="type="):
        load(store, pa.table({"slug": ["a"]}), mode="append")


def test_csv_and_parquet(store: GraphStore, tmp_path: Path):
    (tmp_path / "c.csv").write_text(
        'name,size,rank,born,listed,tags,shape\nacme,5,1.5,2026-01-02,true,"[""x""]","[1,2]"\ninitech,,,,False,,\n'
    )
    load(store, tmp_path / "c.csv", type="Company", mode="append")
    first, second = rows(store, "node:Company")
    assert (first["size"], first["rank"], str(first["born"]), first["listed"]) == (5, 1.5, "2026-01-02", True)
    assert (first["tags"], first["shape"]) == (["x"], [1.0, 2.0])
    assert (second["size"], second["listed"]) == (None, False)
    pq.write_table(pa.table({"slug": ["a", "b"]}), tmp_path / "p.parquet")
    load(store, tmp_path / "p.parquet", type="Person", mode="append")
    (tmp_path / "w.csv.gz").write_bytes(gzip.compress(b"from,to,since\na,acme,2026-01-02\n"))
    load(store, tmp_path / "w.csv.gz", type="WorksAt", mode="append")
    assert [row["src"] for row in rows(store, "edge:WorksAt")] == ["a"]
    (tmp_path / "bad.csv").write_text("name,size\nx,1.5\n")
    with pytest.raises(ValidationFailed) as failed:
        load(store, tmp_path / "bad.csv", type="Company", mode="append")
    assert (failed.value.violations[0].kind, failed.value.violations[0].record) == ("wrong_type", 1)


def test_a_source_that_is_not_there_or_breaks_off_is_told(store: GraphStore, tmp_path: Path):
    with pytest.raises(NotFound, match="no file"):
        load(store, tmp_path / "none.jsonl", mode="append")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(lines(person("a")) * 1000)[:-20])
    with pytest.raises(StorageError, match="cannot be read to its end"):
        load(store, tmp_path / "cut.jsonl.gz", mode="append")
    assert ids(store, "node:Person") == []


def test_progress_is_told(store: GraphStore):
    seen: list[Progress] = []
    load(store, [person("a"), person("b")], mode="append", progress=seen.append)
    assert [look.step for look in seen] == ["decode", "check", "commit"]
    assert seen[-1].records == 2


# --- branches and faults -----------------------------------------------------------------------------------------


def test_from_makes_the_branch_on_the_way(store: GraphStore):
    fill(store, person("a"))
    result = load(store, [person("b")], mode="append", branch="review/1", from_="main")
    assert (result.branch_created, result.base_branch) == (True, "main")
    assert ids(store, "node:Person", "review/1") == ["a", "b"]
    assert ids(store, "node:Person") == ["a"]
    assert load(store, [person("c")], mode="append", branch="review/1", from_="main").branch_created is False


def test_a_failed_load_takes_its_branch_away_again(store: GraphStore):
    with pytest.raises(ValidationFailed):
        load(store, [person("UP")], mode="append", branch="review/1", from_="main")
    assert [ref.name for ref in store.refs.list()] == ["main"]


def test_a_failed_load_leaves_its_branch_to_somebody_who_wrote_to_it(store: GraphStore):
    def somebody_else(progress: Progress) -> None:
        if progress.step == "check":
            fill(store, person("theirs"), branch="review/1")

    with pytest.raises(ValidationFailed):
        load(store, [person("UP")], mode="append", branch="review/1", from_="main", progress=somebody_else)
    assert ids(store, "node:Person", "review/1") == ["theirs"]


def test_a_load_onto_a_branch_that_is_not_there_is_refused(store: GraphStore):
    with pytest.raises(NotFound, match="review"):
        load(store, [person("a")], mode="append", branch="review")


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_load_that_fails_while_it_commits_leaves_nothing(store: GraphStore, mode: str):
    fill(store, person("a", age=1))
    files = _files(store)
    with pytest.raises(FailpointError), active("write.premises_hold", "raise"):
        load(store, [person("b"), person("a", age=2)] if mode == "merge" else [person("b")], mode=mode)
    assert _files(store) == files
    assert [row["age"] for row in rows(store, "node:Person")] == [1]


def test_a_large_load_goes_through_several_blocks_in_order(store: GraphStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("omnigraph.write.decode.blocks.BLOCK_BYTES", 2000)
    monkeypatch.setattr("omnigraph.write.rows_spool.IN_MEMORY_BYTES", 5000)
    monkeypatch.setattr("omnigraph.write.mapped_tables.IN_MEMORY_BYTES", 2000)
    for module in ("duplicates", "partitions"):
        monkeypatch.setattr(f"omnigraph.write.validate.{module}.ROWS_PER_PART", 100)
    records = [person(f"p{n}", age=n % 90) for n in range(500)] + [
        edge("Knows", f"p{n}", f"p{n // 2}") for n in range(500)
    ]
    for mode in ("append", "merge", "overwrite"):
        load(store, lines(*records), mode=mode)
        assert len(ids(store, "node:Person")) == 500
    run(store, 'update Person set { name: "x" } where slug = "p7"')
    load(store, lines(*(person(f"p{n}", age=5) for n in range(490, 510))), mode="merge")
    assert len(ids(store, "node:Person")) == 510
    assert sum(row["age"] == 5 for row in rows(store, "node:Person")) == 5 + 20 + 1 - sum(
        1 for n in range(490, 500) if n % 90 == 5
    )


@pytest.mark.parametrize("rows_per_part", [7, 1_000_000])
def test_keys_that_wait_on_disk_are_checked_like_those_in_memory(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch, rows_per_part: int
):
    """Every rule across rows, with keys in files and in parts, finds what it finds in one piece, in the same words."""
    records = [person(f"p{n}") for n in range(60)] + [edge("Knows", f"p{n}", f"p{n % 7}") for n in range(60)]
    broken = [*records, person("p3"), person("p59"), edge("Knows", "p1", "nobody"), edge("Knows", "nowhere", "p2")]
    with pytest.raises(ValidationFailed) as at_once:
        load(store, lines(*broken), mode="append")
    monkeypatch.setattr("omnigraph.write.decode.blocks.BLOCK_BYTES", 500)
    monkeypatch.setattr("omnigraph.write.mapped_tables.IN_MEMORY_BYTES", 300)
    for module in ("duplicates", "partitions"):
        monkeypatch.setattr(f"omnigraph.write.validate.{module}.ROWS_PER_PART", rows_per_part)
    with pytest.raises(ValidationFailed) as in_parts:
        load(store, lines(*broken), mode="append")
    assert in_parts.value.violations == at_once.value.violations
    assert len(at_once.value.violations) == 4
    load(store, lines(*records), mode="append")
    assert len(ids(store, "node:Person")) == 60
