"""The change feed: one block per commit along first parents, cursors that survive restarts and refuse misuse, gaps."""

from __future__ import annotations

import base64
import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, HistoryGap, NotFound, StaleCursor
from omnigraph.merge.changes import EntityChange
from omnigraph.merge.feed import Page
from tests.merge.graphs import PERSON, SCHEMA, content, drop, knows, person, put, store_of


def blocks(page: Page) -> list[tuple[str, list[tuple[str, str]]]]:
    """The blocks of a page as (commit id, [(operation, id)])."""
    return [(b.commit.graph_commit_id, [(c.op.value, c.id) for c in b.changes]) for b in page.blocks]


def test_one_block_per_commit_with_its_parents_actor_and_changes(graph: og.Graph) -> None:
    graph.load([person("a")], mode="append", actor="act-ada")
    graph.branch_create("side")
    put(graph, "side", person("s1"))
    put(graph, "side", person("s2"))
    put(graph, "main", person("b"))
    graph.merge("side", actor="act-bob")
    found = list(graph.changes().blocks)
    assert [(b.commit.kind.value, [(c.op.value, c.id) for c in b.changes]) for b in found] == [
        ("Init", []),
        ("Load", [("insert", "a")]),
        ("Load", [("insert", "b")]),
        ("BranchMerge", [("insert", "s1"), ("insert", "s2")]),
    ]
    assert [b.commit.actor_id for b in found][1::2] == ["act-ada", "act-bob"]
    merged = found[-1].commit
    assert merged.parent_commit_id == found[-2].commit.graph_commit_id
    assert merged.merged_parent_commit_id == graph.head("side").graph_commit_id


def test_since_a_time_before_there_was_anything(graph: og.Graph) -> None:
    everything = [block.commit for block in graph.changes(since="beginning").blocks]
    assert [block.commit for block in graph.changes(since="1970-01-01T00:00:00Z").blocks] == everything
    assert graph.changes(since="2999-01-01T00:00:00Z").blocks == ()
    assert [block.commit for block in graph.changes(since=datetime(1970, 1, 1, tzinfo=UTC)).blocks] == everything
    assert list(graph.follow(since=datetime(2999, 1, 1, tzinfo=UTC), timeout=0)) == []


@pytest.mark.parametrize(("since", "reason"), [(None, "not NoneType"), (7, "not int"), (datetime(2026, 1, 2), "zone")])
def test_a_start_that_is_none_is_told(graph: og.Graph, since: Any, reason: str) -> None:
    for read in (graph.changes, graph.follow):
        with pytest.raises(BadRequest, match=f"since.*{reason}"):
            read(since=since)


def test_since_a_commit_the_beginning_and_now(graph: og.Graph) -> None:
    put(graph, "main", person("a"))
    first = graph.head().graph_commit_id
    put(graph, "main", person("b"))
    second = graph.head().graph_commit_id
    assert [id for id, _ in blocks(graph.changes(since="beginning"))][1:] == [first, second]
    assert blocks(graph.changes(since=first)) == [(second, [("insert", "b")])]
    assert blocks(graph.changes(since=first.lower())) == [(second, [("insert", "b")])]
    now = graph.changes(since="now")
    assert blocks(now) == []
    put(graph, "main", person("c"))
    assert blocks(graph.changes(since=now.cursor)) == [(graph.head().graph_commit_id, [("insert", "c")])]


def test_pages_end_with_a_cursor_that_survives_a_restart(graph: og.Graph) -> None:
    for number in range(5):
        put(graph, "main", person(f"p{number}"))
    seen: list[str] = []
    cursor = "beginning"
    for _ in range(10):
        with og.open(graph.uri, read_only=True) as fresh:
            page = fresh.changes(since=cursor, limit=2)
            seen += [c.id for b in page.blocks for c in b.changes]
            cursor = page.cursor
    assert seen == [f"p{number}" for number in range(5)]


def test_the_cursor_of_a_block_goes_on_after_that_block(graph: og.Graph) -> None:
    for number in range(3):
        put(graph, "main", person(f"p{number}"))
    all_blocks = list(graph.changes().blocks)
    for position, block in enumerate(all_blocks):
        rest = [b.commit.graph_commit_id for b in graph.changes(since=block.cursor).blocks]
        assert rest == [b.commit.graph_commit_id for b in all_blocks[position + 1 :]]


