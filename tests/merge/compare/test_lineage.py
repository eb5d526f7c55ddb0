"""Merge and diff follow lineage: nothing is looked up by id, and whole files are taken where every row is new."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts
from omnigraph.ledger.snapshots import table_of
from omnigraph.merge.compare import images
from omnigraph.merge.compare.lines import Stretch, meeting_of
from omnigraph.merge.merge import merge
from omnigraph.merge.placement import Placement
from omnigraph.merge.stage import stage_located
from omnigraph.storage.values import ForkInfo, TableVersion
from tests.faults.harness import run_killed
from tests.merge.graphs import CITY, PERSON, ages, changed, city, drop, person, put, rows, store_of
from tests.model.steps import Step, take

MANY = stage_located.ADOPTED_ROWS


def people(count: int, **values: Any) -> pa.Table:
    """A table of people p0, p1, ..."""
    rows: dict[str, Any] = {"slug": [f"p{n}" for n in range(count)], "age": pa.array([n % 90 for n in range(count)])}
    return pa.table({**rows, **values})


def data_files(graph: og.Graph, branch: str) -> list[Path]:
    """The data files that a branch's line of people owns."""
    pin = store_of(graph).snapshot(branch).pin(PERSON)
    line = f"tree/{pin.lance_branch}/" if pin.lance_branch else ""
    return sorted(Path(graph.uri, pin.location, line, "data").glob("*.lance"))


@pytest.fixture
def no_lookups(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on a look-up by id fails the test."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a row was looked up by its id")

    put(graph, "main", *(person(f"m{n}", age=n) for n in range(6)))
    graph.branch_create("side")
    put(graph, "side", person("m0", age=50), person("s"))
    put(graph, "side", person("m1", age=51))
    drop(graph, "side", "Person", "m2")
    put(graph, "main", person("m3", age=53), person("t"))
    drop(graph, "main", "Person", "m4")
    monkeypatch.setattr(type(store_of(graph).tables), "take_ids", refuse)


@pytest.mark.usefixtures("no_lookups")
def test_a_diff_looks_nothing_up_by_id(graph: og.Graph) -> None:
    assert changed(graph, "main", "side") == [
        ("update", "Person", "m0"),
        ("update", "Person", "m1"),
        ("delete", "Person", "m2"),
        ("update", "Person", "m3"),
        ("insert", "Person", "m4"),
        ("insert", "Person", "s"),
        ("delete", "Person", "t"),
    ]


def test_a_merge_looks_nothing_up_by_id_to_compare_and_to_write(tmp_path: Path, monkeypatch: Any) -> None:
    with og.init(tmp_path / "graph", schema="node Person { slug: String @key  age: I32? }") as graph:
        put(graph, "main", *(person(f"m{n}", age=n) for n in range(6)))
        graph.branch_create("side")
        put(graph, "side", person("m0", age=50), person("s"))
        drop(graph, "side", "Person", "m2")
        put(graph, "main", person("m3", age=53), person("t"))

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("a row was looked up by its id")

        with monkeypatch.context() as patched:
            patched.setattr(type(store_of(graph).tables), "take_ids", refuse)
            result = graph.merge("side")
        (counts,) = result.tables
        assert (counts.inserts, counts.updates, counts.deletes) == (1, 1, 1)
        assert ages(graph) == {"m0": 50, "m1": 1, "m3": 53, "m4": 4, "m5": 5, "s": None, "t": None}


def row_ids(graph: og.Graph) -> dict[str, int]:
    """The row ids of people on main, by id."""
    store = store_of(graph)
    found = store.tables.scan_table(table_of(store.snapshot().pin(PERSON)), columns=["id"], with_row_id=True)
    return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist()))


