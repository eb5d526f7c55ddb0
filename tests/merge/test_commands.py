"""`branch diff`, `branch merge`, `changes` and `commit changes`, for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from tests.merge.graphs import SCHEMA, drop, knows, person, put

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command line as the program does, in this process."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = main(list(arguments))
        shown = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, shown.out, shown.err)

    return run


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph with a branch `side` to be reviewed, and a branch `clash` that collides."""
    place = str(tmp_path_factory.mktemp("commands") / "graph")
    with og.init(place, schema=SCHEMA) as graph:
        put(graph, "main", person("a", age=1), person("b", age=1), person("c", age=1))
        graph.branch_create("side")
        graph.branch_create("clash")
        put(graph, "side", person("a", age=2), person("d", age=3), knows("k", "a", "b"))
        drop(graph, "side", "Person", "c")
        put(graph, "clash", person("b", age=8))
        put(graph, "main", person("b", age=9))
    return place


@pytest.mark.slow
def test_a_diff_shows_counts_first_then_rows_with_the_changed_fields(uri: str) -> None:
    program = Path(sys.executable).parent / "omnigraph"
    done = subprocess.run([program, "branch", "diff", "main", "side", uri], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert next(n for n, line in enumerate(lines) if "inserts" in line) < lines.index("~ Person a")
    assert lines[lines.index("~ Person a") + 1].strip() == "age: 1 -> 2"
    assert "- Person c" in lines
    assert "+ Person d" in lines
    assert "+ Knows k (a -> b)" in lines


def test_a_diff_for_programs(uri: str, command: Command) -> None:
    done = command("branch", "diff", "main", "side", uri, "--json", "--type", "Knows")
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["from"], found["to"]) == ("main", "side")
    assert found["summary"] == [{"table_key": "edge:Knows", "inserts": 1, "updates": 0, "deletes": 0}]
    (change,) = found["changes"]
    assert (change["op"], change["id"], change["endpoints"]) == ("insert", "k", {"from": "a", "to": "b"})


def test_a_dry_run_shows_the_rows_and_writes_nothing(uri: str, command: Command) -> None:
    with og.open(uri, read_only=True) as graph:
        head = graph.head()
    done = command("branch", "merge", "side", uri, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "~ Person a" in done.stdout
    assert "nothing was written: the merge would go through" in done.stdout
    found = json.loads(command("branch", "merge", "side", uri, "--dry-run", "--json").stdout)
    assert (found["outcome"], found["dry_run"], found["commit"], found["merge_conflicts"]) == ("merged", True, None, [])
    assert [(c["op"], c["id"]) for c in found["changes"]] == [
        ("update", "a"),
        ("delete", "c"),
        ("insert", "d"),
        ("insert", "k"),
    ]
    with og.open(uri, read_only=True) as graph:
        assert graph.head() == head


def test_conflicts_end_with_their_own_exit_code_and_show_what_differs(
    uri: str, tmp_path: Path, command: Command
) -> None:
    done = command("branch", "merge", "clash", uri)
    assert done.returncode == 3
    assert "DivergentUpdate node:Person b" in done.stderr
    assert "age: base 1, source 8, target 9" in done.stderr
    answers = tmp_path / "answers.json"
    answers.write_text('{"node:Person": {"b": {"age": 5}}}')
    done = command("branch", "merge", "clash", uri, "--resolve", str(answers), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "age: 9 -> 5" in done.stdout
    found = json.loads(command("branch", "merge", "clash", uri, "--dry-run", "--json").stdout)
    (conflict,) = found["merge_conflicts"]
    assert conflict["kind"] == "divergent_update"
    assert [conflict[side]["age"] for side in ("base", "source", "target")] == [1, 8, 9]


def test_the_feed_for_programs_and_for_people(uri: str, command: Command) -> None:
    found = json.loads(command("changes", uri, "--json").stdout)
    assert [len(block["changes"]) for block in found["blocks"]][:3] == [0, 3, 1]
    cursor = found["blocks"][1]["cursor"]
    rest = json.loads(command("changes", uri, "--json", "--since", cursor).stdout)
    assert [change["id"] for block in rest["blocks"] for change in block["changes"]][:1] == ["b"]
    shown = command("changes", uri, "--since", cursor).stdout
    assert "~ Person b" in shown
    assert shown.splitlines()[-1].startswith("cursor ")
    commit = rest["blocks"][0]["commit"]["graph_commit_id"]
    one = json.loads(command("commit", "changes", commit, uri, "--json").stdout)
    assert [change["id"] for change in one["changes"]] == ["b"]
