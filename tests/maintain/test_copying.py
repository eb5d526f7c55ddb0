"""Copies of live graphs: consistent, whole, resumable, between any two stores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, NotFound
from omnigraph.failpoints import FailpointError, active
from omnigraph.maintain.copying.carriers import Carriers, carry_here
from omnigraph.maintain.copying.copy import copy
from omnigraph.storage.objects.objects import ObjectInfo, ObjectStore, open_objects
from omnigraph.storage.uri import parse_root
from tests.faults.harness import run_killed
from tests.ledger.old_graphs import forge
from tests.surfaces.test_moved_graphs import ADD, ALL, BRANCHES, live, told

PAIR = "query q($k: String) { insert P { k: $k } insert K { from: $k, to: $k } }"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph that no test changes."""
    place = str(tmp_path_factory.mktemp("source") / "graph")
    live(place)
    return place


def everything(uri: str) -> object:
    with og.open(uri, read_only=True) as graph:
        return told(graph), [tag.to_json() for tag in graph.tags.list()], graph.log("two"), graph.schema_source()


def test_all_of_it_is_there_and_can_be_written_to(source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "copy")
    result = og.copy(source, target)
    assert (result.branches, result.files_there) == (BRANCHES, 0)
    assert everything(target) == everything(source)
    with og.open(target) as graph:
        assert graph.verify(deep=True).ok
        for name in BRANCHES:
            graph.mutate(ADD, k="new", branch=name)
        graph.merge("two")
        assert graph.verify(deep=True).ok
    with og.open(source, read_only=True) as graph:
        assert "new" not in [row["p.k"] for row in graph.query(ALL).rows()]


def test_an_engine_that_there_is_not_leaves_nothing(source: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="`sparc` is not an engine"):
        og.copy(source, tmp_path / "copy", engine="sparc")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_only_some_branches(source: str, tmp_path: Path) -> None:
    og.copy(source, tmp_path / "copy", branches=["one"])
    with og.open(tmp_path / "copy") as graph, og.open(source, read_only=True) as whole:
        assert graph.branch_list() == ["main", "one"]
        assert graph.query(ALL, branch="one").rows() == whole.query(ALL, branch="one").rows()
        assert [c.graph_commit_id for c in graph.log("one")] == [c.graph_commit_id for c in whole.log("one")]
        assert graph.tags.list() == [], "the tag names a commit of `two`"
        graph.mutate(ADD, k="new", branch="one")
        assert graph.verify(deep=True).ok
        with pytest.raises(NotFound, match="two"):
            graph.query(ALL, branch="two")
    with pytest.raises(NotFound, match="no branch `nobody`"):
        og.copy(source, tmp_path / "other", branches=["nobody"])


def test_main_as_it_was(source: str, tmp_path: Path) -> None:
    with og.open(source, read_only=True) as whole:
        earlier = whole.log()[1]
        before = whole.query(ALL, at=earlier.graph_commit_id).rows()
    og.copy(source, tmp_path / "copy", at=earlier.graph_commit_id)
    with og.open(tmp_path / "copy") as graph:
        assert graph.head() == earlier
        assert graph.query(ALL).rows() == before
        graph.mutate(ADD, k="new")
        assert graph.verify(deep=True).ok


def test_a_branch_of_a_branch_as_it_was(source: str, tmp_path: Path) -> None:
    with og.open(source, read_only=True) as whole:
        tagged = whole.commit("v1")
        before = {
            name: whole.query(ALL, at=at).rows()
            for name, at in (("two", "v1"), ("main", whole.log()[1].graph_commit_id))
        }
        history = [c.graph_commit_id for c in whole.log("two")][1:]
    assert tagged.branch == "two"
    for number, options in enumerate(({"at": "v1"}, {"at": tagged.graph_commit_id, "branches": ["two"]})):
        result = og.copy(source, tmp_path / str(number), **options)
        assert result.branches == ("main", "two")
        with og.open(tmp_path / str(number)) as graph:
            assert graph.head("two") == tagged
            assert {name: graph.query(ALL, branch=name).rows() for name in before} == before
            assert [c.graph_commit_id for c in graph.log("two")] == history
            assert [tag.name for tag in graph.tags.list()] == ["v1"]
            for name in before:
                graph.mutate(ADD, k="new", branch=name)
            assert graph.merge("two", granularity="property").commit is not None
            assert graph.verify(deep=True).ok
    with pytest.raises(BadRequest, match="`at` is about one branch"):
        og.copy(source, tmp_path / "other", at="v1", branches=["one", "two"])


