"""`omnigraph schema …` on branches, and the question before data is dropped."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run


def test_a_drop_of_values_wants_a_yes_and_says_how_many_go(run: Run, graph: Path, tmp_path: Path) -> None:
    accepted = run("schema", "show", graph, "--json").json["schema_source"]
    desired = tmp_path / "next.pg"
    desired.write_text("\n".join(line for line in accepted.splitlines() if "age" not in line))
    assert desired.read_text() != accepted
    refused = run("schema", "apply", "--schema", desired, graph)
    assert refused.code == 1
    assert "confirm it with --yes" in refused.err
    assert "drop_property node:Person.age" in refused.err
    assert run("schema", "show", graph, "--json").json["schema_source"] == accepted
    applied = run("schema", "apply", "--schema", desired, graph, "--yes")
    assert applied.code == 0, applied.err
    assert run("schema", "show", graph, "--json").json["schema_source"] == desired.read_text()


def test_a_schema_is_applied_on_the_branch_that_is_named(run: Run, graph: Path, tmp_path: Path) -> None:
    accepted = run("schema", "show", graph, "--json").json["schema_source"]
    desired = tmp_path / "next.pg"
    desired.write_text(accepted + "\nnode Extra { name: String? }\n")
    assert run("branch", "create", "side", graph).code == 0
    assert "add_type node:Extra" in run("schema", "plan", "--schema", desired, graph, "--branch", "side").out
    assert run("schema", "apply", "--schema", desired, graph, "--branch", "side").code == 0
    assert run("schema", "show", graph, "--json").json["schema_source"] == accepted
    shown = run("schema", "show", graph, "--branch", "side", "--json").json
    assert shown["schema_source"] == desired.read_text()
