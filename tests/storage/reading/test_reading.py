"""Reads of pinned versions: projection, filter, order, limit, look-ups, search; and the cache of handles."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import BadRequest, StorageError, StorageKind
from omnigraph.storage import constants
from omnigraph.storage.lance_errors import TableExists, TableNotFound
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.reading import reading
from omnigraph.storage.reading.filters import and_, eq, is_in
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import Ordering, TableVersion
from tests.storage.conftest import PEOPLE, people


def test_create_head_count_schema(tables: TableStore) -> None:
    assert not tables.exists("nodes/n1")
    table = tables.create("nodes/n1", PEOPLE)
    assert table == TableVersion("nodes/n1", None, 1)
    assert tables.exists("nodes/n1")
    assert tables.head("nodes/n1") == table
    assert tables.count(table) == 0
    assert tables.schema(table) == PEOPLE
    assert tables.scan_table(table).schema == PEOPLE


def test_creating_over_a_table_is_refused(tables: TableStore) -> None:
    tables.create("nodes/n1", PEOPLE, rows=people("a"))
    with pytest.raises(TableExists) as found:
        tables.create("nodes/n1", PEOPLE)
    assert found.value.storage_kind is StorageKind.PRECONDITION
    assert tables.count(tables.head("nodes/n1")) == 1


def test_creating_at_once_has_one_winner(tables: TableStore) -> None:
    def attempt(number: int) -> bool:
        try:
            tables.create("nodes/n1", PEOPLE, rows=people(number))
        except TableExists:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(attempt, range(4))) == 1
    assert tables.count(tables.head("nodes/n1")) == 1


def test_tables_have_stable_row_ids_and_the_file_format_with_blobs(tables: TableStore) -> None:
    handle = tables.handles.at(tables.create("t", PEOPLE, rows=people("a")))
    assert handle.has_stable_row_ids
    assert handle.data_storage_version == "2.2"


def test_what_is_missing_is_a_typed_error(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE)
    for missing in (table.at(9), TableVersion("t", "f-none", 1), TableVersion("other", None, 1)):
        with pytest.raises(TableNotFound) as error:
            tables.count(missing)
        assert error.value.storage_kind is StorageKind.NOT_FOUND
    with pytest.raises(TableNotFound):
        tables.head("t", "f-none")


def test_scan_with_projection_filter_order_limit_offset(tables: TableStore) -> None:
    rows = pa.table({"id": list("abcdef"), "age": [3, None, 1, 5, 4, 2]}, schema=PEOPLE)
    table = tables.create("t", PEOPLE, rows=rows)
    assert tables.scan_table(table, columns=["id"], order_by=["age"])["id"].to_pylist() == [
        "c",
        "f",
        "a",
        "e",
        "d",
        "b",
    ]
    descending = [Ordering("age", ascending=False, nulls_first=True)]
    assert tables.scan_table(table, order_by=descending, limit=2, offset=1)["id"].to_pylist() == ["d", "e"]
    assert tables.scan_table(table, filter=pc.field("age") > 3)["id"].to_pylist() == ["d", "e"]
    assert tables.scan_table(table, filter=and_(is_in("id", ["a", "d"]), eq("age", 5)))["id"].to_pylist() == ["d"]
    assert tables.count(table, eq("age", None)) == 1
    assert tables.scan_table(table, with_row_id=True, with_row_address=True).column_names == [
        "id",
        "age",
        "_rowid",
        "_rowaddr",
    ]


def test_a_scan_streams_in_batches(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people(*range(1000)))
    batches = list(tables.scan(table, batch_size=100))
    assert len(batches) >= 10
    assert sum(batch.num_rows for batch in batches) == 1000


def test_scan_of_chosen_fragments(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    table = tables.commit_staged(tables.stage_append(table, people("b")), "op")
    fragments = tables.fragments(table)
    assert [(f.rows, f.physical_rows, f.deletions) for f in fragments] == [(1, 1, 0), (1, 1, 0)]
    assert tables.scan_table(table, fragments=[fragments[1].id])["id"].to_pylist() == ["b"]
    with pytest.raises(BadRequest, match="no fragment 99"):
        tables.scan(table, fragments=[99])


def test_take_ids_with_and_without_an_index(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people(*range(50), age=7))
    plain = tables.take_ids(table, ["3", "7", "7", "none"], ["id", "age"])
    indexed_version = _indexed(tables, table)
    indexed = tables.take_ids(indexed_version, pa.array(["3", "7", "none"]), ["id", "age"])
    for found in (plain, indexed):
        assert sorted(found["id"].to_pylist()) == ["3", "7"]
        assert found.column_names == ["id", "age"]
    assert tables.take_ids(table, []).num_rows == 0
    assert tables.take_ids(table, [], ["age"]).column_names == ["age"]


def _indexed(tables: TableStore, table: TableVersion) -> TableVersion:
    staged = tables.stage_index(table, "id", IndexKind.BTREE)
    assert staged is not None
    return tables.commit_staged(staged, "index")


def test_many_ids_give_the_same_rows_by_scan_and_by_index(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tables.create("t", PEOPLE, rows=people(*range(2000)))
    table = _indexed(tables, tables.commit_staged(tables.stage_delete(table, ["0", "1"]), "op"))
    wanted = [str(number) for number in range(0, 4000, 2)]
    monkeypatch.setattr(reading, "IDS_PER_INDEX_LOOKUP", 300)
    by_scan = tables.take_ids(table, wanted, ["age"], with_row_id=True)
    monkeypatch.setattr(reading, "SCAN_SHARE", 10.0)
    by_index = tables.take_ids(table, wanted, ["age"], with_row_id=True)
    assert by_scan.column_names == by_index.column_names == ["age", "_rowid"]
    assert sorted(by_scan["_rowid"].to_pylist()) == sorted(by_index["_rowid"].to_pylist())
    assert by_scan.num_rows == 999
    assert constants.IDS_PER_INDEX_LOOKUP > 300


def test_many_values_of_another_column_give_the_same_rows_by_scan_and_by_index(
    tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = pa.schema([pa.field("id", pa.string(), False), pa.field("src", pa.string(), False)])
    rows = pa.table({"id": [str(number) for number in range(3000)], "src": [f"s{n % 700}" for n in range(3000)]}, ends)
    table = tables.create("t", ends, rows=rows)
    staged = tables.stage_index(table, "src", IndexKind.BTREE)
    assert staged is not None
    table = tables.commit_staged(staged, "index")
    wanted = [f"s{number}" for number in range(0, 1000, 2)]
    scans: list[int] = []
    by_scan_as_it_is = reading._take_by_scan

    def counted(*given: Any) -> pa.Table:
        scans.append(1)
        return by_scan_as_it_is(*given)

    monkeypatch.setattr(reading, "_take_by_scan", counted)
    by_scan = tables.take_ids(table, wanted, ["id"], key="src")
    monkeypatch.setattr(reading, "LOOKUP_SCAN_SHARE", 10.0)
    by_index = tables.take_ids(table, wanted, ["id"], key="src")
    assert len(scans) == 1
    assert by_scan.column_names == by_index.column_names == ["id"]
    assert sorted(by_scan["id"].to_pylist()) == sorted(by_index["id"].to_pylist())
    assert by_scan.num_rows == sum(n % 700 % 2 == 0 for n in range(3000))


def test_take_rows_by_row_id_in_the_order_asked_for(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a", "b", "c"))
    found = tables.take_rows(table, [2, 0, 99], ["id"])
    assert found.to_pydict() == {"id": ["c", "a"], "_rowid": [2, 0]}
    assert tables.take_rows(table, pa.array([1], pa.uint64())).column_names == ["id", "age", "_rowid"]


def test_vector_and_text_search(tables: TableStore) -> None:
    schema = pa.schema(
        [pa.field("id", pa.string()), pa.field("text", pa.string()), pa.field("vector", pa.list_(pa.float32(), 2))]
    )
    rows = pa.table(
        {"id": ["a", "b", "c"], "text": ["red apple", "green pear", "red pear"], "vector": [[1, 0], [0, 1], [1, 1]]},
        schema=schema,
    )
    table = tables.create("t", schema, rows=rows)
    near = {"column": "vector", "q": np.array([1, 0], dtype=np.float32), "k": 2, "metric": "cosine"}
    found = tables.scan_table(table, columns=["id"], nearest=near)
    assert found["id"].to_pylist() == ["a", "c"]
    assert found.column_names == ["id", "_distance"]
    assert tables.scan_table(table, nearest=near, filter=eq("id", "b"))["id"].to_pylist() == ["b"]
    words = {"columns": ["text"], "query": "pear"}
    assert sorted(tables.scan_table(table, columns=["id"], full_text=words)["id"].to_pylist()) == ["b", "c"]


def test_errors_while_reading_are_in_our_words(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    with pytest.raises(StorageError, match="reading t version 1"):
        tables.scan_table(table, columns=["nothing"])


def test_pinned_versions_never_change(tables: TableStore) -> None:
    first = tables.create("t", PEOPLE, rows=people("a"))
    second = tables.commit_staged(tables.stage_change(first, people("b"), ["a"]), "op")
    assert tables.scan_table(first)["id"].to_pylist() == ["a"]
    assert tables.scan_table(second)["id"].to_pylist() == ["b"]
    assert TableStore(tables.root).scan_table(first)["id"].to_pylist() == ["a"]


def test_a_look_at_a_line_that_nobody_changed_opens_nothing(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    other = TableStore(tables.root)
    other.head("t")
    opened: list[str] = []
    other.on_call = lambda name, location: opened.append(name)
    assert other.head("t") == table
    assert opened == []
    newer = tables.commit_staged(tables.stage_append(table, people("b")), "op")
    assert other.head("t") == newer
    # On a local disk the name of a version says that it is there; elsewhere the new one is opened, once.
    expected = [] if tables.root.is_local else ["open"]
    assert opened == expected
    assert other.head("t") == newer
    assert opened == expected


def test_handles_are_cached_and_bounded(tables: TableStore) -> None:
    tables = TableStore(tables.root, cache_size=2)
    calls: Counter[tuple[str, str]] = Counter()
    tables.on_call = lambda name, location: calls.update([(name, location)])
    made = [tables.create(f"t{number}", PEOPLE) for number in range(3)]
    calls.clear()
    tables.count(made[2])
    tables.count(made[2])
    assert calls[("open", "t2")] == 0
    tables.count(made[0])
    tables.count(made[0])
    assert calls[("open", "t0")] == 1
    assert tables.handles.cached() == 2


def test_the_cache_is_shared_by_threads(tables: TableStore) -> None:
    made = [tables.create(f"t{number}", PEOPLE, rows=people(*range(number))) for number in range(6)]
    tables = TableStore(tables.root, cache_size=3)
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda number: tables.count(made[number % 6]), range(120)))
    assert counts == [number % 6 for number in range(120)]
    assert tables.handles.cached() <= 3


def test_opening_a_store_reads_nothing(tables: TableStore) -> None:
    calls: list[str] = []
    tables = TableStore(parse_root(tables.root.path))
    tables.on_call = lambda name, location: calls.append(name)
    assert calls == []
    assert not tables.root.path or tables.handles.cached() == 0


def test_tables_do_not_live_in_memory() -> None:
    with pytest.raises(BadRequest, match="small objects only"):
        TableStore(parse_root("memory://x"))