def test_a_commit_of_a_deleted_branch_is_not_copied_alone(tmp_path: Path) -> None:
    with og.init(tmp_path / "graph", schema="node P { k: String @key }") as graph:
        graph.branch_create("side")
        gone = graph.mutate(ADD, k="a", branch="side").commit.graph_commit_id
        graph.branch_delete("side")
    with pytest.raises(BadRequest, match="made on branch `side`, which is gone"):
        og.copy(tmp_path / "graph", tmp_path / "copy", at=gone)
    assert not (tmp_path / "copy").exists()


def test_what_was_chosen_for_the_graph_comes_along(tmp_path: Path) -> None:
    with og.init(tmp_path / "graph", schema="node P { k: String @key\n a: I32?\n b: I32? }") as graph:
        graph.set_granularity("property")
        graph.load([{"type": "P", "data": {"k": "x"}}], mode="append")
        graph.branch_create("side")
        graph.mutate("query q() { update P set { a: 1 } where a = null }", branch="side")
        graph.mutate("query q() { update P set { b: 2 } where b = null }")
    og.copy(tmp_path / "graph", tmp_path / "copy")
    with og.open(tmp_path / "copy") as graph:
        graph.merge("side")
        assert graph.entity("P", "x") == {"@id": "x", "k": "x", "a": 1, "b": 2}


def test_a_copy_under_writes_is_one_state(tmp_path: Path) -> None:
    """Each mutation adds a node and an edge to it: a copy has both or none, on every branch."""
    place = str(tmp_path / "graph")
    live(place)
    stop = threading.Event()

    def write(branch: str) -> None:
        with og.open(place) as graph:
            for number in range(10_000):
                if stop.is_set():
                    return
                graph.mutate(PAIR, k=f"{branch}-{number}", branch=branch)
                if number % 10 == 9:
                    graph.optimize(branch)

    writers = [threading.Thread(target=write, args=(name,)) for name in ("main", "two")]
    for writer in writers:
        writer.start()
    try:
        for number in range(3):
            og.copy(place, tmp_path / f"copy-{number}")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    for number in range(3):
        with og.open(tmp_path / f"copy-{number}") as graph:
            assert graph.recoveries() == []
            for branch in ("main", "two"):
                nodes = {row["p.k"] for row in graph.query(ALL, branch=branch).rows() if "-" in str(row["p.k"])}
                pairs = graph.query("query q() { match { $p: P $p k $q } return { $p.k } }", branch=branch).rows()
                assert nodes == {row["p.k"] for row in pairs if "-" in str(row["p.k"])}
            assert {f.rule.name for f in graph.verify(deep=True).findings} <= {"LEFTOVERS"}
            graph.mutate(ADD, k="after", branch="two")


@pytest.mark.parametrize("name", ["{}.lance", "{}/blob", ".tmp{}"], ids=["data", "blob", "half-written"])
def test_what_writers_stage_and_give_up_is_not_waited_for(tmp_path: Path, name: str) -> None:
    """Several processes that insert edges always have a file there that will go: a look without one never comes."""
    place, target = str(tmp_path / "graph"), str(tmp_path / "copy")
    live(place)
    data = next(Path(place).glob("nodes/*/data"))
    staged: list[Path] = []

    def stage() -> None:
        staged.append(data / name.format(uuid4().hex))
        staged[-1].parent.mkdir(exist_ok=True)
        staged[-1].write_bytes(b"rows")

    def carry(source: ObjectStore, target: ObjectStore, files: Sequence[ObjectInfo]) -> Iterator[bool]:
        """Between the listing and the copy one file goes, and another one comes."""
        staged[-1].unlink()
        stage()
        return carry_here(source, target, files)

    stage()
    copy(place, target, carriers=lambda _: Carriers("local", carry))
    assert everything(target) == everything(place)
    with og.open(target) as graph:
        assert {found.rule.name for found in graph.verify(deep=True).findings} <= {"LEFTOVERS"}


def test_when_a_file_of_an_older_version_goes_all_is_looked_at_again(tmp_path: Path) -> None:
    place, target = str(tmp_path / "graph"), str(tmp_path / "copy")
    with og.init(place, schema="node P { k: String @key\n t: String? }") as graph:
        for number in range(3):
            graph.mutate(ADD, k=str(number))
        graph.optimize(engine="local")
    carried: list[int] = []

    def carry(source: ObjectStore, target: ObjectStore, files: Sequence[ObjectInfo]) -> Iterator[bool]:
        if not carried:
            # What was there first is named by no version but older ones.
            min(Path(place).glob("nodes/*/data/*.lance"), key=lambda path: path.stat().st_mtime_ns).unlink()
        carried.append(len(files))
        return carry_here(source, target, files)

    copy(place, target, carriers=lambda _: Carriers("local", carry))
    assert len(carried) == 3, "data in the first look; data and versions in the second"
    with og.open(target) as graph:
        assert [row["p.k"] for row in graph.query(ALL).rows()] == ["0", "1", "2"]


def copy_it(target: str, source: str) -> None:
    """In a process of its own, to be killed."""
    copy(source, target)


