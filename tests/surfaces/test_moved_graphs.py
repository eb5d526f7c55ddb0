"""A graph that was moved or copied works where it is, all of it, and never looks at the place it came from."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pytest

import omnigraph as og
import omnigraph.maintain.relocate  # its failpoints
from omnigraph.failpoints import FailpointError, active
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from tests.faults.harness import run_killed

SCHEMA = "node P {\n    k: String @key\n    t: String? @index\n    b: Blob?\n}\nedge K: P -> P\n"
ALL = "query q() { match { $p: P } return { $p.k, $p.t } order { $p.k } }"
EDGES = "query q() { match { $p: P $p k $q } return { $p.k, $q.k } order { $p.k, $q.k } }"
ADD = "query q($k: String) { insert P { k: $k } }"
BRANCHES = ("main", "one", "two")
ODD_NAMES = ["pl ain", "x y+&=/é%#?z", "a?b", "tree"]

Told = dict[str, list[dict[str, object]]]


def live(uri: str) -> None:
    """A graph with branches of branches, deletions, indexes, blobs, a merge and a tag."""
    with og.init(uri, schema=SCHEMA) as graph:
        people = [{"type": "P", "data": {"k": k, "t": f"t{k}", "b": f"base64:{'QUJD' * 4}"}} for k in "abcdef"]
        graph.load([*people, {"edge": "K", "from": "a", "to": "b"}], mode="append")
        graph.ensure_indices()
        graph.mutate('query q() { delete P where k = "f" }')
        graph.branch_create("one")
        graph.mutate(ADD, k="g", branch="one")
        graph.mutate('query q() { delete P where k = "e" }', branch="one")
        graph.mutate('query q() { update P set { t: "new" } where k = "d" }', branch="one")
        graph.branch_create("two", from_="one")
        graph.load(
            [{"type": "P", "data": {"k": "h"}}, {"edge": "K", "from": "h", "to": "a"}], mode="append", branch="two"
        )
        graph.ensure_indices("two")
        graph.tags.create("v1", "two")
        graph.mutate('query q() { delete P where k = "a" }', branch="two")
        graph.mutate(ADD, k="i")


def told(graph: og.Graph) -> Told:
    """What the graph says at every branch, at its tag and at every commit."""
    targets = {*BRANCHES, "v1"} | {c.graph_commit_id for name in BRANCHES for c in graph.log(branch=name)}
    return {f"{at} {query}": graph.query(query, at=at).rows() for at in sorted(targets) for query in (ALL, EDGES)}


def old_states(before: Told) -> set[str]:
    """The states that no later write changes: commits and tags."""
    return {at for at in before if not at.startswith(BRANCHES)}


def keys(graph: og.Graph, branch: str) -> str:
    return "".join(str(row["p.k"]) for row in graph.query(ALL, branch=branch).rows())


def digest(place: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        found.update(str(path.relative_to(place)).encode() + (path.read_bytes() if path.is_file() else b"/"))
    return found.hexdigest()


def poison(place: Path) -> None:
    """Every file stays there, with the same size, and none says what it said."""
    for path in place.rglob("*"):
        if path.is_file():
            path.write_bytes(bytes(255 - byte for byte in path.read_bytes()))


def work_on(uri: str, before: Told) -> None:
    """Reads of all there was, then everything that writes."""
    with og.open(uri, read_only=True) as graph:
        assert told(graph) == before
        assert {change.id for change in graph.diff("one", "two")} >= {"h", "a"}
    with og.open(uri) as graph:
        assert told(graph) == before
        assert {change.id for change in graph.diff("main", "one")} >= {"d", "e", "g"}
        for name in BRANCHES:
            graph.mutate(ADD, k=f"z{name[0]}", branch=name)
            graph.mutate('query q() { delete P where k = "b" }', branch=name)
        graph.branch_create("three", from_="two")
        graph.mutate(ADD, k="y", branch="three")
        assert sorted(keys(graph, "three")) == sorted("cdghyzt")
        graph.merge("three", into="one")
        graph.merge("one")
        assert sorted(keys(graph, "main")) == sorted("cdghiyzmzozt")
        for name in (*BRANCHES, "three"):
            graph.optimize(branch=name)
        after = told(graph)
        assert {at: after[at] for at in old_states(before)} == {at: before[at] for at in old_states(before)}
        assert graph.verify().ok
        graph.cleanup(keep_versions=3, confirm=True)
        assert graph.verify().ok
        assert sorted(keys(graph, "main")) == sorted("cdghiyzmzozt")
        assert sorted(keys(graph, "three")) == sorted("cdghyzt")


@pytest.fixture
def original(tmp_path: Path) -> Path:
    place = tmp_path / "original"
    live(str(place))
    return place


@pytest.fixture
def before(original: Path) -> Told:
    with og.open(original, read_only=True) as graph:
        return told(graph)


def to_place(source: str, target: str) -> None:
    """What `cp -r` and `aws s3 sync` do, from anywhere to anywhere."""
    here, there = open_objects(parse_root(source)), open_objects(parse_root(target))
    for entry in here.list():
        there.put(entry.path, here.get(entry.path)[0])


def test_moved_on_a_disk(original: Path, before: Told, tmp_path: Path) -> None:
    shutil.move(original, tmp_path / "moved")
    work_on(str(tmp_path / "moved"), before)
    assert not original.exists()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_copied_to_any_path(original: Path, before: Told, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copies" / name
    shutil.copytree(original, copy)
    poison(original)
    poisoned = digest(original)
    work_on(str(copy), before)
    assert digest(original) == poisoned
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copies", "original"]


def test_copied_from_an_odd_path_to_a_plain_one(tmp_path: Path) -> None:
    odd, plain = tmp_path / "x y+&=é%#?z", tmp_path / "plain"
    live(str(odd))
    with og.open(odd, read_only=True) as graph:
        before = told(graph)
    odd.rename(plain)
    work_on(str(plain), before)
    assert not odd.exists()


def test_both_copies_are_written_to(original: Path, tmp_path: Path) -> None:
    """Neither sees what the other writes, on branches that share files with their parents."""
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    with og.open(original) as here, og.open(copy) as there:
        for name in BRANCHES:
            here.mutate(ADD, k="here", branch=name)
            there.mutate(ADD, k="there", branch=name)
        for graph, own, others in ((here, "here", "there"), (there, "there", "here")):
            for name in BRANCHES:
                found = [row["p.k"] for row in graph.query(ALL, branch=name).rows()]
                assert own in found
                assert others not in found
        here.optimize()
        here.cleanup(keep_versions=1, confirm=True, force=True)
        assert there.verify(deep=True).ok
        assert here.verify(deep=True).ok


def test_relocate_writes_down_where_the_graph_lies(original: Path, before: Told, tmp_path: Path) -> None:
    """Afterwards no version names the old place, checksums hold, and Lance finds everything by itself."""
    moved = tmp_path / "moved with a longer name"
    original.rename(moved)
    with og.open(moved, read_only=True) as graph:
        preview = graph.relocate()
        assert preview.preview
        assert preview.versions > 10
        with pytest.raises(og.errors.BadRequest, match="read-only"):
            graph.relocate(confirm=True)
    assert names_of(moved, str(original)) == preview.versions
    with og.open(moved) as graph:
        with active("relocate.file", "raise:3"), pytest.raises(FailpointError):
            graph.relocate(confirm=True)
        assert graph.verify(deep=True).ok, "half of it is done"
        done = graph.relocate(confirm=True)
        assert (done.versions, done.damaged) == (preview.versions - 3, ())
        assert graph.relocate().versions == 0
        assert graph.verify(deep=True).ok
    assert names_of(moved, str(original)) == 0
    og.copy(moved, tmp_path / "copy")
    with og.open(tmp_path / "copy", read_only=True) as graph:
        assert graph.verify(deep=True).ok
    work_on(str(moved), before)


def names_of(place: Path, root: str) -> int:
    """How many versions of forks look for their parents below a root, as Lance reads them."""
    files = [file for file in place.rglob("*.manifest") if "tree" in file.parts]
    lines = [lance.dataset(str(file.parents[1]), version=2**64 - 1 - int(file.stem)) for file in files]
    return sum(any(base.path.startswith(f"{root}/") for base in line.base_paths().values()) for line in lines)


def test_a_fork_of_something_else_is_refused(original: Path, tmp_path: Path) -> None:
    """What a fork shares files with must be a line of its own table; any other place is not touched."""
    (fork,) = (original / "edges").glob("*/tree/*")
    for file in (fork / "_versions").glob("*.manifest"):
        name = fork.parents[1].name.encode()
        file.write_bytes(file.read_bytes().replace(b"/edges/" + name, b"/edges/" + b"x" * len(name)))
    with og.open(original, read_only=True) as graph:
        with pytest.raises(og.OmniGraphError, match="is no line of this table"):
            graph.query(EDGES, branch="two")
        assert graph.query(EDGES).rows()


def add_x(uri: str) -> None:
    """Another process, killed while it writes."""
    with og.open(uri, branch="two") as graph:
        graph.mutate(ADD, k="x")


def test_moved_while_a_write_was_unfinished(original: Path, tmp_path: Path) -> None:
    """A sidecar travels with the graph, and is resolved where the graph is now."""
    run_killed(add_x, str(original), at="storage.commit.after")
    moved = tmp_path / "moved"
    original.rename(moved)
    assert list((moved / "__recovery").glob("*.json"))
    with og.open(moved) as graph:
        assert "x" in keys(graph, "two")
        assert graph.verify().ok


@pytest.mark.s3
def test_from_a_disk_to_a_store_to_another_bucket_and_back(
    original: Path, before: Told, tmp_path: Path, s3_uri: Callable[[], str]
) -> None:
    first, second, back = s3_uri(), f"{s3_uri()}/é %?", tmp_path / "back"
    to_place(str(original), first)
    poison(original)
    with og.open(first, read_only=True) as graph:
        assert told(graph) == before
    to_place(first, second)
    open_objects(parse_root(first)).delete_prefix("nodes")
    with og.open(second) as graph:
        assert told(graph) == before
        graph.mutate(ADD, k="s", branch="two")
        graph.branch_create("store", from_="two")
        graph.mutate(ADD, k="t", branch="store")
    to_place(second, str(back))
    open_objects(parse_root(second)).delete_prefix("nodes")
    with og.open(back) as graph:
        assert sorted(keys(graph, "store")) == sorted("bcdghst")
        graph.branch_delete("store")
        graph.mutate('query q() { delete P where k = "s" }', branch="two")
    work_on(str(back), {at: rows for at, rows in before.items() if at in old_states(before)} | _heads(back))


def _heads(place: Path) -> Told:
    with og.open(place, read_only=True) as graph:
        return told(graph)
