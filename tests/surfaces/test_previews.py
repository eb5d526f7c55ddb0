"""What only looks changes not one byte: previews, dry runs, reads and help, also where a writer died or the graph is
old."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from tests.faults.harness import run_killed
from tests.ledger.old_graphs import forge

SCHEMA = "node P {\n    k: String @key\n    n: I32? @index\n}\nedge K: P -> P\n"
READ = "query q() { match { $p: P } return { $p.k } }"


def content(place: Path) -> dict[str, bytes | None]:
    """Every file with its bytes, and every directory."""
    found = sorted(place.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def write_and_die(uri: str) -> None:
    og.open(uri).mutate('query q() { insert P { k: "late" } }')


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with two branches that conflict, and a write that died half-way."""
    place = tmp_path_factory.mktemp("previews") / "g.omni"
    (place.parent / "new.pg").write_text(SCHEMA.replace("n: I32?", "n: I32? \n    m: String?"))
    with og.init(place, schema=SCHEMA) as graph:
        for number in range(4):
            graph.load([{"type": "P", "data": {"k": f"p{number}", "n": number}}], mode="append")
        graph.branch_create("review")
        graph.branch_create("calm")
        graph.mutate('query q() { insert P { k: "c" } }', branch="calm")
        for branch, value in (("main", 7), ("review", 8)):
            graph.mutate(
                "query q($v: I32) { update P set { n: $v } where k = 'p1' }".replace("'", '"'), v=value, branch=branch
            )
        graph.tags.create("v1")
    run_killed(write_and_die, str(place), at="write.table_committed")
    return place


LOOKS = [
    "cleanup {g}",
    "cleanup --keep 3 --json {g}",
    "cleanup --older-than 1s {g}",
    "repair {g}",
    "repair --json {g}",
    "verify {g}",
    "schema plan --schema {new} {g}",
    "schema show {g}",
    "schema diagram {g}",
    "branch merge review --dry-run {g}",
    "branch merge calm --dry-run --delete-branch {g}",
    "revert main --dry-run {g}",
    "restore v1 --dry-run {g}",
    "restore review --dry-run --branch calm {g}",
    "cherry-pick calm --dry-run {g}",
    "branch list {g}",
    "branch diff main review {g}",
    "commit list {g}",
    "commit recoveries {g}",
    "tag list {g}",
    "changes {g}",
    "snapshot {g}",
    "query {g} -e",
    "query {g} --explain -e",
    "query {g} --analyze -e",
    "export --to - {g}",
    "cleanup --help",
    "repair --help",
    "init --help",
    "",
]


@pytest.mark.parametrize("line", LOOKS)
def test_a_look_from_the_command_line(line: str, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = content(place.parent)
    words = line.format(g=place, new=place.parent / "new.pg").split()
    code = main([*words, READ] if words and words[-1] == "-e" else words)
    assert content(place.parent) == before
    assert code in (0, 1, 2, 3, 5)
    assert "Traceback" not in capfd.readouterr().err


def test_a_look_at_an_unfinished_write_says_so(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["cleanup", str(place)]) == 5
    assert "unfinished" in capfd.readouterr().err


@pytest.mark.parametrize("line", [line for line in LOOKS if "{g}" in line and "new" not in line])
def test_a_look_at_a_graph_of_an_older_release(
    line: str, tmp_path_factory: pytest.TempPathFactory, capfd: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path_factory.mktemp("old") / "old.omni"
    forge(str(place), 3)
    before = content(place)
    words = line.format(g=place).split()
    code = main([*words, "query q() { match { $p: Person } return { $p.name } }"] if words[-1] == "-e" else words)
    assert content(place) == before
    assert code in (0, 1, 3)
    assert "Traceback" not in capfd.readouterr().err


def merged(graph: og.Graph) -> None:
    assert graph.merge("review", dry_run=True).conflicts
    graph.merge("calm", dry_run=True)
    graph.revert("main", dry_run=True)
    graph.restore(graph.log()[1].graph_commit_id, dry_run=True)
    graph.cherry_pick("calm", dry_run=True)


PYTHON: list[Callable[[og.Graph], object]] = [
    lambda g: g.cleanup(keep_versions=3),
    lambda g: g.repair(),
    lambda g: g.verify(),
    lambda g: g.plan_schema(SCHEMA),
    merged,
    lambda g: list(g.diff("main", "review")),
    lambda g: g.query(READ).rows(),
    lambda g: g.explain(READ, analyze=True),
    lambda g: (g.log(), g.recoveries(), g.branch_list(), g.tags.list(), g.head(), g.snapshot(), g.entity("P", "p1")),
    lambda g: [list(block.changes) for block in g.changes().blocks],
]


def test_a_look_from_python_with_a_handle_that_may_write(tmp_path: Path) -> None:
    place = tmp_path / "g.omni"
    with og.init(place, schema=SCHEMA) as graph:
        for number in range(4):
            graph.load([{"type": "P", "data": {"k": f"p{number}", "n": number}}], mode="append")
        for branch in ("review", "calm"):
            graph.branch_create(branch)
        for branch, value in (("main", 7), ("review", 8)):
            graph.mutate('query q($v: I32) { update P set { n: $v } where k = "p1" }', v=value, branch=branch)
        graph.mutate('query q() { insert P { k: "c" } }', branch="calm")
        before = content(place)
        for number, look in enumerate(PYTHON):
            look(graph)
            assert content(place) == before, number
    # A handle that is closed takes the files of its own locks along.
    kept = [sorted(path for path in files if "__locks" not in path) for files in (before, content(place))]
    assert kept[0] == kept[1]