@pytest.mark.parametrize(("at", "hit"), [("copy.marked", 1), ("copy.file", 20), ("copy.files", 1), ("copy.records", 1)])
def test_killed_and_carried_on(source: str, tmp_path: Path, at: str, hit: int) -> None:
    target = str(tmp_path / "copy")
    run_killed(copy_it, target, source, at=at, hit=hit)
    with pytest.raises(NotFound, match=r"there is no graph at .* yet, but an unfinished copy"):
        og.open(target)
    with pytest.raises(BadRequest, match="with other options"):
        og.copy(source, target, branches=["one"])
    result = og.copy(source, target)
    assert (result.files_there > 0) == (at != "copy.marked")
    assert everything(target) == everything(source)
    with og.open(target) as graph:
        assert graph.verify(deep=True).ok


def test_what_a_killed_copy_was_writing_is_no_file_of_an_index(source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "copy")
    run_killed(copy_it, target, source, at="copy.files")
    indexes = [path.parent for path in Path(target).rglob("_indices/*/page_lookup.lance")]
    assert indexes
    for place in indexes:
        (place / "page_lookup.lance#63820038554502744").write_bytes(b"half")
    og.copy(source, target)
    with og.open(target) as graph:
        assert graph.verify(deep=True).ok


def test_what_was_cleaned_up_meanwhile_is_not_in_the_copy(tmp_path: Path) -> None:
    place, target = str(tmp_path / "graph"), str(tmp_path / "copy")
    live(place)
    with active("copy.files", "raise"), pytest.raises(FailpointError):
        og.copy(place, target)
    with og.open(place) as graph:
        graph.optimize()
        graph.mutate(ADD, k="later")
        graph.cleanup(keep_versions=1, confirm=True, force=True)
    og.copy(place, target)
    with og.open(target) as graph:
        assert "later" in [row["p.k"] for row in graph.query(ALL).rows()]
        assert graph.verify(deep=True).ok


def test_a_graph_of_an_older_program_is_not_copied_as_it_is(tmp_path: Path) -> None:
    forge(str(tmp_path / "old"), 3)
    with pytest.raises(BadRequest, match="open it for writing once"):
        og.copy(tmp_path / "old", tmp_path / "copy")
    og.open(tmp_path / "old").close()
    og.copy(tmp_path / "old", tmp_path / "copy")
    with og.open(tmp_path / "copy") as graph:
        assert graph.branch_list() == ["main", "review/1"]
        assert [c.actor_id for c in graph.log("review/1")] == ["act-dee", "act-ada"]
        assert graph.verify().ok


def test_refusals_leave_everything_as_it_is(source: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").write_text("mine")
    for target, words in (
        (tmp_path / "full", "is not empty: it holds a.txt"),
        (Path(source), "one within the other"),
        (Path(source) / "nodes" / "copy", "one within the other"),
    ):
        with pytest.raises(BadRequest, match=words):
            og.copy(source, target)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["a.txt"]
    with pytest.raises(NotFound, match="there is no graph"):
        og.copy(tmp_path / "nothing", tmp_path / "copy")
    og.copy(source, tmp_path / "copy")
    with pytest.raises(BadRequest, match="there is a graph"):
        og.copy(source, tmp_path / "copy")


@pytest.mark.s3
def test_to_a_store_and_back(source: str, tmp_path: Path, s3_uri: Callable[[], str]) -> None:
    first, second, back = s3_uri(), f"{s3_uri()}/é ?", tmp_path / "back"
    og.copy(source, first)
    og.copy(first, second)
    open_objects(parse_root(first)).delete_prefix("nodes")
    og.copy(second, back)
    assert everything(second) == everything(str(back)) == everything(source)
    with og.open(second) as graph:
        graph.mutate(ADD, k="new", branch="two")
        assert graph.verify().ok
    with og.open(back) as graph:
        assert graph.verify(deep=True).ok


@pytest.mark.s3
def test_the_marks_of_deleted_branches_may_come_along(tmp_path: Path, s3_uri: Callable[[], str]) -> None:
    """An object store keeps a mark where a branch was deleted; a plain sync to a disk takes it for a file."""
    uri = s3_uri()
    with og.init(uri, schema="node P {\n    k: String @key\n}\n") as graph:
        graph.branch_create("gone")
        graph.branch_delete("gone")
    there = open_objects(parse_root(uri))
    place = tmp_path / "synced"
    for name in [*(entry.path for entry in there.list()), "_refs/branches/gone.json"]:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"".join(there.read_stream(name)))
    assert (place / "_refs/branches/gone.json").exists()
    with og.open(place) as graph:
        assert graph.branch_list() == ["main"]
        graph.branch_create("gone")
        assert graph.branch_list() == ["gone", "main"]
        assert graph.verify().ok
