"""init, snapshot, version, and how errors show."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run, real_process


def test_init_makes_a_graph_and_refuses_to_overwrite_it(run: Run, schema: Path, tmp_path: Path) -> None:
    path = tmp_path / "g.omni"
    made = run("init", "--schema", schema, path, "--json")
    assert made.code == 0
    assert made.json["tables"] == ["edge:WorksAt", "node:Company", "node:Person"]
    again = run("init", "--schema", schema, path)
    assert again.code == 1
    assert "there is a graph at" in again.err


def test_a_broken_schema_shows_place_line_and_caret(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pg"
    broken.write_text("node Person { slug: Strin @key }\n")
    ran = run("init", "--schema", broken, tmp_path / "g.omni")
    assert ran.code == 1
    assert "did you mean `String`?" in ran.err
    assert "^^^^^" in ran.err
    assert not (tmp_path / "g.omni").exists()


def test_snapshot_shows_every_table(run: Run, graph: Path) -> None:
    text = run("snapshot", graph)
    assert "node:Person" in text.out
    data = run("snapshot", graph, "--json").json
    assert {t["table_key"]: t["row_count"] for t in data["tables"]} == {
        "edge:WorksAt": 1,
        "node:Company": 1,
        "node:Person": 2,
    }
    old = run("snapshot", graph, "--at", "1", "--json").json
    assert all(t["row_count"] == 0 for t in old["tables"])


def test_a_missing_graph_is_one_sentence_not_a_traceback(run: Run, tmp_path: Path) -> None:
    ran = run("snapshot", tmp_path / "nothing")
    assert ran.code == 1
    assert "there is no graph at" in ran.err
    assert "Traceback" not in ran.err


def test_usage_errors_exit_with_2(run: Run) -> None:
    assert run("no-such-command").code == 2
    assert run("init").code == 2
    named = run("snapshot")
    assert named.code == 1
    assert "no graph was named" in named.err


def test_the_store_can_be_named_by_option_or_environment(run: Run, graph: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert run("snapshot", "--store", graph).code == 0
    monkeypatch.setenv("OMNIGRAPH_STORE", str(graph))
    assert run("snapshot").code == 0


def test_json_errors_have_the_server_s_shape(run: Run, graph: Path) -> None:
    ran = run("commit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV", graph, "--json")
    assert ran.code == 1
    assert ran.json["code"] == "not_found"
    assert ran.err == ""


def test_the_installed_program_runs(graph: Path, tmp_path: Path) -> None:
    ran = real_process("snapshot", graph, "--json", cwd=tmp_path)
    assert ran.code == 0
    assert ran.json["branch"] == "main"
    assert ran.err == ""
