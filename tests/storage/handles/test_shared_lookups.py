"""Look-ups by id that wait for each other are made at once: nobody waits for nothing, and everybody gets his own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.storage.handles import shared_lookups
from omnigraph.storage.handles.shared_lookups import SharedLookups
from omnigraph.storage.reading import reading
from omnigraph.storage.values import TableVersion

AGES = {f"p{number}": number for number in range(100)}


class Table:
    """Rows to ask for, and a door that every question has to pass."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.open = threading.Event()
        self.open.set()

    def ask(self, ids: Sequence[str]) -> pa.Table:
        self.asked.append(tuple(ids))
        assert self.open.wait(30)
        there = sorted(set(ids) & AGES.keys(), reverse=True)
        return pa.table({"id": pa.array(there, pa.string()), "age": pa.array([AGES[one] for one in there], pa.int64())})


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look-up at a time, for which everybody waits."""
    monkeypatch.setattr(shared_lookups, "PATIENCE", 30.0)
    monkeypatch.setattr(shared_lookups, "AT_ONCE", 1)


def age(rows: pa.Table) -> list[int]:
    assert rows.column_names == ["id", "age"]
    return list(rows["age"].to_pylist())


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def behind_the_first(
    lookups: SharedLookups, table: Table, pool: ThreadPoolExecutor, *wanted: str
) -> list[Future[pa.Table]]:
    """Look-ups that all came while the first one was under way; it still is."""
    table.open.clear()
    first = pool.submit(lookups.get, "t", "p0", table.ask)
    until(lambda: len(table.asked) == 1)
    rest: list[Future[pa.Table]] = []
    for one in wanted:
        rest.append(pool.submit(lookups.get, "t", one, table.ask))
        until(lambda: len(lookups._waiting.get("t", ())) == len(rest))
    return [first, *rest]


def test_a_lone_reader_asks_at_once_and_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_lookups, "_Reader", None)  # who waits needs one
    lookups, table = SharedLookups("id"), Table()
    for one in ("p3", "p4", "nobody"):
        assert age(lookups.get("t", one, table.ask)) == ([AGES[one]] if one in AGES else [])
    assert table.asked == [("p3",), ("p4",), ("nobody",)]
    assert not lookups._under_way


def test_two_readers_do_not_wait_for_each_other_and_a_third_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_lookups, "PATIENCE", 30.0)
    lookups, table = SharedLookups("id"), Table()
    table.open.clear()
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(lookups.get, "t", one, table.ask) for one in ("p1", "p2")]
        until(lambda: len(table.asked) == 2)
        found += [pool.submit(lookups.get, "t", one, table.ask) for one in ("p3", "p4")]
        until(lambda: len(lookups._waiting.get("t", ())) == 2)
        table.open.set()
        assert [age(each.result(30)) for each in found] == [[1], [2], [3], [4]]
    assert sorted(table.asked[:2]) == [("p1",), ("p2",)]
    assert [sorted(each) for each in table.asked[2:]] == [["p3", "p4"]]
    assert not lookups._under_way
    assert not lookups._waiting


@pytest.mark.usefixtures("patient")
def test_those_who_wait_are_answered_by_one_look_up() -> None:
    lookups, table = SharedLookups("id"), Table()
    wanted = ["p7", "p3", "nobody", "p7", "p9"]
    with ThreadPoolExecutor(8) as pool:
        found = behind_the_first(lookups, table, pool, *wanted)
        table.open.set()
        assert [age(each.result(30)) for each in found] == [[0], [7], [3], [], [7], [9]]
    assert table.asked == [("p0",), ("p7", "p3", "nobody", "p9")]
    assert not lookups._under_way
    assert not lookups._waiting


@pytest.mark.usefixtures("patient")
def test_a_group_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_lookups, "MOST_TOGETHER", 3)
    lookups, table = SharedLookups("id"), Table()
    with ThreadPoolExecutor(9) as pool:
        found = behind_the_first(lookups, table, pool, *(f"p{number}" for number in range(1, 8)))
        table.open.set()
        assert [age(each.result(30)) for each in found] == [[number] for number in range(8)]
    assert [len(each) for each in table.asked] == [1, 3, 3, 1]


def test_who_has_waited_long_enough_asks_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_lookups, "PATIENCE", 0.05)
    monkeypatch.setattr(shared_lookups, "AT_ONCE", 1)
    lookups, slow, table = SharedLookups("id"), Table(), Table()
    slow.open.clear()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(lookups.get, "t", "p0", slow.ask)
        until(lambda: len(slow.asked) == 1)
        others = [pool.submit(lookups.get, "t", one, table.ask) for one in ("p1", "p2")]
        assert [age(each.result(30)) for each in others] == [[1], [2]]
        assert not first.done()
        slow.open.set()
        assert age(first.result(30)) == [0]
    assert not lookups._under_way


@pytest.mark.usefixtures("patient")
def test_readers_of_other_versions_share_nothing() -> None:
    lookups, table, other = SharedLookups("id"), Table(), Table()
    table.open.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lookups.get, ("t", 1), "p0", table.ask)
        until(lambda: len(table.asked) == 1)
        assert age(lookups.get(("t", 2), "p5", other.ask)) == [5]
        table.open.set()
        first.result(30)
    assert (table.asked, other.asked) == ([("p0",)], [("p5",)])


@pytest.mark.usefixtures("patient")
def test_everybody_has_his_own_error() -> None:
    lookups, table = SharedLookups("id"), Table()

    def ask(ids: Sequence[str]) -> pa.Table:
        rows = table.ask(ids)
        if "p5" in ids:
            raise OSError(f"cannot read {ids}")
        return rows

    table.open.clear()
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(lookups.get, "t", "p0", table.ask)
        until(lambda: len(table.asked) == 1)
        found = [pool.submit(lookups.get, "t", one, ask) for one in ("p4", "p5", "p5", "p6")]
        until(lambda: len(lookups._waiting.get("t", ())) == 4)
        table.open.set()
        first.result(30)
        assert age(found[0].result(30)) == [4]
        errors = [found[1].exception(30), found[2].exception(30)]
        assert age(found[3].result(30)) == [6]
    assert errors[0] is not errors[1]
    assert [str(error) for error in errors] == ["cannot read ('p5',)"] * 2
    assert not lookups._under_way


@pytest.mark.usefixtures("patient")
def test_who_may_wait_no_more_goes_and_the_others_get_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_lookups, "PATIENCE", 0.0)
    monkeypatch.setattr(shared_lookups, "LOOK_ROUND", 0.01)
    lookups, slow = SharedLookups("id"), Table()
    slow.open.clear()

    def stop() -> None:
        raise TimeoutError("enough")

    with ThreadPoolExecutor(4) as pool:
        group = [lookups._entered("t", one) for one in ("p0", "p1", "p2")]
        assert group[0] is None  # the first asks for itself
        leads = pool.submit(lookups._read, "t", lookups._taken("t"), slow.ask)
        until(lambda: len(slow.asked) == 1)
        assert group[1] is not None
        assert group[2] is not None
        with pytest.raises(TimeoutError):
            lookups._waited("t", group[1], stop)
        slow.open.set()
        leads.result(30)
    assert group[2].rows is not None
    assert age(group[2].rows) == [2]


@pytest.mark.usefixtures("patient")
def test_who_goes_when_it_is_his_turn_passes_it_on() -> None:
    lookups, table = SharedLookups("id"), Table()
    assert lookups._entered("t", "p0") is None
    first, second = lookups._entered("t", "p1"), lookups._entered("t", "p2")
    assert first is not None
    assert second is not None
    lookups._left("t")
    assert first.group == [first, second]
    lookups._gone("t", first)
    assert lookups._waited("t", second, None) == [second]
    lookups._read("t", [second], table.ask)
    assert table.asked == [("p2",)]
    assert not lookups._under_way


SCHEMA = "node Person { slug: String @key age: I64? tags: [String]? }\n"


@pytest.mark.parametrize("optimized", [True, False])
def test_many_threads_find_what_each_would_find_alone(tmp_path: Path, optimized: bool) -> None:
    """The judge is the record that was loaded: `ages` is what each version has, kept beside it."""
    graph = og.init(tmp_path / "g", schema=SCHEMA)
    ages: dict[str, int] = {f"p{number}": number for number in range(3000)}
    rows = [{"slug": slug, "age": number, "tags": [slug, "x"]} for slug, number in ages.items()]
    graph.load(rows, type="Person", mode="append")
    if optimized:
        graph.optimize()
    states: list[tuple[TableVersion, dict[str, int]]] = []
    for turn in range(4):
        pin = graph.snapshot().tables["node:Person"]
        states.append((TableVersion(pin.location, pin.lance_branch, pin.version), dict(ages)))
        graph.mutate(
            "query m($s: String, $a: I64) { update Person set { age: $a } where slug = $s }", s=f"p{turn}", a=-turn - 1
        )
        ages[f"p{turn}"] = -turn - 1
        graph.mutate("query m($s: String) { delete Person where slug = $s }", s=f"p{100 + turn}")
        del ages[f"p{100 + turn}"]
    tables = graph._store.tables

    def look(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(60):
            version, there = draw.choice(states)
            wanted = f"p{draw.choice([draw.randrange(8), 100 + draw.randrange(6), draw.randrange(3300)])}"
            columns = draw.choice([["id", "age"], ["age", "id"], ["id", "tags", "age"]])
            place = tables.place_of_id(version, wanted)
            found = tables.row_of_id(version, wanted, columns, place=place)
            assert found.column_names == columns
            expected = [there[wanted]] if wanted in there else []
            assert found["age"].to_pylist() == expected
            assert found["id"].to_pylist() == [wanted] * len(expected)
            assert found.schema == tables.scan_table(version, columns=columns, limit=1).schema

    with ThreadPoolExecutor(16) as pool:
        for each in [pool.submit(look, seed) for seed in range(16)]:
            each.result(120)
    assert not tables.handles.shared_lookups._under_way


def test_readers_of_a_graph_do_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_lookups, "PATIENCE", 30.0)
    monkeypatch.setattr(shared_lookups, "AT_ONCE", 1)
    graph = og.init(tmp_path / "g", schema=SCHEMA)
    graph.load([{"slug": f"p{number}", "age": number} for number in range(20_000)], type="Person", mode="append")
    graph.optimize()
    query = "query q($s: String) { match { $p: Person { slug: $s } } return { $p.age } }"
    assert graph.query(query, s="p5").scalar() == 5
    asked: list[int] = []
    read = reading._rows_in
    open_ = threading.Event()

    def counted(handles: object, table: object, ids: Sequence[str], *rest: object) -> pa.Table:
        asked.append(len(ids))
        assert open_.wait(30)
        return read(handles, table, ids, *rest)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(reading, "_rows_in", counted)
    waiting = graph._store.tables.handles.shared_lookups._waiting
    with ThreadPoolExecutor(12) as pool:
        found = [pool.submit(lambda number=number: graph.query(query, s=f"p{number}").scalar()) for number in range(12)]
        until(lambda: sum(map(len, waiting.values())) == 11)
        open_.set()
        assert [each.result(30) for each in found] == list(range(12))
    assert asked == [1, 11]
