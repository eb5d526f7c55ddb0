"""branch, commit, changes, schema, tag, lint, fmt."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import SCHEMA, Run

OLDER = "query older($s: String, $a: I32) { update Person set { age: $a } where slug = $s }"


def older(run: Run, graph: Path, slug: str, age: int, branch: str) -> None:
    params = f'{{"s": "{slug}", "a": {age}}}'
    assert run("mutate", graph, "-e", OLDER, "--params", params, "--branch", branch).code == 0


def test_review_and_merge_a_branch(run: Run, graph: Path) -> None:
    assert run("branch", "create", "review/1", graph).code == 0
    older(run, graph, "ada", 37, "review/1")
    assert [b["name"] for b in run("branch", "list", graph, "--json").json["branches"]] == ["main", "review/1"]
    shown = run("branch", "diff", "main", "review/1", graph).out
    assert "~ Person ada" in shown
    assert "age: 36 -> 37" in shown
    data = run("branch", "diff", "main", "review/1", graph, "--json").json
    assert data["summary"] == [{"table_key": "node:Person", "inserts": 0, "updates": 1, "deletes": 0}]
    assert data["changes"][0]["after"]["age"] == 37
    dry = run("branch", "merge", "review/1", graph, "--dry-run", "--json").json
    assert (dry["outcome"], dry["commit"]) == ("fast_forward", None)
    merged = run("branch", "merge", "review/1", graph, "--delete-branch", "--json").json
    assert merged["outcome"] == "fast_forward"
    assert merged["source_deleted"] is True
    assert [b["name"] for b in run("branch", "list", graph, "--json").json["branches"]] == ["main"]


def test_branches_are_listed_when_the_newest_state_of_one_is_damaged(run: Run, graph: Path) -> None:
    assert run("branch", "create", "review", graph).code == 0
    older(run, graph, "ada", 37, "main")
    newest = min(graph.joinpath("__manifest", "_versions").glob("*.manifest"))
    newest.write_bytes(newest.read_bytes()[:40])
    listed = run("branch", "list", graph)
    assert listed.code == 1
    assert "review" in listed.out
    assert "the newest commit of main cannot be read" in listed.out
    main, review = run("branch", "list", graph, "--json").json["branches"]
    assert (main["head"], bool(main["error"])) == (None, True)
    assert review["head"] is not None


def test_conflicts_exit_with_3_and_name_the_rows(run: Run, graph: Path) -> None:
    run("branch", "create", "a", graph)
    older(run, graph, "ada", 1, "a")
    older(run, graph, "ada", 2, "main")
    ran = run("branch", "merge", "a", graph)
    assert ran.code == 3
    assert "DivergentUpdate node:Person ada" in ran.err
    as_json = run("branch", "merge", "a", graph, "--json")
    assert as_json.code == 3
    assert as_json.json["merge_conflicts"][0]["kind"] == "divergent_update"
    assert run("branch", "merge", "a", graph, "--strategy", "theirs").code == 0


def test_refusals_name_operation_and_branch(run: Run, graph: Path) -> None:
    assert "cannot be deleted" in run("branch", "delete", "main", graph).err
    assert "no branch `nope`" in run("branch", "delete", "nope", graph).err
    assert run("branch", "create", "main", graph).code != 0


def test_commit_list_show_changes_and_graph(run: Run, graph: Path) -> None:
    listed = run("commit", "list", graph, "--json").json["commits"]
    assert [c["kind"] for c in listed] == ["Load", "Init"]
    head = listed[0]["graph_commit_id"]
    assert "Load" in run("commit", "show", head, graph).out
    assert run("commit", "show", head, graph, "--json").json["graph_commit_id"] == head
    assert "+ Person ada" in run("commit", "changes", head, graph).out
    assert run("commit", "list", graph, "--graph").out.startswith("*  ")
    assert run("commit", "list", graph, "--filter", "actor=nobody", "--json").json["commits"] == []
    assert run("commit", "list", graph, "--filter", "since=2999-01-01", "--json").json["commits"] == []
    assert "is not understood" in run("commit", "list", graph, "--filter", "colour=red").err
    assert run("commit", "recoveries", graph, "--json").json == {"recoveries": []}


def test_the_change_feed_goes_on_from_its_cursor(run: Run, graph: Path) -> None:
    first = run("changes", graph, "--json").json
    assert [b["commit"]["kind"] for b in first["blocks"]] == ["Init", "Load"]
    older(run, graph, "bob", 21, "main")
    then = run("changes", graph, "--since", first["cursor"], "--json").json
    assert [c["id"] for b in then["blocks"] for c in b["changes"]] == ["bob"]
    assert run("changes", graph, "--since", "garbage").code == 1


def test_schema_show_plan_apply(run: Run, graph: Path, tmp_path: Path) -> None:
    assert run("schema", "show", graph).out.strip() == SCHEMA.strip()
    new = tmp_path / "new.pg"
    new.write_text(SCHEMA.replace("age: I32?", "age: I32?\n    nick: String?"))
    assert "add_property node:Person.nick" in run("schema", "plan", "--schema", new, graph).out
    applied = run("schema", "apply", "--schema", new, graph, "--json").json
    assert applied["applied"] is True
    assert run("schema", "apply", "--schema", new, graph, "--json").json["applied"] is False
    old = tmp_path / "schema.pg"
    assert "drop_property" in run("schema", "plan", "--from", new, "--schema", old).out
    assert "classDiagram" in run("schema", "diagram", graph).out or "Person" in run("schema", "diagram", graph).out


def test_tags(run: Run, graph: Path) -> None:
    assert run("tag", "create", "v1", "main", graph).code == 0
    older(run, graph, "ada", 99, "main")
    query = 'query q() { match { $p: Person { slug: "ada" } } return { $p.age } }'
    assert run("query", graph, "-e", query, "--snapshot", "v1", "--json").json["rows"] == [{"p.age": 36}]
    assert [t["name"] for t in run("tag", "list", graph, "--json").json["tags"]] == ["v1"]
    assert run("tag", "create", "v1", "main", graph).code == 3
    assert run("tag", "delete", "v1", graph).code == 0
    assert run("tag", "delete", "v1", graph).code == 1


def test_optimize_and_index(run: Run, graph: Path) -> None:
    built = run("index", graph, "--json").json
    assert built["commit"]["kind"] == "EnsureIndices"
    assert run("index", graph, "--json").json["commit"] is None
    older(run, graph, "ada", 50, "main")
    assert "node:Person" in run("optimize", graph).out


def test_lint_and_fmt(run: Run, schema: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.gq", tmp_path / "bad.gq"
    good.write_text("query all() { match { $p: Person } return { $p.slug } }")
    bad.write_text("query all() { match { $p: Person } return { $p.slg } }")
    assert run("lint", "--schema", schema, "--query", good).code == 0
    assert run("check", "--schema", schema, "--query", good, "--json").json["status"] == "ok"
    refused = run("lint", "--schema", schema, "--query", bad)
    assert refused.code == 1
    assert "slg" in refused.out
    assert run("fmt", "--check", good).code == 1
    assert run("fmt", good).code == 0
    assert run("fmt", "--check", good).code == 0


def test_optimize_refuses_a_table_that_is_not_there(run: Run, graph: Path) -> None:
    ran = run("optimize", graph, "--table", "node:Persn")
    assert ran.code == 1
    assert "no table `node:Persn`; did you mean `node:Person`?" in ran.err
