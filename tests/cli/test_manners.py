"""What a new user types, right and wrong: help, versions, one clear message, and never a traceback."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from tests.cli.conftest import SCHEMA, Run

ALL = "query q() { match { $p: Person } return { $p.slug } }"


@pytest.fixture
def files(tmp_path: Path, graph: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that somebody may name by mistake, in the working directory, beside the graph `g.omni`."""
    content: dict[str, bytes] = {
        "bad.pg": b"node P {\n    k: Strin @key\n}\n",
        "binary.pg": b"\xff\xfe\x00",
        "narrow.pg": SCHEMA.replace("age: I32?", "age: String?").encode(),
        "empty.jsonl": b"",
        "broken.jsonl": b'{"type": "Person"\n',
        "binary.jsonl": b"\x00\xff" * 50,
        "bad.parquet": b"PAR1xxxx",
        "people.csv": b"slug,age\nzoe,old\n",
        "edges.csv": b"a,b\nada,acme\n",
        "two.gq": f"{ALL}\n{ALL.replace('query q', 'query r')}".encode(),
        "empty.gq": b"",
        "bad.gq": b"query a( { match",
        "list.json": b"[1]",
    }
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "directory").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OMNIGRAPH_STORE", raising=False)
    return tmp_path


WRONG = """
snapshot                                                     | no graph was named
snapshot nothing.omni                                        | there is no graph at
snapshot bad.pg                                              | it is a file, and a graph is a directory
snapshot directory                                           | there is no graph at
snapshot gs://x/y                                            | not at gs://
init --schema no.pg new                                      | the schema file no.pg does not exist
init --schema directory new                                  | is a directory; a file is needed
init --schema binary.pg new                                  | is not UTF-8 text
init --schema bad.pg new                                     | --> bad.pg:2:8
init --schema schema.pg .                                    | is not empty: it holds
init --schema schema.pg bad.pg                               | there is a file at this path
init --schema schema.pg g.omni                               | there is a graph at
load --data no.jsonl --mode append g.omni                    | there is no file no.jsonl
load --data directory --mode append g.omni                   | holds nothing to load
load --data broken.jsonl --mode append g.omni                | broken.jsonl, record 1
load --data binary.jsonl --mode append g.omni                | not text in UTF-8
load --data bad.parquet --mode append --type Person g.omni   | bad.parquet is not a readable parquet file
load --data people.csv --mode append g.omni                  | name it with type=
load --data people.csv --mode append --type Person g.omni    | people.csv, record 1
load --data people.csv --mode append --type Zed g.omni       | the schema has no type `Zed`
load --data edges.csv --mode append --type WorksAt --src a g.omni | dst=… (--dst)
load --data empty.jsonl --mode append --branch nope g.omni   | there is no branch `nope`
load --data empty.jsonl --mode append --map x g.omni         | write column=property
load --data '*.zzz' --mode append g.omni                     | no file matches
query g.omni                                                 | either with --query FILE or inline
query g.omni --query directory                               | is a directory; a file is needed
query g.omni --query empty.gq                                | --> empty.gq:1:1
query g.omni --query bad.gq                                  | --> bad.gq:1:10
query g.omni --query two.gq                                  | name one of them: q, r
query g.omni --query two.gq --name s                         | there is no query `s`
query g.omni --query two.gq --name q --at nope               | `nope` is no branch, tag or commit
query g.omni --query two.gq --name q --params-file directory | is a directory; a file is needed
mutate g.omni --query two.gq --name q                        | is a read
branch create main g.omni                                    | `main` always exists
branch create 'a b' g.omni                                   | is not a valid branch name
branch create r --from nope g.omni                           | `nope` is no branch
branch delete nope g.omni                                    | there is no branch `nope`
branch merge nope g.omni                                     | there is no branch `nope`
branch merge main g.omni                                     | cannot be merged into itself
branch merge __schema_apply_lock__ g.omni                    | merge: `__schema_apply_lock__` is a system name
branch diff main nope g.omni                                 | `nope` is no branch
branch diff main main g.omni --kind x                        | use node or edge
commit show nope g.omni                                      | `nope` is no branch, tag or commit of this graph
commit list g.omni --filter x                                | is not understood
commit list g.omni --filter since=yesterday                  | is not an ISO time
changes g.omni --since nope                                  | neither a cursor nor a commit
schema plan --schema bad.pg g.omni                           | --> bad.pg:2:8
schema apply --schema bad.pg g.omni                          | --> bad.pg:2:8
schema plan --schema schema.pg --from directory              | is a directory; a file is needed
export g.omni --to .                                         | is a directory; name the file
export g.omni --to bad.pg/x.jsonl                            | cannot be written
export g.omni --to out --format parquet --type Zed           | the schema has no type `Zed`
export g.omni --to gs://x/y                                  | not to gs://
lint --schema schema.pg --query no.gq                        | the query file no.gq does not exist
fmt list.json                                                | neither a schema
optimize g.omni --table nope                                 | has no table `nope`
repair g.omni --force                                        | confirm them as well
cleanup g.omni --keep 1                                      | keep 3 or more
cleanup g.omni --older-than soon                             | is not a length of time
verify nothing.omni                                          | there is no graph at
tag create 'v 1' main g.omni                                 | is not a valid tag name
tag create v1 nope g.omni                                    | `nope` is no branch
tag delete nope g.omni                                       | there is no tag `nope`
demo bad.pg --engine local --people 100                      | there is a file at this path
"""