def test_a_cursor_is_refused_where_it_does_not_belong(graph: og.Graph, tmp_path: Any) -> None:
    put(graph, "main", person("a"))
    graph.branch_create("side")
    cursor = graph.changes(since="now").cursor
    side = graph.changes("side", since="now").cursor
    with pytest.raises(StaleCursor, match="another branch"):
        graph.changes("side", since=cursor)
    with pytest.raises(StaleCursor, match="another filter"):
        graph.changes(since=cursor, types=["Person"])
    with og.init(tmp_path / "other", schema=SCHEMA) as other, pytest.raises(StaleCursor, match="another graph"):
        other.changes(since=cursor)
    graph.branch_delete("side")
    graph.branch_create("side")
    with pytest.raises(StaleCursor, match="deleted"):
        graph.changes("side", since=side)
    for nonsense in ("", "x", "yesterday", "é", base64.urlsafe_b64encode(b"[1]").decode()):
        with pytest.raises(StaleCursor, match="neither a cursor nor a commit"):
            graph.changes(since=nonsense)
    data = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    newer = base64.urlsafe_b64encode(json.dumps({**data, "format": 2}).encode()).decode()
    with pytest.raises(StaleCursor, match="version"):
        graph.changes(since=newer)
    with pytest.raises(BadRequest, match="at least 1"):
        graph.changes(limit=0)


def test_a_commit_that_is_not_on_the_line_of_the_branch_is_refused(graph: og.Graph) -> None:
    put(graph, "main", person("a"))
    graph.branch_create("side")
    put(graph, "side", person("s"))
    with pytest.raises(StaleCursor, match="not on the line"):
        graph.changes(since=graph.head("side").graph_commit_id)


def test_filters_keep_every_block_and_leave_changes_out(graph: og.Graph) -> None:
    put(graph, "main", person("a"), person("b"), knows("k", "a", "b"))
    drop(graph, "main", "Knows", "a", by="from")
    page = graph.changes(kinds=["edge"], ops=["delete"])
    assert [found for _, found in blocks(page)] == [[], [], [("delete", "k")]]


def test_a_filter_for_types_outlives_changes_of_the_schema(graph: og.Graph) -> None:
    """A type that was added later, renamed or dropped is found all along the line; one that never was is refused."""
    put(graph, "main", person("a"))
    source = graph.schema_source()
    graph.apply_schema(source + "node Cat { name: String @key }")
    graph.load([{"type": "Cat", "data": {"name": "tom"}}], mode="append")
    graph.apply_schema(source + 'node Animal @rename_from("Cat") { name: String @key }')
    graph.load([{"type": "Animal", "data": {"name": "rex"}}], mode="append")
    for name in ("Cat", "Animal"):
        found = [change for _, changes in blocks(graph.changes(types=[name])) for change in changes]
        assert found == [("insert", "tom"), ("insert", "rex")]
    page = graph.changes(types=["Cat"])
    graph.apply_schema(source)
    assert [changes for _, changes in blocks(graph.changes(since=page.cursor, types=["Cat"]))] == [
        [("delete", "rex"), ("delete", "tom")]
    ]
    put(graph, "main", person("b"))
    last = graph.changes(since="now", types=["Cat"])
    assert blocks(last) == []
    with pytest.raises(NotFound, match="no type `Dog`"):
        graph.changes(types=["Dog"])


def test_a_gap_at_the_start_of_a_page_is_told_before_anything_is_given(graph: og.Graph) -> None:
    for number in range(4):
        put(graph, "main", person(f"p{number}"))
    line = graph.log()[::-1]
    pins = [store_of(graph).commits.pins(commit.graph_commit_id) for commit in line]
    versions = [pin[PERSON].version for pin in pins[:3] if pin]
    store_of(graph).tables.remove_versions((pins[0] or {})[PERSON].location, None, versions)
    with pytest.raises(HistoryGap) as caught:
        graph.changes()
    assert caught.value.details["graph_commit_id"] == line[0].graph_commit_id
    with pytest.raises(HistoryGap):
        graph.changes(since=line[1].graph_commit_id)
    assert [len(changes) for _, changes in blocks(graph.changes(since=line[3].graph_commit_id))] == [1]
    assert [len(changes) for _, changes in blocks(graph.changes(types=["City"]))] == [0, 0, 0, 0, 0]


