"""`omnigraph cluster …`: what it prints for people and for programs, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cluster.deployments import change, without_people, write


def test_every_command_for_people_and_for_programs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "deployment")
    at = ("--config", folder)
    assert run("cluster", "validate", *at).out == "brain is valid: 2 graphs, 1 query, 1 policy, 1 provider\n"
    valid = run("cluster", "validate", *at, "--json").json
    assert (valid["valid"], valid["problems"], len(valid["resources"])) == (True, [], 7)
    assert "nothing was applied at" in run("cluster", "status", *at).out
    planned = run("cluster", "plan", *at, "--json").json
    assert planned["counts"] == {"create": 7, "update": 0, "delete": 0}
    assert set(planned["changes"][0]) == {
        *("address", "operation", "disposition", "reason", "waits_for", "approval", "steps", "before", "after")
    }
    shown = run("cluster", "plan", *at).out
    assert "+ graph.notes " in shown
    assert "7 to create" in shown
    applied = run("cluster", "apply", *at, "--as", "act-ada", "--json").json
    assert (applied["converged"], applied["changed"], applied["recovered"]) == (True, True, [])
    assert {entry["outcome"] for entry in applied["changes"]} == {"applied", "derived"}
    monkeypatch.chdir(folder)
    assert "nothing to do: what is applied is what is wanted" in run("cluster", "apply").out
    status = run("cluster", "status", "--json").json
    assert (status["converged"], status["sound"], status["lock"], status["updated_by"]) == (True, True, None, "act-ada")
    assert "policy.base" in run("cluster", "status").out

    change(folder, "people.pg", "    age: I32?\n", "")
    change(folder, "notes.pg", "text: String?", "text: String?\n    stars: I32?")
    shown = run("cluster", "plan").out
    assert "drop_property node:Person.age" in shown
    assert "(0 rows)" in shown
    assert "revision" in run("cluster", "apply").out.splitlines()[-1]
    without_people(folder)
    told = run("cluster", "plan")
    assert (told.code, "it needs an approval: omnigraph cluster approve graph.people" in told.out) == (0, True)
    left = run("cluster", "apply")
    assert (left.code, "not converged: 2 changes left to do" in left.out) == (1, True)
    approved = run("cluster", "approve", "graph.people", "--as", "act-ada", "--json").json
    assert (approved["address"], approved["approved_by"]) == ("graph.people", "act-ada")
    assert run("cluster", "apply").code == 0
    assert run("cluster", "approve", "graph.people").code == 1

    (folder / "__cluster/state.json").unlink()
    assert run("cluster", "plan").code == 1
    assert run("cluster", "import", "--json").json["imported"] == ["notes"]
    assert run("cluster", "apply").code == 0
    drift = run("cluster", "refresh", "--json").json
    assert (drift["drift"], drift["unknown_graphs"]) == ([], [])
    assert "no drift" in run("cluster", "refresh").out
    assert "nobody holds the lock" in run("cluster", "force-unlock", "01X").err

    change(folder, "cluster.yaml", "version: 1", "version: 1\nui: 1\ncolour: 2")
    broken = run("cluster", "validate")
    assert broken.code == 1
    assert broken.out.splitlines()[:2] == [
        "cluster.yaml:2:1: the key `ui` is reserved for later releases",
        "cluster.yaml:3:1: unknown key `colour`; a cluster has version, metadata, storage, state, providers, graphs, "
        "policies",
    ]
    assert run("cluster", "plan", "--json").json["problems"][0]["line"] == 2
    assert "2 problems" in run("cluster", "apply").err


def test_a_cluster_has_a_name_in_the_configuration(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / "deployment")
    (tmp_path / "home/.omnigraph").mkdir(parents=True)
    config = tmp_path / "home/.omnigraph/config.yaml"
    config.write_text(f"actor: act-ada\nclusters:\n  brain: {tmp_path / 'deployment'}\n")
    assert run("cluster", "validate", "--config", "brain").code == 0
    assert run("profile", "set", "work", "--cluster", "brain", "--default").code == 0
    assert run("cluster", "validate").code == 0
    shown = {entry["name"]: entry["value"] for entry in run("config", "show", "--json").json["values"]}
    assert shown["clusters.brain"] == str(tmp_path / "deployment")
    config.write_text("clusters: [brain]\n")
    assert "clusters is a mapping of names" in run("cluster", "validate").err


def test_an_old_omnigraph_yaml_says_how_to_move(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "omnigraph.yaml"
    old.write_text("graphs:\n  prod: { uri: s3://b/prod.omni }\nqueries: { dir: q }\npolicy: { file: p.yaml }\n")
    monkeypatch.chdir(tmp_path)
    told = run("version", "--json")
    assert told.json["omnigraph"]
    for part in (
        "omnigraph.yaml is read by nothing",
        "graphs:\n    prod:",
        "omnigraph copy s3://b/prod.omni",
        "policies",
    ):
        assert part in told.err, told.err
    refused = run("cluster", "plan")
    assert (refused.code, "there is no cluster.yaml" in refused.err) == (1, True)
    old.write_text("graphs: [")
    assert "omnigraph.yaml is read by nothing" in run("version").err
    write(tmp_path)
    assert "omnigraph.yaml" not in run("version").err
