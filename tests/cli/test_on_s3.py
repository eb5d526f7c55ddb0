"""The commands of the kernel against a graph on an object store, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.s3


def test_init_snapshot_branches_and_commits(run: Run, schema: Path, s3_uri: Callable[[], str]) -> None:
    uri = s3_uri()
    missing = run("snapshot", uri)
    assert missing.code == 1
    assert f"there is no graph at {uri}" in missing.err
    assert run("init", "--schema", schema, uri).code == 0
    assert "there is a graph at" in run("init", "--schema", schema, uri).err

    assert "node:Person" in run("snapshot", uri).out
    shown = run("snapshot", uri, "--json").json
    assert {table["table_key"] for table in shown["tables"]} == {"edge:WorksAt", "node:Company", "node:Person"}

    assert run("branch", "create", "review/1", uri).code == 0
    assert "review/1" in run("branch", "list", uri).out
    assert [b["name"] for b in run("branch", "list", uri, "--json").json["branches"]] == ["main", "review/1"]
    assert "there is a branch `review/1` already" in run("branch", "create", "review/1", uri).err
    insert = 'query add() { insert Person { slug: "ada" } }'
    assert run("mutate", uri, "-e", insert, "--branch", "review/1").code == 0

    (first,) = run("commit", "list", uri, "--json").json["commits"]
    on_branch = run("commit", "list", uri, "--branch", "review/1", "--json").json["commits"]
    assert [commit["kind"] for commit in on_branch] == ["Mutation", "Init"]
    assert on_branch[1] == first
    assert "Mutation" in run("commit", "list", uri, "--branch", "review/1").out
    assert "Init" in run("commit", "show", first["graph_commit_id"], uri).out
    assert run("commit", "show", first["graph_commit_id"], uri, "--json").json == first

    assert "needs --yes" in run("branch", "delete", "review/1", uri).err
    assert run("branch", "delete", "review/1", uri, "--yes").code == 0
    assert [b["name"] for b in run("branch", "list", uri, "--json").json["branches"]] == ["main"]
