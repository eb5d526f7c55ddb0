"""revert, restore, cherry-pick and blob get on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import omnigraph as og
from tests.cli.commands.test_branches import older
from tests.cli.conftest import Run, real_process


def ages(run: Run, graph: Path, branch: str = "main") -> dict[str, int]:
    found = run(
        "query", graph, "-e", "query q() { match { $p: Person } return { $p.slug as s, $p.age as a } }",
        "--format", "json", "--branch", branch,
    )  # fmt: skip
    return {row["s"]: row["a"] for row in found.json["rows"]}


def head(run: Run, graph: Path) -> str:
    return str(run("commit", "list", graph, "--json").json["commits"][0]["graph_commit_id"])


def test_revert_with_a_preview(run: Run, graph: Path) -> None:
    older(run, graph, "ada", 37, "main")
    mistake = head(run, graph)
    preview = run("revert", mistake, graph, "--dry-run")
    assert preview.code == 0
    assert "age: 37 -> 36" in preview.out
    assert "dry run, nothing was written: the revert would go through" in preview.out
    assert head(run, graph) == mistake
    data = run("revert", mistake, graph, "--dry-run", "--json").json
    assert (data["outcome"], data["changes"][0]["after"]["age"]) == ("done", 36)
    done = run("revert", mistake, graph, "--as", "act-ada")
    assert f"revert of {mistake} on main, commit 01" in done.out
    assert "revert" in done.err
    assert ages(run, graph)["ada"] == 36
    assert "nothing to do" in run("revert", mistake, graph).out
    shown = run("commit", "show", head(run, graph), graph)
    assert f"about    {mistake}" in shown.out
    as_json = run("revert", "main", graph, "--json", "--quiet").json
    assert (as_json["operation"], as_json["commit"]["kind"]) == ("revert", "Revert")
    assert ages(run, graph)["ada"] == 37


def test_conflicts_of_a_revert_exit_with_3_and_are_settled_by_a_file(run: Run, graph: Path, tmp_path: Path) -> None:
    older(run, graph, "ada", 37, "main")
    mistake = head(run, graph)
    older(run, graph, "ada", 38, "main")
    refused = run("revert", mistake, graph)
    assert refused.code == 3
    assert "DivergentUpdate node:Person ada" in refused.err
    assert "(`age`)" in refused.err
    assert run("revert", mistake, graph, "--dry-run").code == 3
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"node:Person": {"ada": {"age": 99}}}))
    assert run("revert", mistake, graph, "--resolve", answers).code == 0
    assert ages(run, graph)["ada"] == 99
    assert run("revert", mistake, graph, "--strategy", "theirs", "--granularity", "property").code == 0
    assert ages(run, graph)["ada"] == 36


def test_restore_to_a_tag_and_to_a_time(run: Run, graph: Path) -> None:
    run("tag", "create", "good", "main", graph)
    older(run, graph, "ada", 37, "main")
    preview = run("restore", "good", graph, "--dry-run")
    assert "age: 37 -> 36" in preview.out
    assert run("restore", "good", graph).code == 0
    assert ages(run, graph)["ada"] == 36
    early = run("restore", "3 weeks ago", graph)
    assert early.code == 1
    assert "has no commit at or before" in early.err
    assert run("restore", "0 seconds ago", graph).out.startswith("nothing to do")


def test_cherry_pick_and_what_a_merge_says_of_reverted_commits(run: Run, graph: Path) -> None:
    for name in ("a", "b"):
        run("branch", "create", name, graph)
    older(run, graph, "ada", 37, "a")
    assert run("cherry-pick", "a", graph, "--into", "b").code == 0
    assert (ages(run, graph, "b")["ada"], ages(run, graph)["ada"]) == (37, 36)
    run("branch", "merge", "a", graph)
    run("revert", "main", graph)
    again = run("branch", "merge", "a", graph)
    assert "was reverted on main by 01" in again.out
    assert "revert that to have it back" in again.out
    assert len(run("branch", "merge", "a", graph, "--json").json["reverted"]) == 1
    run("branch", "create", "c", graph, "--from", "b")
    assert run("branch", "delete", "b", graph).code == 1
    assert run("branch", "delete", "b", graph, "--force").code == 0
    assert ages(run, graph, "c")["ada"] == 37


def test_blob_get(run: Run, tmp_path: Path) -> None:
    uri = tmp_path / "docs"
    with og.init(uri, schema="node Doc { slug: String @key\n body: Blob? }") as made:
        made.load([{"type": "Doc", "data": {"slug": "d", "body": "b25lIGJsb2I="}}], mode="append")
        made.tags.create("v1")
        made.load([{"type": "Doc", "data": {"slug": "d", "body": "dHdv"}}], mode="merge")
    out = tmp_path / "out.bin"
    done = run("blob", "get", "Doc", "d", "body", uri, "--out", out, "--at", "v1")
    assert "wrote 8 of 8 bytes" in done.out
    assert out.read_bytes() == b"one blob"
    part = run(
        "blob", "get", "Doc", "d", "body", uri, "-o", out, "--at", "v1", "--start", 4, "--end", 99, "--json"
    ).json
    assert (part["size"], part["written"]) == (8, 4)
    assert out.read_bytes() == b"blob"
    assert real_process("blob", "get", "Doc", "d", "body", uri, cwd=tmp_path).out == "two"
    assert "there is no Doc `x`" in run("blob", "get", "Doc", "x", "body", uri).err
    assert run("blob", "get", "Doc", "d", "body", uri, "--json").code == 1
    assert "cannot be written" in run("blob", "get", "Doc", "d", "body", uri, "-o", tmp_path).err