def test_a_few_rows_from_all_over_a_table_get_new_row_ids_and_lineage_still_tells(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance goes through every row id between those that updated rows keep, so a few of many rows keep none."""
    monkeypatch.setattr(stage_located, "ROWS_ANYHOW", 3)
    monkeypatch.setattr(stage_located, "ROWS_PER_UPDATE", 1)
    put(graph, "main", *(person(f"m{n}", age=n) for n in range(9)))
    graph.branch_create("side")
    graph.branch_create("late")
    put(graph, "side", person("m0", age=50), person("m8", age=58))
    put(graph, "main", person("m3", age=53))
    before = row_ids(graph)
    graph.merge("side")
    after = row_ids(graph)
    assert {id_ for id_ in before if before[id_] != after[id_]} == {"m0", "m8"}
    assert changed(graph, "side", "main") == [("update", "Person", "m3")]
    # A row that both have from one merge, and one that collides with what was merged.
    put(graph, "late", person("m0", age=50), person("m8", age=60), person("m1", age=51))
    (conflict,) = graph.merge("late", dry_run=True).conflicts
    assert (conflict.kind.value, conflict.row_id) == ("DivergentUpdate", "m8")
    graph.merge("late", strategy="theirs")
    graph.merge("main", into="side")
    put(graph, "late", person("m4", age=54), person("m5", age=55))
    before = row_ids(graph)
    graph.merge("late")
    assert row_ids(graph) == before, "rows that lie together keep their row ids"
    graph.merge("main", into="side")
    assert ages(graph) == ages(graph, "side")
    assert ages(graph) == {f"m{n}": n for n in range(9)} | {"m0": 50, "m1": 51, "m3": 53, "m4": 54, "m5": 55, "m8": 60}


def test_a_fast_forward_of_a_load_takes_the_files_of_the_source(graph: og.Graph) -> None:
    put(graph, "main", person("before", age=1))
    before = graph.head().graph_commit_id
    graph.branch_create("side")
    graph.load(people(MANY), type="Person", mode="append", branch="side")
    (theirs,) = data_files(graph, "side")
    own = data_files(graph, "main")
    result = graph.merge("side", delete_source=True)
    assert result.outcome == "fast_forward"
    assert result.source_deleted
    assert result.tables[0].inserts == MANY
    (adopted,) = set(data_files(graph, "main")) - set(own)
    assert adopted.name != theirs.name, "names of files are unique across the lines of a table"
    assert not theirs.exists()
    graph.cleanup(keep_versions=1, confirm=True, force=True)
    found = ages(graph)
    assert len(found) == MANY + 1
    assert (found["p7"], found["before"]) == (7, 1)
    put(graph, "main", person("p7", age=99))
    assert ages(graph)["p7"] == 99
    assert graph.verify().findings == ()
    assert before in {commit.graph_commit_id for commit in graph.log()}


def test_rows_of_files_that_were_taken_have_a_lineage_of_their_own(graph: og.Graph) -> None:
    graph.branch_create("side")
    graph.load(people(MANY), type="Person", mode="append", branch="side")
    before = graph.head().graph_commit_id
    graph.merge("side")
    assert changed(graph, "main", "side") == []
    graph.branch_create("next")
    put(graph, "next", person("p3", age=33))
    drop(graph, "next", "Person", "p4")
    put(graph, "main", person("p5", age=55))
    graph.merge("next")
    found = ages(graph)
    assert (found["p3"], "p4" in found, found["p5"], len(found)) == (33, False, 55, MANY - 1)
    counts = {count.table_key: count for count in graph.diff(before, "main").summary()}
    assert (counts[PERSON].inserts, counts[PERSON].updates, counts[PERSON].deletes) == (MANY - 1, 0, 0)


def test_a_file_with_rows_that_are_not_taken_is_not_taken_either(graph: og.Graph) -> None:
    put(graph, "main", person("other"))
    graph.branch_create("side")
    graph.load(people(MANY), type="Person", mode="append", branch="side")
    put(graph, "main", person("p1", age=1), person("p2", age=2))
    drop(graph, "side", "Person", "p0")
    result = graph.merge("side")
    assert result.tables[0].inserts == MANY - 3, "two were added on both sides and are the same, one was deleted again"
    assert len(ages(graph)) == MANY


def test_a_row_of_a_load_that_collides_is_found(graph: og.Graph) -> None:
    put(graph, "main", person("other"))
    graph.branch_create("side")
    graph.load(people(MANY), type="Person", mode="append", branch="side")
    put(graph, "main", person("p1", age=77))
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("side")
    assert [(c.kind.value, c.row_id) for c in caught.value.conflicts] == [("DivergentInsert", "p1")]
    result = graph.merge("side", strategy="ours")
    assert result.tables[0].inserts == MANY - 1
    assert ages(graph)["p1"] == 77


def test_a_store_that_cannot_copy_gets_the_rows_written(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.errors import StorageError
    from omnigraph.storage.objects.objects import ObjectStore

    def refuse(self: ObjectStore, path: str, to: str) -> None:
        raise StorageError(f"copying {path} failed: the object is too large for one request")

    monkeypatch.setattr(ObjectStore, "copy", refuse)
    graph.branch_create("side")
    graph.load(people(MANY), type="Person", mode="append", branch="side")
    graph.merge("side")
    assert len(ages(graph)) == MANY


def test_a_write_beside_a_fast_forward_makes_it_a_merge_that_is_checked(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.merge import merge as module
    from tests.merge.graphs import knows

    put(graph, "main", person("a"), person("b"))
    graph.branch_create("side")
    put(graph, "side", knows("k", "a", "b"))
    staged = module.stage
    calls: list[int] = []

    def stage_late(*args: object, **options: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            drop(graph, "main", "Person", "a")
        return staged(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "stage", stage_late)
    with pytest.raises(MergeConflicts, match="OrphanEdge"):
        graph.merge("side")


def test_versions_of_several_lines_meet_at_one_place() -> None:
    made = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    forks = {
        "a": ForkInfo("a", None, 3, made),
        "b": ForkInfo("b", "a", 5, made),
        "c": ForkInfo("c", "main", 4, made),
    }

    def meet(*tables: tuple[str | None, int]) -> Any:
        meeting = meeting_of([TableVersion("t", line, version) for line, version in tables], forks)
        assert meeting is not None
        return (meeting.table.branch, meeting.table.version), meeting.ways

    assert meet((None, 2), (None, 7)) == ((None, 2), ((), (Stretch(None, 2, 7),)))
    assert meet((None, 7), ("a", 4)) == ((None, 3), ((Stretch(None, 3, 7),), (Stretch("a", 3, 4),)))
    assert meet(("a", 6), ("b", 9)) == (("a", 5), ((Stretch("a", 5, 6),), (Stretch("b", 5, 9),)))
    assert meet(("b", 9), ("c", 6)) == (
        (None, 3),
        ((Stretch("a", 3, 5), Stretch("b", 5, 9)), (Stretch(None, 3, 4), Stretch("c", 4, 6))),
    )
    assert meet((None, 3), ("a", 4), (None, 6))[0] == (None, 3)
    assert meeting_of([TableVersion("t", None, 3), TableVersion("t", "gone", 4)], forks) is None


@pytest.mark.s3
@pytest.mark.slow
def test_files_are_taken_on_an_object_store_too(s3_uri: Callable[[], str]) -> None:
    with og.init(s3_uri(), schema="node Person { slug: String @key  age: I64? }") as graph:
        put(graph, "main", person("before", age=1))
        graph.branch_create("side")
        graph.load(people(MANY), type="Person", mode="append", branch="side")
        store = store_of(graph)
        location = store.snapshot().pin(PERSON).location
        before = {entry.path for entry in store.objects.list(f"{location}/data")}
        result = graph.merge("side", delete_source=True)
        assert result.source_deleted
        (adopted,) = {entry.path for entry in store.objects.list(f"{location}/data")} - before
        assert adopted.endswith(".lance")
        assert len(ages(graph)) == MANY + 1


def test_a_load_is_taken_over_without_sending_its_rows_anywhere(graph: og.Graph) -> None:
    def refuse(function: Any, items: Any, doing: str) -> list[Any]:
        raise AssertionError("rows were sent to be compared or written")

    graph.branch_create("side")
    graph.load(people(MANY), type="Person", mode="append", branch="side")
    result = merge(store_of(graph), "side", placement=Placement("spark", refuse, least_rows=100))
    assert (result.outcome, result.tables[0].inserts) == ("fast_forward", MANY)
    graph.branch_create("more")
    graph.load(people(200, age=pa.array([91] * 200)), type="Person", mode="merge", branch="more")
    with pytest.raises(AssertionError, match="sent"):
        merge(store_of(graph), "more", placement=Placement("spark", refuse, least_rows=100))


def test_a_load_with_blobs_is_taken_over_without_comparing_them(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(value: bytes | None) -> str | None:
        raise AssertionError("bytes were compared")

    put(graph, "main", city("rome", map="AAA="))
    graph.branch_create("side")
    put(graph, "side", city("oslo", map="AAE="), city("bern"))
    put(graph, "main", city("lima", map="AAI="))
    with monkeypatch.context() as patched:
        patched.setattr(images, "digest", refuse)
        assert graph.merge("side").tables[0].inserts == 2
    assert {name: row["map"] for name, row in rows(graph, CITY).items()} == {
        "rome": b"\0\0",
        "oslo": b"\0\1",
        "lima": b"\0\2",
        "bern": None,
    }
    graph.branch_create("again")
    put(graph, "again", city("kyiv", map="AAE="))
    put(graph, "main", city("kyiv", map="AAI="))
    with pytest.raises(MergeConflicts, match="DivergentInsert"):
        graph.merge("again")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "landed"),
    [("merge.staged", False), ("write.sidecar_put", False), ("storage.commit.after", True), ("write.published", True)],
)
def test_a_merge_that_takes_files_is_killed(graph: og.Graph, at: str, landed: bool) -> None:
    put(graph, "main", person("before"))
    graph.branch_create("side")
    graph.load(people(MANY), type="Person", mode="append", branch="side")
    run_killed(take, graph.uri, Step("merge", ("side",)), at=at)
    with og.open(graph.uri) as reopened:
        assert len(ages(reopened)) == (MANY + 1 if landed else 1)
        reopened.merge("side", delete_source=True)
        reopened.cleanup(keep_versions=1, confirm=True, force=True)
        assert len(ages(reopened)) == MANY + 1
        assert reopened.verify().findings == ()
