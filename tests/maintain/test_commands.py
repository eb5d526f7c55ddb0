"""The operators' commands: tables for people, one JSON document for programs, exit codes for scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.cli.main import main
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore
from tests.maintain.graphs import PERSON, put


@pytest.fixture
def graph(store: GraphStore) -> str:
    """A graph with some history, by its path."""
    for number in range(6):
        put(store, **{f"p{number}": number})
    return store.uri


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(list(argv))
    return code, capsys.readouterr().out


def drift(store: GraphStore) -> None:
    line = table_of(store.snapshot().pin(PERSON))
    store.tables.commit_staged(store.tables.stage_delete(line, ["p0"]), "somebody")


def test_optimize_shows_each_table_and_the_commit(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = run(capsys, "optimize", graph)
    assert code == 0
    assert PERSON in shown
    assert "commit 0" in shown
    again = json.loads(run(capsys, "optimize", graph, "--json")[1])
    assert again["commit"] is None
    assert {"table_key", "fragments_removed", "fragments_added", "committed", "skipped", "pending_indexes"} <= set(
        again["tables"][0]
    )


def test_cleanup_previews_by_default_and_confirms(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = run(capsys, "cleanup", graph)
    assert code == 0
    assert "preview" in shown
    assert run(capsys, "cleanup", graph, "--keep", "2", "--confirm")[0] == 1
    code, shown = run(capsys, "cleanup", graph, "--keep", "3", "--confirm", "--json")
    rows = {row["table_key"]: row for row in json.loads(shown)["tables"]}
    assert code == 0
    assert rows[PERSON]["old_versions_removed"] == 4
    assert {"table_key", "bytes_removed", "old_versions_removed", "error"} <= rows[PERSON].keys()
    assert run(capsys, "cleanup", graph, "--older-than", "soon")[0] == 1
    assert run(capsys, "cleanup", graph, "--older-than", "30d")[0] == 0


def test_repair_and_verify_exit_codes(store: GraphStore, graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify", graph)[0] == 0
    assert run(capsys, "repair", graph) == (0, "no drift\n")
    drift(store)
    code, shown = run(capsys, "verify", graph)
    assert code == 1
    assert "newest version is published" in shown
    assert run(capsys, "repair", graph)[0] == 0
    assert run(capsys, "repair", graph, "--confirm")[0] == 1
    code, shown = run(capsys, "repair", graph, "--confirm", "--force", "--restore", "--json")
    assert code == 0
    assert json.loads(shown)["tables"][0]["action"] == "restored"
    assert json.loads(run(capsys, "verify", graph, "--json")[1])["ok"]


def test_in_a_process_of_its_own(graph: str) -> None:
    """One-row writes compact at the end of the command, and the exit code reaches the shell."""
    program = str(Path(sys.executable).parent / "omnigraph")
    environment = {**os.environ, "OMNIGRAPH_AUTO_COMPACT_FRAGMENTS": "4"}
    insert = 'query add() { insert Person { name: "last" } }'

    def call(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *argv], capture_output=True, text=True, timeout=120, env=environment)

    assert call("mutate", graph, "-e", insert).returncode == 0
    shown = json.loads(call("commit", "list", graph, "--json").stdout)
    assert shown["commits"][0]["kind"] == "Optimize"
    assert call("cleanup", graph, "--keep", "1", "--confirm").returncode == 1