def test_commits_that_changed_no_data_have_empty_blocks(graph: og.Graph) -> None:
    for number in range(4):
        put(graph, "main", person(f"p{number}"))
    cursor = graph.changes(since="now").cursor
    assert graph.optimize().commit is not None
    ((_, found),) = blocks(graph.changes(since=cursor))
    assert found == []


def test_the_feed_of_a_branch_goes_back_into_the_line_it_was_made_from(graph: og.Graph) -> None:
    put(graph, "main", person("a"))
    graph.branch_create("side")
    put(graph, "main", person("m"))
    put(graph, "side", person("s"))
    assert [found for _, found in blocks(graph.changes("side"))] == [[], [("insert", "a")], [("insert", "s")]]


def test_history_that_was_cleaned_up_is_a_gap_that_names_the_commit(graph: og.Graph) -> None:
    for number in range(4):
        put(graph, "main", person(f"p{number}"))
    line = graph.log()[::-1]
    pin = store_of(graph).commits.pins(line[2].graph_commit_id)
    assert pin is not None
    store_of(graph).tables.remove_versions(pin[PERSON].location, None, [pin[PERSON].version])
    found = iter(graph.changes().blocks)
    assert [len(list(next(found).changes)) for _ in range(2)] == [0, 1]
    with pytest.raises(HistoryGap) as caught:
        list(next(found).changes)
    assert caught.value.details["graph_commit_id"] == line[2].graph_commit_id
    assert "export" in str(caught.value)


def test_the_changes_of_one_commit(graph: og.Graph) -> None:
    put(graph, "main", person("a"))
    put(graph, "main", person("a", age=1), person("b"))
    found = list(graph.commit_changes(graph.head().graph_commit_id))
    assert [(c.op.value, c.id) for c in found] == [("update", "a"), ("insert", "b")]


def apply_changes(copy: og.Graph, changes: list[EntityChange]) -> None:
    """What a follower does with one block: upserts first, so that no edge ever lacks an end, then deletes."""
    records: list[dict[str, Any]] = []
    for change in changes:
        if change.after is None:
            continue
        data = {name: value for name, value in change.after.items() if not name.startswith("@")}
        if change.kind == "node":
            records.append({"type": change.type, "data": data})
        else:
            assert change.endpoints is not None
            if change.type == "Knows":
                data["id"] = change.id
            records.append({"edge": change.type, "from": change.endpoints[0], "to": change.endpoints[1], "data": data})
    gone = [change for change in changes if change.after is None]
    for change in gone:
        if change.kind == "edge":
            assert change.endpoints is not None
            source, target = change.endpoints
            copy.mutate(f'query q() {{ delete {change.type} where from = "{source}" and to = "{target}" }}')
    put(copy, "main", *records)
    drop(copy, "main", "Person", *(change.id for change in gone if change.type == "Person"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_applying_the_feed_to_a_copy_keeps_it_equal(graph: og.Graph, tmp_path: Any, seed: int) -> None:
    choose = random.Random(seed)
    names = "abcde"
    put(graph, "main", *(person(name, age=0) for name in names))
    graph.branch_create("side")
    with og.init(tmp_path / "copy", schema=SCHEMA) as copy:
        cursor = "beginning"
        for step in range(14):
            branch = choose.choice(["main", "side"])
            what = choose.randrange(5)
            one, two = choose.choice(names), choose.choice(names)
            if what == 0:
                put(graph, branch, person(one, age=step), person(two, age=step + 50))
            elif what == 1:
                put(graph, branch, person(one), person(two), knows(f"{one}{two}", one, two, since=step))
            elif what == 2:
                drop(graph, branch, "Person", one)
            elif what == 3:
                graph.optimize(branch=branch)
            elif not graph.merge("side", strategy="theirs", dry_run=True).conflicts:
                graph.merge("side", strategy="theirs")
            page = graph.changes(since=cursor, limit=3)
            for block in page.blocks:
                apply_changes(copy, list(block.changes))
            cursor = page.cursor
        for block in graph.changes(since=cursor).blocks:
            apply_changes(copy, list(block.changes))
        assert content(copy) == content(graph)
