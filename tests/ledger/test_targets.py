"""Targets by the beginning of a commit id and by time, wherever a target is taken, and what is said when they fail."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, NotFound, StaleCursor
from omnigraph.ledger.branches.names import is_commit_prefix
from omnigraph.ledger.values import GraphCommit

SCHEMA = "node P { slug: String @key\n n: I32?\n doc: Blob? }"


def put(graph: og.Graph, n: int, branch: str = "main") -> GraphCommit:
    graph.load([{"type": "P", "data": {"slug": "p", "n": n}}], mode="merge", branch=branch)
    return graph.head(branch)


def unique_prefix(graph: og.Graph, wanted: str) -> str:
    """The shortest beginning that no other commit has, in small letters."""
    others = [c.graph_commit_id for c in graph.log() if c.graph_commit_id != wanted]
    return next(wanted[:n].lower() for n in range(4, 27) if not any(o.startswith(wanted[:n]) for o in others))


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "graph", schema=SCHEMA)


def value(graph: og.Graph, at: Any, **options: Any) -> Any:
    found = graph.entity("P", "p", at=at, **options)
    return found and found["n"]


def test_a_target_by_its_beginning_and_by_time_everywhere(graph: og.Graph) -> None:
    first = put(graph, 1)
    time.sleep(0.002)
    second = put(graph, 2)
    time.sleep(0.002)
    third = put(graph, 3)
    begun = unique_prefix(graph, first.graph_commit_id)
    targets: list[Any] = [
        begun,
        begun.upper(),
        first.created,
        first.created + timedelta(microseconds=1),
        first.created.astimezone(timezone(timedelta(hours=5))),
        first.created.isoformat(),
        first.created.isoformat().replace("+00:00", "Z"),
    ]
    for at in targets:
        assert value(graph, at) == 1, at
        assert graph.snapshot(at).head == first
        assert graph.query("query q() { match { $p: P } return { $p.n as n } }", at=at).rows() == [{"n": 1}]
        assert [c.new["n"] for c in graph.diff(at, "main") if c.new] == [3]
        assert graph.catalog(at).types()
    assert value(graph, second.created) == 2
    assert value(graph, datetime.now(UTC)) == value(graph, "0 seconds ago") == 3
    assert graph.commit(begun) == graph.commit(first.created.isoformat()) == first
    assert [c.graph_commit_id for c in (b.commit for b in graph.changes(since=begun))] == [
        second.graph_commit_id,
        third.graph_commit_id,
    ]
    graph.tags.create("v1", begun)
    assert value(graph, "v1") == 1
    assert [b.commit for b in graph.changes(since="v1")] == [second, third]
    graph.branch_create("old", begun)
    assert value(graph, "old") == 1
    graph.branch_create("older", first.created)
    assert value(graph, "older") == 1
    (change,) = graph.commit_changes(unique_prefix(graph, second.graph_commit_id))
    assert change.new is not None
    assert change.new["n"] == 2
    graph.restore(first.created)
    assert value(graph, None) == 1
    # A time is one of the branch: before it was made it is that of its source.
    put(graph, 9, branch="old")
    assert value(graph, "0 seconds ago", branch="old") == 9
    assert value(graph, first.created, branch="old") == 1


def test_a_branch_or_tag_of_that_name_comes_first(graph: og.Graph) -> None:
    first = put(graph, 1)
    put(graph, 2)
    begun = unique_prefix(graph, first.graph_commit_id)
    graph.branch_create(begun)
    put(graph, 7, branch=begun)
    assert value(graph, begun) == 7
    assert value(graph, begun.upper()) == 1
    graph.tags.create("2020-01-01", "main")
    assert value(graph, "2020-01-01") == 2


REFUSED: list[tuple[Any, type[Exception], str]] = [
    ("2001-01-01T00:00:00Z", NotFound, r"`main` has no commit at or before 2001-01-01 00:00:00: its first one, 01"),
    (datetime(2001, 1, 1, tzinfo=UTC), NotFound, "has no commit at or before 2001-01-01"),
    ("99999 weeks ago", NotFound, "has no commit at or before"),
    ("2026-01-01T00:00:00", BadRequest, "has no time zone"),
    ("2026-01-01", BadRequest, "write 2026-01-01T00:00:00Z for UTC"),
    (datetime(2026, 1, 1), BadRequest, "has no time zone"),
    ("2026-13-01T00:00:00Z", BadRequest, "is not an ISO time"),
    ("two moons ago", BadRequest, "write `2 hours ago`"),
    ("01ZZZZZ", NotFound, "is no branch, tag or commit"),
    (True, BadRequest, "a target is a branch, a tag"),
    (1.5, BadRequest, "or a time, not float"),
]


def test_targets_that_name_nothing_are_refused_in_words(graph: og.Graph) -> None:
    put(graph, 1)
    for target, error, message in REFUSED:
        with pytest.raises(error, match=message):
            graph.snapshot(target)
    with pytest.raises(StaleCursor, match="neither a cursor nor a commit, tag or time"):
        graph.changes(since="nothing")


def test_an_ambiguous_beginning_lists_what_it_may_mean(graph: og.Graph) -> None:
    made = [put(graph, n).graph_commit_id for n in range(8)]
    with pytest.raises(
        BadRequest, match=r"`01.{3}` is the beginning of 9 commits: 01.*Init on main.* and 4 more"
    ) as caught:
        graph.snapshot(made[0][:5])
    assert "write more of the one you mean" in caught.value.message
    with pytest.raises(NotFound, match="of a commit id write 4 characters or more"):
        graph.snapshot(made[0][:3])
    with pytest.raises(BadRequest, match="is the beginning of"):
        graph.commit(made[0][:6])


def test_what_can_begin_a_commit_id() -> None:
    assert is_commit_prefix("01m7")
    assert is_commit_prefix("01M7JEKAGT")
    for text in ("", "01", "01m", "review", "9999", "01m7-", "01IL", "0" * 26):
        assert not is_commit_prefix(text), text


def test_blobs_come_out_whole_in_ranges_and_as_files_on_any_snapshot(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    (tmp_path / "one.bin").write_bytes(bytes(range(256)) * 40)
    data = bytes(range(256)) * 40
    graph.load(
        [
            {"type": "P", "data": {"slug": "p", "doc": (tmp_path / "one.bin").as_uri()}},
            {"type": "P", "data": {"slug": "none"}},
        ],
        mode="append",
    )
    old = graph.head().graph_commit_id
    graph.load([{"type": "P", "data": {"slug": "p", "doc": "dHdv"}}], mode="merge")
    assert graph.read_blob("P", "p", "doc") == b"two"
    assert graph.read_blob("P", "p", "doc", at=old) == data
    for start, end in [(0, 0), (0, 1), (5, 5), (100, 5000), (10_239, None), (10_240, None), (0, 10**9), (20_000, None)]:
        assert graph.read_blob("P", "p", "doc", at=old, start=start, end=end) == data[start:end], (start, end)
    with graph.open_blob("P", "p", "doc", at=old) as file:
        assert file.readable()
        assert file.seekable()
        assert not file.writable()
        assert file.read(3) == data[:3]
        assert file.seek(-5, 2) == len(data) - 5
        assert file.read() == data[-5:]
        assert file.seek(1000) == 1000
        assert file.tell() == 1000
        assert file.read(2000) == data[1000:3000]
        assert file.seek(0) == 0
        assert file.read() == data
        assert file.seek(10**6) == 10**6
        assert file.read() == b""
    graph.branch_create("side", old)
    graph.optimize()
    assert graph.read_blob("P", "p", "doc", branch="side", end=4) == data[:4]
    for arguments, error, message in [
        (("P", "nobody", "doc"), NotFound, "there is no P `nobody`"),
        (("P", "none", "doc"), NotFound, "`doc` of P `none` has no value"),
        (("P", "p", "dox"), NotFound, "no property `dox`; did you mean `doc`"),
        (("P", "p", "n"), BadRequest, "`n` of P is no blob but I32; its blobs are `doc`"),
        (("Q", "p", "doc"), NotFound, "no type `Q`"),
    ]:
        with pytest.raises(error, match=message):
            graph.read_blob(*arguments)
    with pytest.raises(BadRequest, match="are no range"):
        graph.read_blob("P", "p", "doc", start=3, end=1)
    with pytest.raises(BadRequest, match="are no range"):
        graph.read_blob("P", "p", "doc", start=-1)
