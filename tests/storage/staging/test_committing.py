"""The strict commit: exactly the next version and ours, or a conflict; with threads and processes racing."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import Pool

import pyarrow as pa
import pytest
from lance.dataset import LanceDataset

from omnigraph.errors import Conflict
from omnigraph.failpoints import FailpointError, active
from omnigraph.storage.constants import OPERATION_ID_PROPERTY
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import Root, parse_root
from omnigraph.storage.values import StagedWrite, TableVersion
from tests.storage.conftest import PEOPLE, people

KINDS = ["append", "insert", "update", "delete", "change", "overwrite", "columns"]


def stage(tables: TableStore, table: TableVersion, kind: str, mark: str = "new") -> StagedWrite:
    if kind == "append":
        return tables.stage_append(table, people(mark))
    if kind == "insert":
        return tables.stage_upsert(table, people(mark))
    if kind == "update":
        return tables.stage_upsert(table, people("b", age=1))
    if kind == "delete":
        return tables.stage_delete(table, ["c"])
    if kind == "change":
        return tables.stage_change(table, people(mark), ["d"])
    if kind == "overwrite":
        return tables.stage_overwrite(table, people(mark))
    return tables.stage_add_columns(table, [pa.field(f"column_{mark}", pa.string())])


def test_a_commit_is_the_next_version_and_tagged(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people(*"abcd"))
    for number, kind in enumerate(KINDS):
        staged = stage(tables, table, kind, f"m{number}") if kind != "change" else stage(tables, table, "append", "m")
        landed = tables.commit_staged(staged, f"operation {number}", extra_properties={"more": "x"})
        assert landed == table.at(table.version + 1)
        (found,) = tables.transactions("t", None, table.version, landed.version)
        assert found.properties == {OPERATION_ID_PROPERTY: f"operation {number}", "more": "x"}
        assert found.uuid == staged.transaction_uuid
        table = landed
        if kind == "overwrite":
            table = tables.commit_staged(tables.stage_upsert(table, people(*"abcd")), "refill")


def without_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave only what Lance itself refuses: as if the other commit came right after the look at HEAD."""
    monkeypatch.setattr("omnigraph.storage.staging.committing.refuse_if_moved", lambda handle, base: None)


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_any_second_commit_from_the_same_base_is_refused_by_lance(
    tables: TableStore, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    table = tables.create("t", PEOPLE, rows=people(*"abcd"))
    table = tables.commit_staged(tables.stage_append(table, people("e")), "second fragment")
    winner, loser = stage(tables, table, first, "one"), stage(tables, table, second, "two")
    without_the_first_look(monkeypatch)
    landed = tables.commit_staged(winner, "winner")
    with pytest.raises(Conflict) as conflict:
        tables.commit_staged(loser, "loser")
    assert "landed_version" not in conflict.value.details
    assert tables.head("t") == landed


@pytest.mark.parametrize("first", ["append", "insert", "overwrite"])
@pytest.mark.parametrize("second", ["append", "insert", "delete", "overwrite"])
def test_the_same_for_a_table_without_fragments(
    tables: TableStore, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    table = tables.create("t", PEOPLE)
    winner, loser = stage(tables, table, first, "one"), stage(tables, table, second, "two")
    without_the_first_look(monkeypatch)
    landed = tables.commit_staged(winner, "winner")
    with pytest.raises(Conflict):
        tables.commit_staged(loser, "loser")
    assert tables.head("t") == landed
    assert tables.scan_table(landed)["id"].to_pylist() == ["one"]


def test_a_table_that_moved_is_refused_before_anything_is_tried(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    stale = tables.stage_append(table, people("stale"))
    tables.commit_staged(tables.stage_append(table, people("b")), "op")
    calls: Counter[str] = Counter()
    tables.on_call = lambda name, location: calls.update([name])
    with pytest.raises(Conflict, match="at version 2 and the write was prepared on 1") as conflict:
        tables.commit_staged(stale, "op")
    assert conflict.value.details == {"expected": 1, "actual": 2}
    assert calls["commit"] == 0


def test_a_rebased_commit_is_never_a_success(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lance lets a change of rows pass over a concurrent index; that it landed is told, and it is ours to undo."""
    table = tables.create("t", PEOPLE, rows=people("a"))
    stale = tables.stage_append(table, people("b"))
    index = tables.stage_index(table, "id", IndexKind.BTREE)
    assert index is not None
    tables.commit_staged(index, "index")
    without_the_first_look(monkeypatch)
    with pytest.raises(Conflict, match="on top of another writer") as conflict:
        tables.commit_staged(stale, "late")
    assert conflict.value.details["landed_version"] == 3
    (found,) = tables.transactions("t", None, 2, 3)
    assert found.properties[OPERATION_ID_PROPERTY] == "late"


def test_a_stale_index_is_never_a_success(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    index = tables.stage_index(table, "id", IndexKind.BTREE)
    assert index is not None
    tables.commit_staged(tables.stage_append(table, people("b")), "op")
    without_the_first_look(monkeypatch)
    with pytest.raises(Conflict):
        tables.commit_staged(index, "late")


def test_a_commit_whose_answer_was_lost_is_recognised(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    staged = tables.stage_append(table, people("b"))
    commit = LanceDataset.commit

    def answer_lost(*arguments: object, **options: object) -> None:
        commit(*arguments, **options)
        raise OSError("connection reset")

    monkeypatch.setattr(LanceDataset, "commit", answer_lost)
    assert tables.commit_staged(staged, "op") == table.at(2)


def test_racing_threads_have_one_winner_each_round(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE)
    workers, rounds = 4, 5
    for turn in range(rounds):
        base = table
        start = threading.Barrier(workers)

        def race(
            number: int, base: TableVersion = base, start: threading.Barrier = start, turn: int = turn
        ) -> TableVersion | None:
            staged = tables.stage_append(base, people(f"{turn}-{number}"))
            start.wait()
            try:
                return tables.commit_staged(staged, f"{turn}-{number}")
            except Conflict:
                return None

        with ThreadPoolExecutor(workers) as pool:
            winners = [landed for landed in pool.map(race, range(workers)) if landed is not None]
        assert winners == [base.at(base.version + 1)]
        table = winners[0]
    assert tables.head("t") == table
    assert tables.count(table) == rounds


def _add_own_rows(path: str, name: str, count: int) -> None:
    tables = TableStore(parse_root(path))
    done = 0
    while done < count:
        base = tables.head("t")
        staged = tables.stage_upsert(base, people(f"{name}-{done}", "shared", age=done))
        try:
            landed = tables.commit_staged(staged, f"{name}-{done}")
        except Conflict as conflict:
            if "landed_version" in conflict.details:
                raise AssertionError("a stale commit landed") from conflict
            continue
        assert landed == base.at(base.version + 1)
        done += 1


def test_racing_processes_lose_nothing_and_repeat_nothing(root: Root, other_process: Pool) -> None:
    tables = TableStore(root)
    tables.create("t", PEOPLE)
    others = [other_process.apply_async(_add_own_rows, (root.uri, f"p{number}", 6)) for number in range(2)]
    _add_own_rows(root.uri, "p2", 6)
    for other in others:
        other.get(timeout=120)
    head = tables.head("t")
    assert head.version == 19
    ids = tables.scan_table(head)["id"].to_pylist()
    assert sorted(ids) == sorted([f"p{number}-{turn}" for number in range(3) for turn in range(6)] + ["shared"])
    found = tables.transactions("t", None, 1, 19)
    assert len({entry.properties[OPERATION_ID_PROPERTY] for entry in found}) == 18


def test_restore_brings_old_content_back_as_a_tagged_new_version(tables: TableStore) -> None:
    first = tables.create("t", PEOPLE, rows=people("a"))
    second = tables.commit_staged(tables.stage_change(first, people("b"), ["a"]), "op")
    third = tables.restore(first, second.version, "undo")
    assert third == first.at(3)
    assert tables.scan_table(third)["id"].to_pylist() == ["a"]
    (found,) = tables.transactions("t", None, 2, 3)
    assert (found.kind, found.properties[OPERATION_ID_PROPERTY]) == ("Restore", "undo")


def test_restore_refuses_a_table_that_moved(tables: TableStore) -> None:
    first = tables.create("t", PEOPLE, rows=people("a"))
    second = tables.commit_staged(tables.stage_append(first, people("b")), "op")
    third = tables.commit_staged(tables.stage_append(second, people("c")), "op")
    with pytest.raises(Conflict):
        tables.restore(first, second.version, "undo")
    assert tables.head("t") == third


def test_a_restore_that_landed_elsewhere_says_where(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tables.create("t", PEOPLE, rows=people("a"))
    second = tables.commit_staged(tables.stage_append(first, people("b")), "op")
    third = tables.commit_staged(tables.stage_append(second, people("c")), "op")
    without_the_first_look(monkeypatch)
    with pytest.raises(Conflict) as conflict:
        tables.restore(first, second.version, "undo")
    assert conflict.value.details["landed_version"] == 4
    mended = tables.restore(third, 4, "mend")
    assert tables.scan_table(mended)["id"].to_pylist() == ["a", "b", "c"]


def test_failpoints_sit_around_the_commit(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    with active("storage.commit.before", "raise"), pytest.raises(FailpointError):
        tables.commit_staged(tables.stage_append(table, people("b")), "op")
    assert tables.head("t") == table
    with active("storage.commit.after", "raise"), pytest.raises(FailpointError):
        tables.commit_staged(tables.stage_append(table, people("b")), "op")
    assert tables.head("t") == table.at(2)


def test_one_commit_costs_one_commit_of_lance(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    calls: Counter[str] = Counter()
    tables.on_call = lambda name, location: calls.update([name])
    tables.commit_staged(tables.stage_upsert(table, people("a", "b")), "op")
    assert calls == {"commit": 1}
