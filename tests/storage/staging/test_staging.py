"""Staged writes: nothing moves before the commit, and the commit does exactly what was staged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import BadRequest, Cancelled
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.reading.filters import eq
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import StagedWrite, TableVersion
from tests.storage.conftest import PEOPLE, people


def contents(tables: TableStore, table: TableVersion) -> dict[str, int | None]:
    rows = tables.scan_table(table)
    ids = rows["id"].to_pylist()
    assert len(ids) == len(set(ids)), "an id is there twice"
    return dict(zip(ids, rows["age"].to_pylist()))


def lineage(tables: TableStore, table: TableVersion) -> dict[str, tuple[int, int, int]]:
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    rows = tables.scan_table(table, columns=columns).to_pydict()
    return {row[0]: (row[1], row[2], row[3]) for row in zip(*(rows[name] for name in columns))}


def stage_of_each_kind(tables: TableStore, table: TableVersion) -> dict[str, StagedWrite]:
    return {
        "append": tables.stage_append(table, people("new")),
        "upsert": tables.stage_upsert(table, people("a", "new", age=9)),
        "delete": tables.stage_delete(table, ["a"]),
        "change": tables.stage_change(table, people("b", age=9), ["a"]),
        "overwrite": tables.stage_overwrite(table, people("x")),
    }


def test_staging_moves_nothing(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a", "b", "c"))
    stage_of_each_kind(tables, table)
    assert tables.head("t") == table
    assert contents(tables, table) == {"a": 0, "b": 0, "c": 0}


def test_each_kind_does_what_it_says(tables: TableStore) -> None:
    expected = {
        "append": ({"a": 0, "b": 0, "c": 0, "new": 0}, (1, 0, 0)),
        "upsert": ({"a": 9, "b": 0, "c": 0, "new": 9}, (1, 1, 0)),
        "delete": ({"b": 0, "c": 0}, (0, 0, 1)),
        "change": ({"b": 9, "c": 0}, (0, 1, 1)),
        "overwrite": ({"x": 0}, (1, 0, 3)),
    }
    for kind, (rows, counts) in expected.items():
        table = tables.create(f"t/{kind}", PEOPLE, rows=people("a", "b", "c"))
        staged = stage_of_each_kind(tables, table)[kind]
        assert (staged.rows_added, staged.rows_updated, staged.rows_deleted) == counts
        landed = tables.commit_staged(staged, "op")
        assert landed == table.at(2)
        assert contents(tables, landed) == rows


def test_updates_keep_row_id_and_creation_and_move_last_update(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a", "b"))
    second = tables.commit_staged(tables.stage_upsert(table, people("n", "b", age=1)), "op")
    assert lineage(tables, second) == {"a": (0, 1, 1), "b": (1, 1, 2), "n": (2, 2, 2)}
    third = tables.commit_staged(tables.stage_change(second, people("n", "m", age=2), ["a"]), "op")
    assert lineage(tables, third) == {"b": (1, 1, 2), "n": (2, 2, 3), "m": (3, 3, 3)}


def test_an_index_never_hides_or_repeats_a_changed_row(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people(*"abcdef", age=1))
    for column in ("id", "age"):
        staged = tables.stage_index(table, column, IndexKind.BTREE)
        assert staged is not None
        table = tables.commit_staged(staged, "index")
    table = tables.commit_staged(tables.stage_upsert(table, people("a", "b", age=2)), "op")
    table = tables.commit_staged(tables.stage_change(table, people("c", age=2), ["d"]), "op")
    assert sorted(tables.scan_table(table, filter=eq("age", 1))["id"].to_pylist()) == ["e", "f"]
    assert sorted(tables.scan_table(table, filter=eq("age", 2))["id"].to_pylist()) == ["a", "b", "c"]
    assert tables.take_ids(table, list("abcd")).num_rows == 3


def test_an_empty_table_takes_every_kind_of_write(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE)
    for turn, stage in enumerate(
        [
            lambda at: tables.stage_append(at, people("a", "b")),
            lambda at: tables.stage_delete(at, ["a", "b"]),
            lambda at: tables.stage_upsert(at, people("c")),
            lambda at: tables.stage_overwrite(at, []),
            lambda at: tables.stage_change(at, people("d"), ["nobody"]),
        ]
    ):
        table = tables.commit_staged(stage(table), f"op {turn}")
    assert contents(tables, table) == {"d": 0}
    rowid, created, updated = lineage(tables, table)["d"]
    assert (created, updated) == (6, 6)
    assert rowid >= 3, "row ids are never used again"


def test_deleting_what_is_not_there_is_empty_and_may_still_be_committed(tables: TableStore) -> None:
    for name, rows in (("full", people("a")), ("empty", people())):
        table = tables.create(name, PEOPLE, rows=rows)
        staged = tables.stage_delete(table, ["nobody"])
        assert staged.is_empty
        assert tables.count(tables.commit_staged(staged, "op")) == rows.num_rows


def test_rows_may_come_as_a_stream_in_any_column_order(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE)
    batch = pa.record_batch({"age": pa.array([1, 2], pa.int32()), "id": ["a", "b"]})
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    table = tables.commit_staged(tables.stage_append(table, reader), "op")
    assert contents(tables, table) == {"a": 1, "b": 2}


def test_rows_that_do_not_fit_are_refused(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    with pytest.raises(BadRequest, match="lacks age"):
        tables.stage_append(table, pa.table({"id": ["x"]}))
    with pytest.raises(BadRequest, match="unknown other"):
        tables.stage_append(table, people("x").append_column("other", pa.array([1])))
    with pytest.raises(BadRequest, match="the row `x` twice"):
        tables.stage_upsert(table, people("x", "x"))
    with pytest.raises(BadRequest, match="both changes and deletes the row `a`"):
        tables.stage_change(table, people("a"), ["a"])
    loose = pa.schema([pa.field("id", pa.string()), pa.field("age", pa.int64())])
    with pytest.raises(BadRequest, match="has no `id`"):
        tables.stage_upsert(table, pa.table({"id": [None], "age": [1]}, schema=loose))


def test_an_error_in_the_stream_of_rows_comes_out_as_it_is(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))

    def broken() -> Iterator[pa.RecordBatch]:
        yield from people("b").to_batches()
        raise Cancelled("stopped by the caller")

    with pytest.raises(Cancelled, match="stopped by the caller"):
        tables.stage_append(table, broken())
    with pytest.raises(BadRequest, match="cannot be stored as int64"):
        tables.stage_append(table, pa.table({"id": ["x"], "age": ["not a number"]}))
    assert tables.head("t") == table


def test_overwrite_may_change_the_columns(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    schema = pa.schema([pa.field("id", pa.string()), pa.field("name", pa.string()), pa.field("age", pa.float64())])
    rows = pa.table({"id": ["b"], "name": ["Ada"], "age": [1.5]}, schema=schema)
    landed = tables.commit_staged(tables.stage_overwrite(table, rows, schema), "op")
    assert tables.schema(landed).names == ["id", "name", "age"]
    assert tables.scan_table(landed).to_pylist() == [{"id": "b", "name": "Ada", "age": 1.5}]
    emptied = tables.commit_staged(tables.stage_overwrite(landed, [], PEOPLE), "op")
    assert tables.schema(emptied) == PEOPLE
    assert tables.count(emptied) == 0


def test_another_key_column_may_be_named(tables: TableStore) -> None:
    schema = pa.schema([pa.field("object_id", pa.string()), pa.field("n", pa.int64())])
    table = tables.create("t", schema, rows=pa.table({"object_id": ["head"], "n": [1]}, schema=schema))
    rows = pa.table({"object_id": ["head", "x"], "n": [2, 2]}, schema=schema)
    table = tables.commit_staged(tables.stage_change(table, rows, None, key="object_id"), "op")
    assert tables.scan_table(table).to_pydict() == {"object_id": ["head", "x"], "n": [2, 2]}


def test_an_abandoned_write_leaves_no_data_files(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    staged = tables.stage_append(table, people("b"))
    index = tables.stage_index(table, "id", IndexKind.BTREE)
    assert index is not None
    assert tables.abandon(staged) == 1
    assert tables.abandon(staged) == 0
    assert tables.abandon(index) >= 1
    assert contents(tables, tables.head("t")) == {"a": 0}


def test_abandoning_a_committed_write_removes_nothing(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    staged = tables.stage_append(table, people("b"))
    landed = tables.commit_staged(staged, "op")
    assert tables.abandon(staged) == 0
    later = tables.commit_staged(tables.stage_overwrite(landed, []), "op")
    assert tables.abandon(staged) == 0
    assert contents(TableStore(tables.root), landed) == {"a": 0, "b": 0}
    assert tables.count(later) == 0


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["append", "upsert", "delete", "change", "overwrite", "index", "compact"]),
        st.sets(st.sampled_from("abcdefgh"), max_size=5),
        st.sets(st.sampled_from("abcdefgh"), max_size=3),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25, deadline=None)
@given(operations=OPERATIONS)
def test_any_history_of_writes_agrees_with_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, set[str], set[str]]]
) -> None:
    tables = TableStore(parse_root(tmp_path_factory.mktemp("model")))
    table = tables.create("t", PEOPLE)
    model: dict[str, int | None] = {}
    created: dict[str, int] = {}
    for turn, (kind, ids, others) in enumerate(operations):
        before = table
        table = _apply(tables, table, kind, sorted(ids), sorted(others - ids), turn, model)
        if kind == "overwrite":
            created = {}
        created = {one: created.get(one, table.version) for one in model}
        assert table.version >= before.version
        assert contents(tables, table) == model
        assert {one: row[1] for one, row in lineage(tables, table).items()} == created
        for one in "abcdefgh":
            assert tables.count(table, eq("id", one)) == (one in model)


def _apply(
    tables: TableStore,
    table: TableVersion,
    kind: str,
    ids: list[str],
    others: list[str],
    turn: int,
    model: dict[str, int | None],
) -> TableVersion:
    staged: Any
    if kind == "append":
        new = [one for one in ids if one not in model]
        staged = tables.stage_append(table, people(*new, age=turn))
        model.update(dict.fromkeys(new, turn))
    elif kind == "upsert":
        staged = tables.stage_upsert(table, people(*ids, age=turn))
        model.update(dict.fromkeys(ids, turn))
    elif kind == "delete":
        staged = tables.stage_delete(table, ids)
        for one in ids:
            model.pop(one, None)
    elif kind == "change":
        staged = tables.stage_change(table, people(*ids, age=turn), others)
        model.update(dict.fromkeys(ids, turn))
        for one in others:
            model.pop(one, None)
    elif kind == "overwrite":
        staged = tables.stage_overwrite(table, people(*ids, age=turn))
        model.clear()
        model.update(dict.fromkeys(ids, turn))
    elif kind == "index":
        staged = tables.stage_index(table, "id", IndexKind.BTREE)
    else:
        staged = tables.stage_compaction(table)
    return table if staged is None else tables.commit_staged(staged, f"op {turn}")


def test_staged_files_are_named_below_the_root(tables: TableStore) -> None:
    table = tables.create("nodes/n1", PEOPLE, rows=people("a"))
    fork = tables.create_fork(table, "f-1")
    staged = tables.stage_append(fork, people("b"))
    data_files = [path for path in staged.new_files if not path.endswith("/")]
    assert len(data_files) == 1
    assert data_files[0].startswith("nodes/n1/tree/f-1/data/")
    assert open_objects(tables.root).head(data_files[0]) is not None
