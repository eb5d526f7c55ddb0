"""Apply: what it does and in which order, that a second one does nothing, what happens when a part fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cluster import operations
from omnigraph.cluster.change.apply_changes import ApplyResult
from omnigraph.errors import BadRequest, NotFound
from tests.cluster.deployments import change, load_people, without_people, write


def outcomes(result: ApplyResult) -> dict[str, str]:
    return {outcome.change.address: outcome.outcome for outcome in result.outcomes}


def ledger(folder: Path) -> dict[str, object]:
    return json.loads((folder / "__cluster/state.json").read_text())


def test_from_nothing_to_everything_and_then_nothing(tmp_path: Path) -> None:
    write(tmp_path)
    planned = operations.plan(tmp_path)
    assert not (tmp_path / "__cluster").exists()
    assert {change.address: change.disposition for change in planned.changes} == {
        "provider.embedding.default": "applied",
        "graph.notes": "applied",
        "graph.people": "applied",
        "schema.notes": "derived",
        "schema.people": "derived",
        "query.notes.all_notes": "applied",
        "policy.base": "applied",
    }
    assert planned.change("policy.base").waits_for == ("graph.notes",)
    first = operations.apply(tmp_path, "act-ada")
    assert (first.converged, first.changed) == (True, True)
    with og.open(str(tmp_path / "graphs/notes.omni"), read_only=True) as graph:
        assert graph.head().actor_id == "act-ada"
    before = (tmp_path / "__cluster/state.json").read_bytes()
    again = operations.apply(tmp_path, "act-bob")
    assert (again.converged, again.changed, again.outcomes) == (True, False, ())
    assert (tmp_path / "__cluster/state.json").read_bytes() == before
    assert list((tmp_path / "__cluster/recoveries").iterdir()) == []
    assert not (tmp_path / "__cluster/lock.json").exists()


def test_changes_approvals_and_a_deletion(tmp_path: Path) -> None:
    write(tmp_path)
    operations.apply(tmp_path, None)
    load_people(tmp_path, "ada", "bob")

    # A schema that grows, with the rows it touches, and a policy that changes.
    change(tmp_path, "people.pg", "age: I32?", "age: I32?\n    mail: String?")
    change(tmp_path, "base.policy.yaml", "[act-ada]", "[act-ada, act-bob]")
    planned = operations.plan(tmp_path).change("schema.people")
    assert [(step["kind"], step["table_rows"]) for step in planned.steps] == [("add_property", 2)]
    assert outcomes(operations.apply(tmp_path, None)) == {
        "graph.people": "derived",
        "schema.people": "applied",
        "policy.base": "applied",
    }

    # Data that is dropped softly without an approval.
    change(tmp_path, "people.pg", "    age: I32?\n", "")
    planned = operations.plan(tmp_path).change("schema.people")
    assert (planned.disposition, planned.approval.required, planned.approval.state) == ("applied", False, "missing")
    assert planned.steps[0]["hard"] is False
    assert operations.apply(tmp_path, None).converged
    with og.open(str(tmp_path / "graphs/people.omni"), read_only=True) as graph:
        earlier = graph.log()[1].graph_commit_id
        assert graph.entity("Person", "ada", at=earlier)["age"] == 30

    # And for good with one.
    change(tmp_path, "people.pg", "    mail: String?\n", "")
    with og.open(str(tmp_path / "graphs/people.omni")) as graph:
        graph.load([{"type": "Person", "data": {"slug": "cleo", "mail": "c@x"}}], mode="append")
    approval = operations.approve(tmp_path, "schema.people", "act-ada")
    planned = operations.plan(tmp_path).change("schema.people")
    assert (planned.approval.state, planned.steps[0]["hard"]) == ("valid", True)
    assert operations.apply(tmp_path, None).converged
    assert [used["id"] for used in ledger(tmp_path)["approvals_used"]] == [approval.id]

    # A graph goes only when that is approved; the rest does not wait.
    without_people(tmp_path)
    change(tmp_path, "base.policy.yaml", ", act-bob", "")
    result = operations.apply(tmp_path, None)
    assert (outcomes(result)["graph.people"], outcomes(result)["policy.base"]) == ("deferred", "applied")
    assert not result.converged
    revision = result.revision
    assert operations.apply(tmp_path, None).revision == revision  # nothing new to say
    operations.approve(tmp_path, "graph.people", "act-ada")
    result = operations.apply(tmp_path, None)
    assert outcomes(result) == {"graph.people": "applied", "schema.people": "derived"}
    assert result.converged
    assert not (tmp_path / "graphs/people.omni").exists()
    assert not operations.apply(tmp_path, None).changed


def test_an_approval_is_for_what_was_there_and_for_once(tmp_path: Path) -> None:
    write(tmp_path)
    operations.apply(tmp_path, None)
    with pytest.raises(NotFound, match=r"no change of `graph\.people`"):
        operations.approve(tmp_path, "graph.people", None)
    with pytest.raises(BadRequest, match="no address"):
        operations.approve(tmp_path, "people", None)
    change(tmp_path, "queries/notes.gq", "$n.slug, $n.text", "$n.slug")
    with pytest.raises(BadRequest, match="needs no approval"):
        operations.approve(tmp_path, "query.notes.all_notes", None)
    without_people(tmp_path)
    operations.approve(tmp_path, "graph.people", "act-ada")

    # What is wanted changes: stale. As it was: good again. What is there changes: stale.
    change(tmp_path, "queries/notes.gq", "$n.slug", "$n.text")
    assert operations.plan(tmp_path).change("graph.people").approval.state == "stale"
    change(tmp_path, "queries/notes.gq", "$n.text", "$n.slug")
    assert operations.plan(tmp_path).change("graph.people").approval.state == "valid"
    cluster = (tmp_path / "cluster.yaml").read_text()
    write(tmp_path)
    (tmp_path / "base.policy.yaml").write_text("version: 1\ngroups: {}\nrules: []\n")
    operations.apply(tmp_path, None)
    (tmp_path / "cluster.yaml").write_text(cluster)
    planned = operations.plan(tmp_path).change("graph.people")
    assert (planned.disposition, planned.approval.state) == ("deferred", "stale")

    # Used once: the same graph, made again, needs another.
    operations.approve(tmp_path, "graph.people", "act-ada")
    assert operations.apply(tmp_path, None).converged
    write(tmp_path)
    operations.apply(tmp_path, None)
    without_people(tmp_path)
    assert operations.plan(tmp_path).change("graph.people").disposition == "deferred"
    listed = operations.status(tmp_path).to_json()["approvals"]
    assert [entry["used"] for entry in listed] == [False, True]


def test_what_fails_blocks_what_waits_for_it_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path)
    strange = tmp_path / "graphs/notes.omni"
    strange.mkdir(parents=True)
    (strange / "letter.txt").write_text("not a graph")
    result = operations.apply(tmp_path, None)
    assert outcomes(result) == {
        "provider.embedding.default": "applied",
        "graph.notes": "blocked",
        "graph.people": "applied",
        "schema.notes": "blocked",
        "schema.people": "derived",
        "query.notes.all_notes": "blocked",
        "policy.base": "blocked",
    }
    assert not result.converged
    status = operations.status(tmp_path)
    assert (status.status_of("graph.notes"), status.status_of("query.notes.all_notes")) == ("blocked", "pending")
    assert (strange / "letter.txt").exists()
    (strange / "letter.txt").unlink()
    again = operations.apply(tmp_path, None)
    assert again.converged
    assert "graph.people" not in outcomes(again)

    # A migration that the data does not allow.
    load_people(tmp_path, "ada")
    change(tmp_path, "people.pg", "age: I32?", "age: String?")
    change(tmp_path, "queries/notes.gq", "$n.slug, $n.text", "$n.slug")
    result = operations.apply(tmp_path, None)
    assert (outcomes(result)["schema.people"], outcomes(result)["query.notes.all_notes"]) == ("blocked", "applied")
    change(tmp_path, "people.pg", "age: String?", "age: I32?")
    assert operations.apply(tmp_path, None).converged
    assert not operations.apply(tmp_path, None).changed
