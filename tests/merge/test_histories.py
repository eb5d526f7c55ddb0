"""Histories that are known to break merges: false conflicts, rows that come back, lines that point at each other."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts
from tests.merge.graphs import (
    CITY,
    KNOWS,
    PERSON,
    RATES,
    ages,
    changed,
    city,
    content,
    drop,
    knows,
    person,
    put,
    rates,
    rows,
    store_of,
)


def test_a_branch_that_did_nothing_is_up_to_date(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1))
    graph.branch_create("side")
    head = graph.head()
    result = graph.merge("side")
    assert (result.outcome, result.commit) == ("already_up_to_date", None)
    assert graph.head() == head


def test_a_fast_forward_takes_the_state_of_the_source_as_a_commit_with_two_parents(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1))
    graph.branch_create("side")
    put(graph, "side", person("b", age=2))
    parent = graph.head()
    result = graph.merge("side", actor="act-ada")
    assert result.outcome == "fast_forward"
    assert result.commit is not None
    assert result.commit.parent_commit_id == parent.graph_commit_id
    assert result.commit.merged_parent_commit_id == graph.head("side").graph_commit_id
    assert (result.commit.kind.value, result.commit.actor_id) == ("BranchMerge", "act-ada")
    assert content(graph) == content(graph, "side")


def test_a_merge_with_answers_is_no_fast_forward_since_the_target_gets_another_state(
    graph: og.Graph,
) -> None:
    put(graph, "main", person("a", age=1), person("b", age=1))
    graph.branch_create("side")
    put(graph, "side", person("a", age=2), person("b", age=2))
    result = graph.merge("side", resolutions={(PERSON, "a"): "ours"})
    assert result.outcome.value == "merged"
    assert ages(graph) == {"a": 1, "b": 2}
    assert graph.merge("main", into="side").outcome.value == "fast_forward"
    assert ages(graph, "side") == {"a": 1, "b": 2}


def test_repeated_merges_in_both_directions(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0))
    graph.branch_create("side")
    for turn in range(1, 4):
        put(graph, "side", person("a", age=turn), person(f"s{turn}", age=turn))
        put(graph, "main", person(f"m{turn}", age=turn))
        graph.merge("side")
        drop(graph, "main", "Person", f"s{turn}")
        graph.merge("main", into="side")
        assert ages(graph) == ages(graph, "side")
        assert ages(graph)["a"] == turn
        assert f"s{turn}" not in ages(graph)
    assert graph.merge("side").outcome == "already_up_to_date" or changed(graph, "main", "side") == []


def test_a_criss_cross_brings_no_false_conflict_and_brings_no_deleted_row_back(graph: og.Graph) -> None:
    put(graph, "main", person("x", age=0), person("y", age=0), person("gone", age=0))
    graph.branch_create("left")
    graph.branch_create("right")
    put(graph, "left", person("x", age=1))
    put(graph, "right", person("y", age=1))
    drop(graph, "right", "Person", "gone")
    left, right = graph.head("left").graph_commit_id, graph.head("right").graph_commit_id
    graph.branch_create("old-left", left)
    graph.branch_create("old-right", right)
    graph.merge("old-right", into="left")
    graph.merge("old-left", into="right")
    put(graph, "left", person("x", age=2))
    put(graph, "right", person("y", age=2), person("new", age=7))
    graph.merge("right", into="left")
    assert ages(graph, "left") == {"x": 2, "y": 2, "new": 7}
    graph.merge("left", into="right")
    assert content(graph, "left") == content(graph, "right")


def test_a_criss_cross_in_which_one_base_has_a_list_and_the_other_none(graph: og.Graph) -> None:
    put(graph, "main", city("rome"), city("bern", tags=["x"]), person("y", age=0))
    graph.branch_create("left")
    graph.branch_create("right")
    put(graph, "left", city("rome", tags=["a"]), city("bern", tags=[]))
    put(graph, "right", person("y", age=1))
    for side in ("left", "right"):
        graph.branch_create(f"old-{side}", graph.head(side).graph_commit_id)
    graph.merge("old-right", into="left")
    graph.merge("old-left", into="right")
    put(graph, "right", city("rome", tags=["b"]), city("bern", tags=["x", "y"]))
    graph.merge("right", into="left")
    query = "query q() { match { $c: City } return { $c.name as name, $c.tags as tags } }"
    found = {row["name"]: row["tags"] for row in graph.query(query, branch="left").rows()}
    assert found == {"rome": ["b"], "bern": ["x", "y"]}


def test_a_criss_cross_that_was_settled_differently_is_a_conflict_with_its_versions(graph: og.Graph) -> None:
    put(graph, "main", person("x", age=0))
    graph.branch_create("left")
    graph.branch_create("right")
    put(graph, "left", person("x", age=1))
    put(graph, "right", person("x", age=2))
    graph.branch_create("old-left", graph.head("left").graph_commit_id)
    graph.branch_create("old-right", graph.head("right").graph_commit_id)
    graph.merge("old-right", into="left", strategy="theirs")
    graph.merge("old-left", into="right", strategy="theirs")
    (conflict,) = graph.merge("right", into="left", dry_run=True).conflicts
    assert conflict.kind.value == "DivergentUpdate"
    assert conflict.source is not None
    assert conflict.target is not None
    assert (conflict.source["age"], conflict.target["age"]) == (1, 2)
    graph.merge("right", into="left", strategy="theirs")
    assert ages(graph, "left") == {"x": 1}


@pytest.mark.parametrize("third_is_deleted", [False, True])
def test_two_branches_that_both_merged_a_third(graph: og.Graph, third_is_deleted: bool) -> None:
    put(graph, "main", person("a", age=0), person("b", age=0), person("c", age=0))
    for name in ("one", "two", "third"):
        graph.branch_create(name)
    put(graph, "third", person("a", age=3), person("t", age=3), knows("k", "a", "b"))
    drop(graph, "third", "Person", "c")
    graph.merge("third", into="one")
    graph.merge("third", into="two")
    if third_is_deleted:
        graph.branch_delete("third")
    put(graph, "one", person("a", age=4))
    put(graph, "two", person("b", age=5))
    drop(graph, "two", "Person", "t")
    graph.merge("one", into="two")
    assert ages(graph, "two") == {"a": 4, "b": 5}
    graph.merge("two")
    assert ages(graph) == {"a": 4, "b": 5}
    assert rows(graph, KNOWS).keys() == {"k"}


@pytest.mark.parametrize("on_both_sides", [False, True])
def test_a_merge_that_brings_rows_changes_data(graph: og.Graph, on_both_sides: bool) -> None:
    put(graph, "main", person("a", age=1))
    graph.branch_create("side")
    put(graph, "side", person("b", age=1))
    if on_both_sides:
        put(graph, "main", person("c", age=1))
    result = graph.merge("side")
    assert result.commit is not None
    assert result.commit.changes_data


def test_edits_that_cancel_out_are_no_edit(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1), person("b", age=1))
    graph.branch_create("side")
    put(graph, "side", person("a", age=2), person("brief"))
    drop(graph, "side", "Person", "brief", "b")
    put(graph, "side", person("a", age=1), person("b", age=1))
    put(graph, "main", person("a", age=9))
    drop(graph, "main", "Person", "b")
    result = graph.merge("side")
    assert result.tables == ()
    assert ages(graph) == {"a": 9}
    assert result.commit is not None
    assert not result.commit.changes_data


def test_a_fast_forward_into_a_branch_with_a_child_then_writes_on_each(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0))
    graph.branch_create("parent")
    put(graph, "parent", person("p", age=0))
    graph.branch_create("child", "parent")
    graph.branch_create("source", "parent")
    put(graph, "source", person("s", age=0))
    assert graph.merge("source", into="parent").outcome == "fast_forward"
    assert ages(graph, "child") == {"a": 0, "p": 0}
    put(graph, "child", person("c", age=1), person("p", age=1))
    put(graph, "parent", person("p2", age=2))
    put(graph, "source", person("s2", age=3))
    assert ages(graph, "child") == {"a": 0, "p": 1, "c": 1}
    assert ages(graph, "parent") == {"a": 0, "p": 0, "s": 0, "p2": 2}
    assert ages(graph, "source") == {"a": 0, "p": 0, "s": 0, "s2": 3}
    graph.merge("parent", into="child")
    assert ages(graph, "child") == {"a": 0, "p": 1, "c": 1, "s": 0, "p2": 2}
    graph.branch_delete("source")
    assert ages(graph, "parent") == {"a": 0, "p": 0, "s": 0, "p2": 2}
    assert ages(graph, "child") == {"a": 0, "p": 1, "c": 1, "s": 0, "p2": 2}


def test_a_round_trip_with_only_an_unrelated_change_in_between(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0), city("rome"))
    graph.branch_create("side")
    put(graph, "main", person("b", age=1))
    assert graph.merge("main", into="side").outcome == "fast_forward"
    put(graph, "main", city("oslo"))
    put(graph, "side", person("c", age=2))
    graph.merge("side")
    assert ages(graph) == {"a": 0, "b": 1, "c": 2}
    assert rows(graph, CITY).keys() == {"rome", "oslo"}
    graph.merge("main", into="side")
    assert content(graph, "side") == content(graph)


def test_a_table_that_the_target_inherits_is_taken_over_from_main_by_pointer(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0))
    graph.branch_create("side")
    put(graph, "side", city("rome"))
    put(graph, "main", person("b", age=1))
    graph.merge("main", into="side")
    assert graph.snapshot(branch="side").pin(PERSON) == graph.snapshot().pin(PERSON)
    assert graph.snapshot(branch="side").pin(CITY).lance_branch is not None
    put(graph, "side", person("b", age=2))
    assert ages(graph) == {"a": 0, "b": 1}
    assert ages(graph, "side") == {"a": 0, "b": 2}


def test_the_main_line_never_points_into_a_fork(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0))
    graph.branch_create("side")
    put(graph, "side", person("b", age=1), city("rome", map="b25l"), rates("b", "rome"))
    graph.merge("side", delete_source=True)
    assert "side" not in graph.branch_list()
    assert {pin.lance_branch for pin in graph.snapshot().tables.values()} == {None}
    assert ages(graph) == {"a": 0, "b": 1}
    assert rows(graph, CITY)["rome"]["map"] is not None


def test_an_edge_inserted_again_on_one_branch_and_deleted_on_another(graph: og.Graph) -> None:
    put(graph, "main", person("a"), city("rome"), rates("a", "rome", stars=1))
    graph.branch_create("side")
    drop(graph, "side", "Rates", "a", by="from")
    put(graph, "side", rates("a", "rome", stars=1))
    drop(graph, "main", "Rates", "a", by="from")
    graph.merge("side")
    assert rows(graph, RATES) == {}, "the source wrote it again as it was, so only the target changed it"


def test_an_edge_inserted_again_with_other_values_and_deleted_on_another_is_a_conflict(graph: og.Graph) -> None:
    put(graph, "main", person("a"), city("rome"), rates("a", "rome", stars=1))
    graph.branch_create("side")
    drop(graph, "side", "Rates", "a", by="from")
    put(graph, "side", rates("a", "rome", stars=2))
    drop(graph, "main", "Rates", "a", by="from")
    with pytest.raises(MergeConflicts, match="DeleteVsUpdate"):
        graph.merge("side")


def test_the_same_node_and_edge_added_on_both_sides_are_one(graph: og.Graph) -> None:
    put(graph, "main", person("a"))
    graph.branch_create("side")
    for branch in ("main", "side"):
        put(graph, branch, person("b", age=2), city("rome"), rates("b", "rome", stars=3), knows("k", "a", "b"))
    result = graph.merge("side")
    assert result.tables == ()
    assert [len(rows(graph, key)) for key in (PERSON, CITY, RATES, KNOWS)] == [2, 1, 1, 1]
    assert graph.merge("side").outcome == "already_up_to_date"


def test_a_branch_of_a_branch_of_a_branch(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0))
    parent = "main"
    for depth in range(1, 4):
        graph.branch_create(f"b{depth}", parent)
        put(graph, f"b{depth}", person("a", age=depth), person(f"p{depth}", age=depth))
        parent = f"b{depth}"
    drop(graph, "b3", "Person", "p1")
    put(graph, "b1", person("late", age=8))
    put(graph, "main", person("m", age=9))
    assert changed(graph, "b3", "main") == [
        ("update", "Person", "a"),
        ("insert", "Person", "m"),
        ("delete", "Person", "p2"),
        ("delete", "Person", "p3"),
    ]
    graph.merge("b3")
    assert ages(graph) == {"a": 3, "p2": 2, "p3": 3, "m": 9}
    graph.merge("b1", into="b3")
    assert ages(graph, "b3") == {"a": 3, "p2": 2, "p3": 3, "late": 8}
    graph.merge("b3")
    assert ages(graph) == {"a": 3, "p2": 2, "p3": 3, "late": 8, "m": 9}


def test_a_child_merged_into_its_parent_and_a_parent_into_its_child(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0))
    graph.branch_create("parent")
    graph.branch_create("child", "parent")
    put(graph, "parent", person("p", age=1))
    put(graph, "child", person("c", age=1))
    graph.merge("parent", into="child")
    graph.merge("child", into="parent")
    assert ages(graph, "child") == ages(graph, "parent") == {"a": 0, "p": 1, "c": 1}


@pytest.mark.parametrize("optimized", [("main",), ("side",), ("main", "side")])
def test_a_merge_after_compaction_on_either_side(graph: og.Graph, optimized: tuple[str, ...]) -> None:
    put(graph, "main", *(person(f"p{n}", age=1) for n in range(20)))
    put(graph, "main", *(person(f"p{n}", age=2) for n in range(5)))
    graph.branch_create("side")
    for branch in ("main", "side"):
        for turn in range(4):
            put(graph, branch, person(f"{branch}{turn}", age=turn), person(f"p{turn}", age=10 + turn))
        drop(graph, branch, "Person", "p19" if branch == "main" else "p18")
    before = content(graph, "side")
    for branch in optimized:
        assert graph.optimize(branch=branch).commit is not None
    assert content(graph, "side") == before
    put(graph, "side", person("p10", age=50))
    put(graph, "main", person("p11", age=51))
    graph.merge("side")
    found = ages(graph)
    assert (found["p10"], found["p11"], found["p0"]) == (50, 51, 10)
    assert not {"p18", "p19"} & found.keys()
    assert len(found) == 20 - 2 + 8
    graph.merge("main", into="side")
    assert content(graph) == content(graph, "side")


@pytest.mark.parametrize("optimized", ["main", "side"])
def test_a_merge_after_compaction_and_cleanup(graph: og.Graph, optimized: str) -> None:
    put(graph, "main", *(person(f"p{n}", age=1) for n in range(10)))
    put(graph, "main", person("p0", age=2))
    graph.branch_create("side")
    for branch in ("main", "side"):
        for turn in range(3):
            put(graph, branch, person(f"{branch}{turn}", age=turn))
        drop(graph, branch, "Person", "p9" if branch == "main" else "p8")
    put(graph, "side", person("p1", age=5))
    graph.optimize(branch=optimized)
    graph.cleanup(keep_versions=1, confirm=True, force=True)
    put(graph, "main", person("p2", age=6))
    graph.merge("side")
    found = ages(graph)
    assert (found["p0"], found["p1"], found["p2"]) == (2, 5, 6)
    assert not {"p8", "p9"} & found.keys()
    assert len(found) == 8 + 6
    graph.cleanup(keep_versions=1, confirm=True, force=True)
    graph.merge("main", into="side")
    assert content(graph) == content(graph, "side")


def test_a_branch_that_inherited_an_index_is_read_and_merged_after_its_compaction(graph: og.Graph) -> None:
    put(graph, "main", *(person(name, age=1) for name in "abcde"))
    graph.optimize()
    graph.branch_create("side")
    drop(graph, "side", "Person", "e")
    report = graph.optimize(branch="side")
    assert report.tables[0].fragments_removed
    drop(graph, "side", "Person", "a")
    put(graph, "side", person("b", age=2))
    put(graph, "main", person("f", age=3))
    graph.merge("side")
    assert ages(graph) == {"b": 2, "c": 1, "d": 1, "f": 3}
    graph.merge("main", into="side")
    assert content(graph) == content(graph, "side")


def test_a_merge_while_the_target_is_written_takes_both(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.merge import merge as module

    put(graph, "main", person("a", age=0))
    graph.branch_create("side")
    put(graph, "side", person("s", age=1), person("a", age=1))
    pinned = graph.head("side").graph_commit_id
    staged = module.stage
    calls: list[int] = []

    def stage_late(*args: object, **options: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            put(graph, "main", person("m", age=2))
            put(graph, "side", person("later", age=3))
        return staged(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "stage", stage_late)
    result = graph.merge("side")
    assert len(calls) == 2
    assert ages(graph) == {"a": 1, "s": 1, "m": 2}, "the source is the one that was pinned at the start"
    assert result.commit is not None
    assert result.commit.merged_parent_commit_id == pinned


def test_a_conflict_that_appears_while_the_merge_runs_is_reported(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.merge import merge as module

    put(graph, "main", person("a", age=0))
    graph.branch_create("side")
    put(graph, "side", person("a", age=1))
    staged = module.stage

    def stage_late(*args: object, **options: object) -> object:
        put(graph, "main", person("a", age=2))
        return staged(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "stage", stage_late)
    with pytest.raises(MergeConflicts, match="DivergentUpdate"):
        graph.merge("side")
    assert ages(graph) == {"a": 2}


def test_merges_and_writes_at_the_same_time_lose_nothing(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0))
    for name in ("one", "two"):
        graph.branch_create(name)
        put(graph, name, person(name, age=1))
    failures: list[BaseException] = []

    def run(work: Callable[[], object]) -> Callable[[], None]:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)

        return guarded

    def writes() -> None:
        for number in range(5):
            graph.load([person(f"w{number}", age=2)], mode="append")

    work = [lambda: graph.merge("one"), lambda: graph.merge("two"), writes]
    threads = [threading.Thread(target=run(job)) for job in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert ages(graph) == {"a": 0, "one": 1, "two": 1, **{f"w{n}": 2 for n in range(5)}}


@pytest.mark.slow
def test_a_merge_of_a_branch_that_was_reloaded_whole(graph: og.Graph) -> None:
    count = 50_000

    def people(age_of_first: int) -> list[dict[str, object]]:
        return [{"slug": f"p{n}", "age": age_of_first if n < 100 else n % 90} for n in range(count)]

    graph.load(people(1), type="Person", mode="append")
    graph.branch_create("side")
    graph.load([*people(2)[:-10], {"slug": "new", "age": 3}], type="Person", mode="overwrite", branch="side")
    put(graph, "main", person("p200", age=77), person("m", age=4))
    result = graph.merge("side")
    (counts,) = result.tables
    assert (counts.inserts, counts.updates, counts.deletes) == (1, 100, 10)
    found = ages(graph)
    assert len(found) == count - 10 + 2
    assert (found["p0"], found["p99"], found["p200"], found["new"], found["m"]) == (2, 2, 77, 3, 4)
    assert not any(f"p{n}" in found for n in range(count - 10, count))


@pytest.mark.slow
def test_a_fast_forward_of_many_rows_writes_them_in_pieces(graph: og.Graph) -> None:
    count = 60_000
    put(graph, "main", person("p0", age=1), person("p1", age=1))
    graph.branch_create("side")
    graph.load([{"slug": f"p{n}", "age": n % 90} for n in range(count)], type="Person", mode="merge", branch="side")
    assert graph.merge("side").outcome == "fast_forward"
    assert len(ages(graph)) == count
    assert changed(graph, "main", "side") == []
    store = store_of(graph)
    assert store.snapshot().pin(PERSON).row_count == count


def test_deleting_the_source_is_reported_when_it_is_refused(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0))
    graph.branch_create("side")
    put(graph, "side", person("b", age=1))
    graph.branch_create("child", "side")
    result = graph.merge("side", delete_source=True)
    assert not result.source_deleted
    assert result.source_kept_because is not None
    assert "child" in result.source_kept_because
    assert ages(graph) == {"a": 0, "b": 1}


def test_a_dry_run_shows_the_change_set_and_writes_nothing(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=0), person("b", age=0), person("c", age=0))
    graph.branch_create("side")
    put(graph, "side", person("b", age=1), person("d", age=1), knows("k", "b", "d"))
    drop(graph, "side", "Person", "c")
    put(graph, "main", person("a", age=5))
    before, head = content(graph), graph.head()
    result = graph.merge("side", dry_run=True)
    assert (result.outcome, result.dry_run, result.commit, result.conflicts) == ("merged", True, None, ())
    shown = [(c.op.value, c.type, c.id) for c in result.changes]
    assert shown == [
        ("update", "Person", "b"),
        ("delete", "Person", "c"),
        ("insert", "Person", "d"),
        ("insert", "Knows", "k"),
    ]
    first = next(iter(result.changes))
    assert first.before is not None
    assert first.after is not None
    assert (first.before["age"], first.after["age"]) == (0, 1)
    assert content(graph) == before
    assert graph.head() == head
    graph.merge("side")
    assert changed(graph, head.graph_commit_id, "main") == shown


def test_a_branch_cannot_be_merged_into_itself_or_from_nowhere(graph: og.Graph) -> None:
    with pytest.raises(og.errors.BadRequest, match="into itself"):
        graph.merge("main")
    with pytest.raises(og.errors.NotFound, match="nowhere"):
        graph.merge("nowhere")


def test_a_criss_cross_over_branches_that_are_gone_still_knows_what_was_deleted(graph: og.Graph) -> None:
    put(graph, "main", person("anchor", age=0))
    graph.branch_create("origin")
    put(graph, "origin", person("x", age=0), person("y", age=0), person("gone", age=0))
    for name in ("left", "right"):
        graph.branch_create(name)
        graph.merge("origin", into=name)
    graph.branch_delete("origin")
    put(graph, "left", person("x", age=1))
    drop(graph, "right", "Person", "gone")
    graph.branch_create("old-left", "left")
    graph.branch_create("old-right", "right")
    graph.merge("old-right", into="left")
    graph.merge("old-left", into="right")
    graph.branch_delete("old-left")
    graph.branch_delete("old-right")
    put(graph, "left", person("y", age=2))
    graph.merge("left", into="right")
    graph.merge("right", into="left")
    assert ages(graph, "left") == ages(graph, "right") == {"anchor": 0, "x": 1, "y": 2}
