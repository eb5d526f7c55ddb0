"""Look-ups by id through what is known of small fragments: never another answer than a scan gives."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.storage.handles import fragment_ids, ids_of_files
from omnigraph.storage.handles.fragment_ids import FragmentIds
from omnigraph.storage.layout.compaction import CompactionOptions
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.reading.filters import eq
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from tests.storage.conftest import PEOPLE, people

IDS = [f"p{number}" for number in range(30)]
EVERY_READ: list[dict[str, Any]] = [
    {"columns": None},
    {"columns": ["id"]},
    {"columns": ["age"]},
    {"columns": ["id"], "with_row_id": True, "with_row_address": True},
    {"columns": ["age", "id"], "with_row_id": True},
]


def same_as_a_scan(tables: TableStore, table: TableVersion, ids: list[str]) -> None:
    whole = tables.scan_table(table, with_row_id=True, with_row_address=True)
    rows = [row for row in whole.to_pylist() if row["id"] in ids]
    for options in EVERY_READ:
        found = tables.take_ids(table, ids, **options)
        names = list(options["columns"] or PEOPLE.names)
        names += [n for n, o in (("_rowid", "with_row_id"), ("_rowaddr", "with_row_address")) if options.get(o)]
        assert found.column_names == names
        assert [field.type for field in found.schema] == [whole.schema.field(name).type for name in names]
        assert sorted(map(str, found.to_pylist())) == sorted(str({name: row[name] for name in names}) for row in rows)
        one = tables.scan_table(table, filter=eq("id", ids[0]), **options)
        assert one.schema == found.schema
        assert one.to_pylist() == [{name: row[name] for name in names} for row in rows if row["id"] == ids[0]]


def same_in_the_same_place(tables: TableStore, versions: list[TableVersion], ids: list[str]) -> int:
    """What is in a place is the same row in all versions that have the place; how many looks were answered so."""
    known: dict[Hashable, list[dict[str, Any]]] = {}
    again = 0
    for version in versions:
        for each in ids:
            place = tables.place_of_id(version, each)
            if place is None:
                continue
            rows = [row for row in tables.scan_table(version).to_pylist() if row["id"] == each]
            again += (place.content, each) in known
            assert known.setdefault((place.content, each), rows) == rows
            assert tables.scan_table(version, filter=eq("id", each), fragments=place.fragments).to_pylist() == rows
    return again


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_read_as_a_scan_does(local_tables: TableStore, seed: int) -> None:
    chosen = random.Random(seed)
    table = local_tables.create("t", PEOPLE, rows=people(*IDS[:12]))
    alive = set(IDS[:12])
    versions = [table]
    for step in range(14):
        what = chosen.choice(["append", "upsert", "upsert", "delete", "compact", "fork"])
        some = chosen.sample(IDS, chosen.randrange(1, 5))
        if what == "append" and set(IDS) - alive:
            new = chosen.sample(sorted(set(IDS) - alive), 1)
            staged = local_tables.stage_append(table, people(*new, age=step))
            alive |= set(new)
        elif what == "delete":
            staged = local_tables.stage_delete(table, some)
            alive -= set(some)
        elif what == "compact":
            compaction = local_tables.stage_compaction(table, CompactionOptions())
            if compaction is not None:
                table = local_tables.commit_compaction(compaction)
                versions.append(table)
            continue
        elif what == "fork":
            table = local_tables.create_fork(table, f"f-{step}")
            versions.append(table)
            continue
        else:
            staged = local_tables.stage_upsert(table, people(*some, age=step))
            alive |= set(some)
        if staged.is_empty:
            continue
        table = local_tables.commit_staged(staged, f"op-{step}")
        versions.append(table)
        same_as_a_scan(local_tables, table, some)
    # Old versions and other lines have rows that later ones deleted: what is known must serve them all.
    cold = TableStore(local_tables.root)
    for store in (local_tables, cold):
        for version in [versions[-1], *versions]:
            same_as_a_scan(store, version, chosen.sample(IDS, 4))
            same_as_a_scan(store, version, IDS)
        assert same_in_the_same_place(store, versions, chosen.sample(IDS, 4)) > 0
    assert {row["id"] for row in cold.scan_table(table).to_pylist()} == alive


def test_an_id_that_is_nowhere_is_told_without_reading_rows(local_tables: TableStore) -> None:
    table = local_tables.create("t", PEOPLE, rows=people("a"))
    for number in range(5):
        table = local_tables.commit_staged(local_tables.stage_append(table, people(number)), "op")
    handle = local_tables.handles.at(table)
    narrowed = local_tables.handles.fragment_ids.narrow(handle, table, pa.array(["nobody"]))
    assert narrowed is not None
    assert narrowed.candidates == ()
    found = local_tables.handles.fragment_ids.narrow(handle, table, pa.array(["3", "nobody"]))
    assert found is not None
    assert len(found.candidates) == 1


def test_a_large_fragment_is_always_looked_into(local_tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_ids, "SMALL_FRAGMENT_ROWS", 3)
    table = local_tables.create("t", PEOPLE, rows=people(*range(10)))
    table = local_tables.commit_staged(local_tables.stage_append(table, people("new")), "op")
    for wanted in (["7"], ["new"], ["7", "new", "none"], ["none"]):
        same_as_a_scan(local_tables, table, wanted)
    handle = local_tables.handles.at(table)
    narrowed = local_tables.handles.fragment_ids.narrow(handle, table, pa.array(["none"]))
    assert narrowed is not None
    assert narrowed.candidates == (0,)


def test_large_fragments_are_found_through_their_index(
    local_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragment_ids, "SMALL_FRAGMENT_ROWS", 3)
    table = local_tables.create("t", PEOPLE, rows=people(*range(10)))
    index = local_tables.stage_index(table, "id", IndexKind.BTREE)
    assert index is not None
    table = local_tables.commit_staged(index, "index")
    table = local_tables.commit_staged(local_tables.stage_upsert(table, people("7", "new", age=5)), "op")
    for wanted in (["7"], ["new"], ["7", "8", "new", "none"]):
        same_as_a_scan(local_tables, table, wanted)


def test_few_files_are_kept_however_little_each_holds() -> None:
    kept = FragmentIds()
    kept.keep({f"{number}.lance": [str(number)] for number in range(ids_of_files.MOST_FILES + 100)})
    assert kept.kept() == ids_of_files.MOST_FILES
    assert kept.of_files(["0.lance"]) == {}
    assert kept.of_files([f"x/{ids_of_files.MOST_FILES}.lance"]) != {}


def test_what_is_kept_is_bounded_and_forgetting_changes_no_answer(local_tables: TableStore) -> None:
    local_tables.handles.fragment_ids = FragmentIds(kept=4)
    table = local_tables.create("t", PEOPLE, rows=people("a"))
    for number in range(8):
        table = local_tables.commit_staged(local_tables.stage_append(table, people(number, f"x{number}")), "op")
        same_as_a_scan(local_tables, table, ["0", f"x{number}", "none"])
    assert local_tables.handles.fragment_ids.kept() <= 4


def test_files_of_one_row_count_for_what_they_take_up() -> None:
    kept = FragmentIds(kept=1_000)
    for number in range(2_000):
        kept.keep({f"file-{number}": [f"id-{number}"]})
    assert kept.kept() == 1_000 // (1 + ids_of_files.IDS_OF_A_FILE)
    assert kept.of_files(["data/file-1999", "data/file-0"]) == {"file-1999": ["id-1999"]}
