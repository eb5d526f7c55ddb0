"""What was compacted or indexed outside the window is committed on a later version only where it fits, and then it is
right: compared with a plain dictionary after random changes in between."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from omnigraph.storage.layout.compaction import CompactionOptions
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.reading.filters import eq
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from tests.storage.conftest import PEOPLE, people

WANTED = [("id", IndexKind.BTREE, None), ("age", IndexKind.BTREE, None)]
SMALL = CompactionOptions(target_rows=4096, deleted_share=1.0)


class Model:
    """A table and what it should hold."""

    def __init__(self, tables: TableStore, seed: int) -> None:
        self.tables = tables
        self.random = random.Random(seed)
        self.ages: dict[str, int] = {"first": 0}
        self.table = tables.create("t", PEOPLE, rows=people("first", age=0))

    def insert(self) -> None:
        name, age = f"k{len(self.ages)}-{self.random.random()}", self.random.randrange(5)
        self.commit(self.tables.stage_append(self.table, people(name, age=age)))
        self.ages[name] = age

    def update(self) -> None:
        name, age = self.random.choice(sorted(self.ages)), self.random.randrange(5)
        self.commit(self.tables.stage_change(self.table, people(name, age=age), None))
        self.ages[name] = age

    def delete(self) -> None:
        name = self.random.choice(sorted(self.ages))
        self.commit(self.tables.stage_delete(self.table, [name]))
        del self.ages[name]

    def commit(self, staged: object) -> None:
        self.table = self.tables.commit_staged(staged, "step")  # type: ignore[arg-type]

    def some(self, number: int, *kinds: str) -> None:
        for _ in range(number):
            kind = self.random.choice(kinds)
            getattr(self, kind if len(self.ages) > 2 else "insert")()

    def check(self) -> None:
        fresh = TableStore(self.tables.root)
        for store in (self.tables, fresh):
            found = store.scan_table(self.table)
            assert dict(zip(found["id"].to_pylist(), found["age"].to_pylist())) == self.ages
            for age in range(5):
                named = store.scan_table(self.table, columns=["id"], filter=eq("age", age))["id"].to_pylist()
                assert sorted(named) == sorted(name for name, one in self.ages.items() if one == age)
            for name in self.random.sample(sorted(self.ages), min(5, len(self.ages))):
                assert store.count(self.table, eq("id", name)) == 1


def rows_by_id(tables: TableStore, table: TableVersion) -> list[dict[str, object]]:
    """Each row with its stable id and the versions that made and last changed it."""
    columns = ["id", "age", "_row_created_at_version", "_row_last_updated_at_version"]
    found = tables.handles.at(table).scanner(columns=columns, with_row_id=True).to_table()
    return sorted(found.to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("seed", range(6))
def test_a_compaction_that_fits_is_right_on_a_later_version(tables: TableStore, seed: int) -> None:
    model = Model(tables, seed)
    for _ in range(2):
        model.some(9, "insert", "insert", "update", "delete")
        base = model.table
        staged = tables.stage_compaction(base, SMALL, spare_first=True)
        model.some(3, *(("insert",) if seed % 2 else ("insert", "update", "delete")))
        if staged is None:
            continue
        again = tables.stage_compaction_again(staged, model.table)
        if again is not None:
            before = rows_by_id(tables, model.table)
            model.table = tables.commit_compaction(again)
            assert model.table.version == tables.head("t").version
            assert rows_by_id(tables, model.table) == before, "row ids and the versions that rows are from stay"
        else:
            assert seed % 2 == 0, "rows that only came are in nobody's way"
        model.check()


@pytest.mark.parametrize("seed", range(6))
def test_indexes_that_fit_are_right_on_a_later_version(tables: TableStore, seed: int) -> None:
    model = Model(tables, seed)
    for _ in range(2):
        model.some(8, "insert", "insert", "update", "delete")
        staged = tables.stage_indexes(model.table, WANTED)
        assert staged is not None
        model.some(4, "insert", "update", "delete")
        again = tables.stage_indexes_again(model.table, staged)
        if again is not None:
            model.commit(again)
        model.check()
        model.some(3, "insert", "update", "delete")
        model.check()


def test_nothing_fits_a_table_that_was_compacted_or_indexed_meanwhile(tables: TableStore) -> None:
    model = Model(tables, 1)
    model.some(6, "insert")
    compaction = tables.stage_compaction(model.table, SMALL, spare_first=True)
    built = tables.stage_indexes(model.table, WANTED)
    assert compaction is not None
    assert built is not None
    first = tables.stage_index(model.table, "age", IndexKind.BTREE)
    assert first is not None
    model.commit(first)
    assert tables.stage_indexes_again(model.table, built) is None
    assert tables.stage_compaction_again(compaction, model.table) is None, "the index covers what was rewritten"
    other = tables.stage_compaction(model.table, SMALL)
    assert other is not None
    model.table = tables.commit_compaction(other)
    assert tables.stage_compaction_again(compaction, model.table) is None
    model.check()


def test_the_first_fragment_is_spared(tables: TableStore) -> None:
    model = Model(tables, 2)
    model.some(5, "insert")
    staged = tables.stage_compaction(model.table, SMALL, spare_first=True)
    assert staged is not None
    assert staged.fragments_removed == 5
    assert [fragment.rows for fragment in tables.fragments(tables.commit_compaction(staged))] == [1, 5]
    one = tables.create("one", PEOPLE, rows=people("a"))
    assert tables.stage_compaction(one, SMALL, spare_first=True) is None


def test_an_empty_table_has_nothing_to_compact(tables: TableStore) -> None:
    empty: TableVersion = tables.create("empty", pa.schema([pa.field("id", pa.string())]))
    assert tables.stage_compaction(empty, SMALL, spare_first=True) is None
