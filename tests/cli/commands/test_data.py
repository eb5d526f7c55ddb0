"""load, query, mutate: text, JSON, exit codes, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, real_process

ALL = "query all() { match { $p: Person } return { $p.slug, $p.age } }"
OLDER = "query older($s: String, $a: I32) { update Person set { age: $a } where slug = $s }"


def test_query_prints_a_table_for_people(run: Run, graph: Path) -> None:
    ran = run("query", graph, "-e", ALL)
    assert ran.code == 0
    assert "ada" in ran.out
    assert "36" in ran.out
    assert "2 rows" in ran.out


def test_query_json_has_the_server_s_shape(run: Run, graph: Path) -> None:
    data = run("query", graph, "-e", ALL, "--json").json
    assert set(data) == {"query_name", "target", "columns", "row_count", "rows", "graph_commit_id"}
    assert data["rows"] == [{"p.slug": "ada", "p.age": 36}, {"p.slug": "bob", "p.age": 20}]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("jsonl", '{"p.slug":"ada","p.age":36}\n{"p.slug":"bob","p.age":20}\n'),
        ("csv", "p.slug,p.age\nada,36\nbob,20\n"),
    ],
)
def test_query_formats(run: Run, graph: Path, shape: str, expected: str) -> None:
    assert run("query", graph, "-e", ALL, "--format", shape).out.replace("\r\n", "\n") == expected


def test_key_value_blocks(run: Run, graph: Path) -> None:
    assert "p.slug" in run("query", graph, "-e", ALL, "-f", "kv").out


def test_an_older_snapshot_can_be_queried(run: Run, graph: Path) -> None:
    assert run("query", graph, "-e", ALL, "--snapshot", "1", "--json").json["row_count"] == 0


def test_explain_shows_the_plan(run: Run, graph: Path) -> None:
    assert "Person" in run("query", graph, "-e", ALL, "--explain").out
    assert "rows" in run("query", graph, "-e", ALL, "--analyze").out


def test_a_query_stops_when_its_time_is_over(run: Run, graph: Path) -> None:
    for more in ((), ("--analyze",), ("--json",)):
        ran = run("query", graph, "-e", ALL, "--timeout", "0.000001", *more)
        assert ran.code == 1
        assert "did not finish within" in ran.err + ran.out
    assert run("query", graph, "-e", ALL, "--timeout", "60").code == 0


def test_a_type_error_shows_code_caret_and_suggestion(run: Run, graph: Path) -> None:
    ran = run("query", graph, "-e", "query q() { match { $p: Persn } return { $p } }")
    assert ran.code == 1
    assert "error[T1]" in ran.err
    assert "did you mean `Person`?" in ran.err


def test_mutate_from_a_file_with_parameters(run: Run, graph: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.gq"
    queries.write_text(OLDER, encoding="utf-8-sig")
    params = tmp_path / "p.json"
    params.write_text('{"s": "ada", "a": 1}', encoding="utf-8-sig")
    ran = run(
        "mutate",
        graph,
        "--query",
        queries,
        "--params-file",
        params,
        "--params",
        '{"a": 37}',
        "--as",
        "act-ada",
        "--json",
    )
    assert ran.json["affected_nodes"] == 1
    assert ran.json["actor_id"] == "act-ada"
    same = run("mutate", graph, "-e", OLDER, "--params", '{"s": "ada", "a": 37}', "--json")
    assert same.json["commit"] is None
    said = run("mutate", graph, "-e", OLDER, "--params", '{"s": "ada", "a": 38}')
    assert said.out.startswith("1 node and 0 edges affected; commit ")


def test_if_commit_refuses_with_exit_4(run: Run, graph: Path) -> None:
    head = run("snapshot", graph, "--json").json["graph_commit_id"]
    args = ("mutate", graph, "-e", OLDER, "--if-commit", head)
    assert run(*args, "--params", '{"s": "ada", "a": 40}').code == 0
    refused = run(*args, "--params", '{"s": "ada", "a": 41}')
    assert refused.code == 4
    assert "has changed since commit" in refused.err


def test_a_load_reports_every_violation_with_its_place(run: Run, graph: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    lines = [
        {"type": "Person", "data": {"slug": "eve", "age": "old"}},
        {"edge": "WorksAt", "from": "bob", "to": "nowhere"},
        {"type": "Persn", "data": {}},
    ]
    bad.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = run("load", "--data", bad, "--mode", "append", graph)
    assert ran.code == 1
    for expected in ("record 1", "record 2", "record 3", "nowhere", "nothing was published"):
        assert expected in ran.err
    assert run("query", graph, "-e", ALL, "--json").json["row_count"] == 2
    bad.write_text('{"type": "Person", "data": {"slug": "\\ud800"}}')
    refused = run("load", "--data", bad, "--mode", "append", graph, "--json")
    assert [v["record"] for v in refused.json["violations"]] == [1]


def test_an_existing_id_is_a_conflict_with_exit_3(run: Run, graph: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    again.write_text('{"type": "Person", "data": {"slug": "ada"}}\n')
    ran = run("load", "--data", again, "--mode", "append", graph)
    assert ran.code == 3
    assert "exists already" in ran.err


def test_load_onto_a_branch_made_on_the_way(run: Run, graph: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"type": "Person", "data": {"slug": "cy"}}\n')
    ran = run("load", "--data", more, "--mode", "merge", "--branch", "in/1", "--from", "main", graph, "--json")
    assert ran.json["branch_created"] is True
    assert ran.json["tables"] == [{"table_key": "node:Person", "rows_loaded": 1}]
    assert run("query", graph, "-e", ALL, "--json").json["row_count"] == 2
    assert run("query", graph, "-e", ALL, "--branch", "in/1", "--json").json["row_count"] == 3


def test_csv_with_a_mapping(run: Run, graph: Path, tmp_path: Path) -> None:
    rows = tmp_path / "people.csv"
    rows.write_text("name,years\nzoe,50\n")
    args = ("--type", "Person", "--map", "name=slug", "--map", "years=age")
    assert run("load", "--data", rows, "--mode", "append", *args, graph).code == 0
    found = run("query", graph, "-e", ALL, "--json").json["rows"]
    assert {"p.slug": "zoe", "p.age": 50} in found


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("load", "--data", "x", "--mode", "append", "--from", "main"), "name it with --branch"),
        (("query",), "either with --query FILE or inline"),
        (("query", "-e", ALL, "--params", "{"), "--params is not valid JSON"),
        (("query", "-e", ALL, "--params", "[1]"), "must be a JSON object"),
        (("query", "-e", ALL, "--params", '{"a": 1, "a": 2}'), 'the key "a" comes twice'),
        (("query", "-e", ALL, "--params", f'{{"a": {"9" * 5000}}}'), "5000 digits"),
        (("query", "-e", ALL, "--params", '{"a":' * 5000), "nested too deeply"),
        (("query", "-e", ALL, "--params", '{"x": 1}'), "x"),
        (("query", "--query", "missing.gq"), "does not exist"),
        (("load", "--data", "missing.jsonl", "--mode", "append"), "missing.jsonl"),
        (("mutate", "-e", ALL), "is a read"),
        (("query", "-e", OLDER), "is a mutation"),
    ],
)
def test_bad_input_is_one_clear_message(run: Run, graph: Path, argv: tuple[str, ...], message: str) -> None:
    ran = run(*argv, "--store", graph)
    assert ran.code == 1
    assert message in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("load", "--data", "x", "--mode", "upsert"), "'upsert' is not one of 'append', 'merge', 'overwrite'"),
        (("query", "-e", ALL, "--format", "xml"), "'xml' is not one of 'json'"),
        (("query", "-e", ALL, "--engine", "x"), "'x' is not one of 'auto', 'local', 'spark'"),
        (("load", "--data", "x"), "Missing option '--mode'"),
        (("qeury",), "No such command 'qeury'"),
        (("branch", "mrge"), "No such command 'mrge'"),
        (("snapshot", "--nope"), "No such option: --nope"),
    ],
)
def test_wrong_usage_is_one_clear_message_too(run: Run, graph: Path, argv: tuple[str, ...], message: str) -> None:
    ran = run(*argv, "--store", graph)
    assert ran.code == 2
    assert message in ran.err
    assert ran.out == ""


def test_load_from_standard_input(graph: Path, tmp_path: Path) -> None:
    given = '{"type": "Person", "data": {"slug": "cy"}}\n{"type": "Person", "data": {"slug": 5}}\n'
    refused = real_process("load", "--data", "-", "--mode", "append", graph, cwd=tmp_path, stdin=given)
    assert refused.code == 1
    assert "/dev/stdin, record 2: node:Person: `slug` must be String, not 5" in refused.err
    ran = real_process("load", "--data", "-", "--mode", "append", graph, cwd=tmp_path, stdin=given.splitlines()[0])
    assert ran.code == 0


def test_nothing_but_the_result_is_on_stdout(graph: Path, tmp_path: Path) -> None:
    ran = real_process("query", graph, "-e", ALL, "-f", "jsonl", cwd=tmp_path)
    assert [json.loads(line)["p.slug"] for line in ran.out.splitlines()] == ["ada", "bob"]
    assert ran.err == ""
