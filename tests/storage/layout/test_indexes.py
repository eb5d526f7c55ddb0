"""Indexes: never needed for a right answer, built in parts, extended, replaced, dropped."""

from __future__ import annotations

from multiprocessing.pool import Pool

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.storage.layout import indexes
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.reading.filters import eq
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from tests.storage.conftest import PEOPLE, people

SCHEMA = pa.schema(
    [pa.field("id", pa.string()), pa.field("text", pa.string()), pa.field("vector", pa.list_(pa.float32(), 4))]
)


def rows(start: int, stop: int) -> pa.Table:
    generator = np.random.default_rng(start)
    numbers = range(start, stop)
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "text": [f"word{number} common" if number % 5 else None for number in numbers],
            "vector": [generator.random(4).tolist() if number % 4 else None for number in numbers],
        },
        schema=SCHEMA,
    )


def build(tables: TableStore, table: TableVersion, column: str, kind: IndexKind) -> TableVersion:
    staged = tables.stage_index(table, column, kind)
    assert staged is not None
    landed = tables.commit_staged(staged, "index")
    assert tables.index_state(landed, column, kind).is_complete
    return landed


def nearest(tables: TableStore, table: TableVersion) -> list[str]:
    query = {"column": "vector", "q": np.full(4, 0.5, dtype=np.float32), "k": 5, "metric": "cosine", "nprobes": 50}
    return tables.scan_table(table, columns=["id"], nearest=query)["id"].to_pylist()


def words(tables: TableStore, table: TableVersion, query: str) -> list[str]:
    found = tables.scan_table(table, columns=["id"], full_text={"columns": ["text"], "query": query})
    return sorted(found["id"].to_pylist())


def test_answers_are_the_same_without_with_part_of_and_with_all_of_an_index(tables: TableStore) -> None:
    table = tables.create("t", SCHEMA, rows=rows(0, 400))
    answers = []

    def ask(at: TableVersion) -> None:
        answers.append((nearest(tables, at), words(tables, at, "word7"), tables.count(at, eq("id", "k7"))))

    ask(table)
    for column, kind in (("id", IndexKind.BTREE), ("text", IndexKind.TEXT), ("vector", IndexKind.VECTOR)):
        table = build(tables, table, column, kind)
    ask(table)
    assert answers[0] == answers[1]
    table = tables.commit_staged(tables.stage_append(table, rows(400, 800)), "op")
    assert [index.uncovered_fragments for index in tables.list_indexes(table)] == [(1,), (1,), (1,)]
    assert words(tables, table, "word401") == ["k401"]
    assert tables.count(table, eq("id", "k401")) == 1
    ask(table)
    for column, kind in (("id", IndexKind.BTREE), ("text", IndexKind.TEXT), ("vector", IndexKind.VECTOR)):
        table = build(tables, table, column, kind)
    ask(table)
    assert answers[2] == answers[3]
    assert words(tables, table, "word401") == ["k401"]
    assert tables.count(table, eq("id", "k401")) == 1


def test_an_index_is_used(tables: TableStore) -> None:
    table = build(tables, tables.create("t", SCHEMA, rows=rows(0, 50)), "id", IndexKind.BTREE)
    plan = tables.handles.at(table).scanner(filter="id = 'k7'").explain_plan()
    assert "ScalarIndexQuery" in plan


def test_nothing_to_do_gives_nothing(tables: TableStore) -> None:
    table = tables.create("t", SCHEMA)
    assert tables.stage_index(table, "id", IndexKind.BTREE) is None
    table = tables.commit_staged(tables.stage_append(table, rows(0, 10)), "op")
    table = build(tables, table, "id", IndexKind.BTREE)
    assert tables.stage_index(table, "id", IndexKind.BTREE) is None


def test_too_few_vectors_stay_pending_and_searches_scan(tables: TableStore) -> None:
    table = tables.create("t", SCHEMA, rows=rows(0, 100))
    state = tables.index_state(table, "vector", IndexKind.VECTOR)
    assert not state.trainable
    assert state.uncovered_fragments == (0,)
    assert tables.stage_index(table, "vector", IndexKind.VECTOR) is None
    assert len(nearest(tables, table)) == 5


def test_phrases_can_be_searched(tables: TableStore) -> None:
    from lance.query import PhraseQuery

    table = build(tables, tables.create("t", SCHEMA, rows=rows(0, 50)), "text", IndexKind.TEXT)
    found = tables.scan_table(table, columns=["id"], full_text=PhraseQuery("word7 common", "text"))
    assert found["id"].to_pylist() == ["k7"]


def test_segments_that_pile_up_are_replaced_by_one(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "MOST_SEGMENTS", 2)
    table = tables.create("t", PEOPLE, rows=people("a"))
    counts = []
    for name in "bcdef":
        table = build(tables, table, "id", IndexKind.BTREE)
        counts.append(tables.index_state(table, "id", IndexKind.BTREE).segments)
        table = tables.commit_staged(tables.stage_append(table, people(name)), "op")
    assert counts == [1, 2, 1, 2, 1]
    assert all(tables.count(table, eq("id", name)) == 1 for name in "abcdef")


def test_an_index_can_be_dropped(tables: TableStore) -> None:
    table = build(tables, tables.create("t", SCHEMA, rows=rows(0, 50)), "id", IndexKind.BTREE)
    staged = tables.stage_drop_index(table, indexes.index_name("id", IndexKind.BTREE))
    assert staged is not None
    table = tables.commit_staged(staged, "op")
    assert tables.list_indexes(table) == []
    assert tables.stage_drop_index(table, "nothing") is None


@pytest.mark.parametrize(
    ("column", "kind"), [("id", IndexKind.BTREE), ("text", IndexKind.TEXT), ("vector", IndexKind.VECTOR)]
)
def test_segments_can_be_built_in_other_processes_and_on_a_fork(
    tables: TableStore, other_process: Pool, column: str, kind: IndexKind
) -> None:
    table = tables.create("t", SCHEMA, rows=rows(0, 400))
    fork = tables.create_fork(table, "f-1")
    fork = tables.commit_staged(tables.stage_append(fork, rows(400, 800)), "op")
    expected = (nearest(tables, fork), words(tables, fork, "word7 word401"))
    work = tables.plan_index(fork, column, kind, parts=2)
    assert [task.fragments for task in work] == [(0,), (1,)]
    segments = other_process.map(indexes.run_index_task, work)
    landed = tables.commit_staged(tables.stage_index_segments(fork, column, kind, segments), "op")
    assert tables.index_state(landed, column, kind).is_complete
    assert (nearest(tables, landed), words(tables, landed, "word7 word401")) == expected
    assert tables.list_indexes(tables.head("t")) == []