def test_whatever_is_wrong_is_one_clear_message(run: Run, files: Path) -> None:
    for line in WRONG.strip().splitlines():
        command, message = (part.strip() for part in line.split(" | "))
        ran = run(*shlex.split(command))
        assert ran.code in (1, 3), (command, ran)
        assert message in ran.err, (command, ran.err)
        assert "unexpected " not in ran.err.removeprefix("error: ")[:12], (command, ran.err)
        assert "Traceback" not in ran.err, command


def test_without_a_command_there_is_help(run: Run) -> None:
    whole = run()
    assert whole.code == 0
    assert whole.err == ""
    for part in ("init", "cleanup", "--version", "--debug", "OMNIGRAPH_STORE", "OMNIGRAPH_ACTOR"):
        assert part in whole.out
    part_only = run("branch")
    assert (part_only.code, part_only.err) == (0, "")
    assert "merge" in part_only.out


def test_versions(run: Run) -> None:
    shown = run("version", "--json").json
    assert list(shown)[:4] == ["omnigraph", "storage_format", "lance", "spark"]
    assert shown["omnigraph"] == og.__version__
    for text in (run("--version"), run("version")):
        assert text.code == 0
        assert f"omnigraph {og.__version__}, storage format {shown['storage_format']}, lance " in text.out


def test_errors_for_programs_are_json_too(run: Run) -> None:
    ran = run("snapshot", "nothing.omni", "--json")
    assert (ran.code, ran.err) == (1, "")
    assert ran.json["kind"] == "not_found"


def test_debug_shows_where_an_error_came_from(files: Path) -> None:
    with pytest.raises(og.errors.NotFound):
        main(["--debug", "snapshot", "nothing.omni"])
    with pytest.raises(og.errors.NotFound):
        main(["snapshot", "nothing.omni", "--debug"])


def test_ctrl_c_is_no_traceback(run: Run, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("omnigraph.graph.Graph.snapshot", interrupted)
    ran = run("snapshot", graph)
    assert ran.code == 130
    assert ran.err == "cancelled\n"


def test_a_plan_that_cannot_be_applied_fails(run: Run, files: Path) -> None:
    for command in ("schema plan --schema narrow.pg g.omni", "schema plan --schema narrow.pg --from schema.pg"):
        ran = run(*command.split())
        assert (ran.code, ran.err) == (1, "")
        assert "cannot be applied" in ran.out
        assert run(*command.split(), "--json").json["supported"] is False
    assert run("schema", "plan", "--schema", "schema.pg", "g.omni").code == 0


def test_lists_tell_who_and_when(run: Run, graph: Path) -> None:
    assert run("branch", "create", "r", graph, "--as", "act-ada").code == 0
    assert run("tag", "create", "v1", "main", graph, "--as", "act-bob").code == 0
    main_, made = run("branch", "list", graph, "--json").json["branches"]
    assert (main_["name"], made["name"], made["created_by"], made["source_branch"]) == ("main", "r", "act-ada", "main")
    assert made["created_at"] > 1_700_000_000_000_000
    assert len(made["head"]) == 26
    (tag,) = run("tag", "list", graph, "--json").json["tags"]
    assert (tag["name"], tag["created_by"]) == ("v1", "act-bob")
    assert tag["created_at"] > made["created_at"]
    assert "act-ada" in run("branch", "list", graph).out


def test_a_query_has_its_name_in_the_document(run: Run, graph: Path) -> None:
    assert run("query", graph, "--json", "-e", ALL).json["query_name"] == "q"
    assert run("query", graph, "--format", "json", "--name", "q", "-e", ALL).json["query_name"] == "q"


def test_a_dry_run_with_conflicts_does_not_say_merged(run: Run, graph: Path) -> None:
    older = 'query o($a: I32) { update Person set { age: $a } where slug = "ada" }'
    assert run("branch", "create", "r", graph).code == 0
    assert run("mutate", graph, "-e", older, "--params", '{"a": 1}', "--branch", "r").code == 0
    assert run("mutate", graph, "-e", older, "--params", '{"a": 2}').code == 0
    ran = run("branch", "merge", "r", graph, "--dry-run")
    assert ran.code == 3
    assert "merged" not in ran.out
    assert "would be refused" in ran.out
    document = run("branch", "merge", "r", graph, "--dry-run", "--json").json
    assert (document["outcome"], document["dry_run"], len(document["merge_conflicts"])) == ("conflicts", True, 1)


def test_a_load_can_have_a_condition(run: Run, graph: Path, tmp_path: Path) -> None:
    head = run("commit", "list", graph, "--json").json["commits"][0]["graph_commit_id"]
    data = tmp_path / "more.jsonl"
    data.write_text('{"type": "Person", "data": {"slug": "zoe"}}\n')
    load = ("load", "--data", data, "--mode", "merge", graph, "--if-commit", head)
    assert run(*load).code == 0
    data.write_text('{"type": "Person", "data": {"slug": "yan"}}\n')
    assert run(*load).code == 4


def test_the_history_is_drawn_by_a_switch(run: Run, graph: Path) -> None:
    for words in (("--graph", graph), (graph, "--dag"), ("--dag", graph)):
        assert run("commit", "list", *words).out.startswith("*  ")


def test_an_export_is_not_overwritten_in_silence(run: Run, graph: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    assert run("export", graph, "--to", target).code == 0
    refused = run("export", graph, "--to", target)
    assert refused.code == 3
    assert "--overwrite" in refused.err
    assert run("export", graph, "--to", target, "--overwrite").code == 0


def test_failpoints_and_settings_from_the_environment(graph: Path) -> None:
    insert = "query q($slug: String) { insert Person { slug: $slug } }"

    def ran(**variables: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-c",
            "from omnigraph.cli.main import run; run()",
            "mutate",
            str(graph),
            "-e",
            insert,
            "--params",
            '{"slug": "' + "-".join(variables.values()) + '"}',
        ]
        return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)

    assert ran(OMNIGRAPH_FAILPOINTS="write.table_committed=kill").returncode == -9
    misspelt = ran(OMNIGRAPH_FAILPOINTS="write.table_comitted=kill")
    assert misspelt.returncode == 1
    assert "did you mean write.table_committed" in misspelt.stderr
    assert "Traceback" not in misspelt.stderr
    wrong = ran(OMNIGRAPH_PUBLISHER_RETRY_BUDGET="abc")
    assert wrong.returncode == 1
    assert "OMNIGRAPH_PUBLISHER_RETRY_BUDGET: `abc` is not a whole number" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    assert ran(OMNIGRAPH_ACTOR="act-env").returncode == 0
    with og.open(graph, read_only=True) as opened:
        assert opened.head().actor_id == "act-env"
