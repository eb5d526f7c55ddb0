"""Drift: every way in which the world can differ from the ledger, forged, found by refresh, and healed by apply."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cluster import operations
from omnigraph.errors import NotFound
from tests.cluster.deployments import change, load_people, write


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write(tmp_path_factory.mktemp("template"))
    assert operations.apply(folder, None).converged
    load_people(folder, "ada")
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "cluster")
    return tmp_path / "cluster"


def drift(folder: Path) -> dict[str, str]:
    return {found.address: found.condition for found in operations.refresh(folder, "act-ada").findings}


def planned(folder: Path) -> dict[str, tuple[str, str]]:
    return {c.address: (c.operation, c.disposition) for c in operations.plan(folder).changes}


def heal(folder: Path) -> None:
    assert operations.apply(folder, None).converged
    assert not operations.apply(folder, None).changed
    assert drift(folder) == {}
    assert operations.status(folder).sound


def payload(folder: Path, address: str) -> Path:
    state = json.loads((folder / "__cluster/state.json").read_text())
    return folder / "__cluster/resources" / state["resources"][address]["payload"]


def test_without_drift_nothing_is_written(folder: Path) -> None:
    drift(folder)
    before = (folder / "__cluster/state.json").read_bytes()
    assert drift(folder) == {}
    assert (folder / "__cluster/state.json").read_bytes() == before


def test_a_graph_that_is_gone_is_planned_again(folder: Path) -> None:
    shutil.rmtree(folder / "graphs/people.omni")
    assert planned(folder) == {}  # the ledger has not heard of it
    assert drift(folder) == {"graph.people": "missing", "schema.people": "missing"}
    assert operations.status(folder).status_of("graph.people") == "drifted"
    assert planned(folder) == {"graph.people": ("create", "applied"), "schema.people": ("create", "derived")}
    heal(folder)
    # Forgetting it instead needs no approval: there is nothing to delete.
    shutil.rmtree(folder / "graphs/people.omni")
    drift(folder)
    change(folder, "cluster.yaml", "  people:\n    schema: people.pg\n", "")
    heal(folder)


@pytest.mark.parametrize("address", ["query.notes.all_notes", "policy.base"])
def test_payloads_that_are_gone_or_changed_are_written_again(folder: Path, address: str) -> None:
    payload(folder, address).unlink()
    assert not operations.status(folder).sound
    assert drift(folder) == {address: "payload_missing"}
    heal(folder)
    payload(folder, address).write_text("something else")
    assert operations.status(folder).payloads[address] == "damaged"
    assert drift(folder) == {address: "payload_damaged"}
    assert planned(folder)[address] == ("update", "applied")
    heal(folder)


def test_a_schema_that_was_changed_by_hand_is_put_back_or_taken_over(folder: Path) -> None:
    grown = "node Person {\n    slug: String @key\n    age: I32?\n    mail: String?\n}\n"
    with og.open(str(folder / "graphs/people.omni")) as graph:
        graph.apply_schema(grown)
    assert drift(folder) == {"schema.people": "changed"}
    change_planned = operations.plan(folder).change("schema.people")
    assert [step["kind"] for step in change_planned.steps] == ["drop_property"]
    heal(folder)
    with og.open(str(folder / "graphs/people.omni")) as graph:
        assert "mail" not in graph.schema_source()
        graph.apply_schema(grown)
    drift(folder)
    (folder / "people.pg").write_text(grown)
    heal(folder)
    with og.open(str(folder / "graphs/people.omni")) as graph:
        assert "mail" in graph.schema_source()
        assert graph.entity("Person", "ada")["age"] == 30


def _tear_ref(graph: Path) -> None:
    (graph / "_refs/branches/main.json").write_bytes(b"{")


def _lose_ref(graph: Path) -> None:
    (graph / "_refs/branches/main.json").unlink()


def _lose_ref_and_manifest(graph: Path) -> None:
    _lose_ref(graph)
    shutil.rmtree(graph / "__manifest")


@pytest.mark.parametrize(
    ("damage", "condition"),
    [(_tear_ref, "unreadable"), (_lose_ref, "unreadable"), (_lose_ref_and_manifest, "half")],
)
def test_a_graph_that_cannot_be_read_is_an_error_and_is_left_alone(
    folder: Path, tmp_path: Path, damage: Callable[[Path], None], condition: str
) -> None:
    graph = folder / "graphs/people.omni"
    shutil.copytree(graph, tmp_path / "sound")
    damage(graph)
    found = operations.refresh(folder, None)
    assert found.has_errors
    assert {f.address: f.condition for f in found.findings} == {"graph.people": condition}
    assert planned(folder) == {"graph.people": ("update", "blocked")}
    change(folder, "people.pg", "age: I32?", "age: I32?\n    mail: String?")
    change(folder, "queries/notes.gq", "$n.slug, $n.text", "$n.slug")
    result = operations.apply(folder, None)
    assert {o.change.address: o.outcome for o in result.outcomes} == {
        "graph.notes": "derived",
        "graph.people": "blocked",
        "schema.people": "blocked",
        "query.notes.all_notes": "applied",
    }
    assert (graph / "nodes").is_dir()
    change(folder, "people.pg", "\n    mail: String?", "")
    change(folder, "queries/notes.gq", "return { $n.slug }", "return { $n.slug, $n.text }")
    shutil.rmtree(graph)
    shutil.copytree(tmp_path / "sound", graph)
    assert drift(folder) == {}
    heal(folder)


def test_another_graph_in_the_place_of_one_is_told(folder: Path) -> None:
    shutil.rmtree(folder / "graphs/people.omni")
    og.init(str(folder / "graphs/people.omni"), schema=folder / "people.pg").close()
    assert drift(folder) == {"graph.people": "replaced"}
    heal(folder)


def test_a_ledger_that_is_lost_is_made_from_the_graphs(folder: Path) -> None:
    (folder / "__cluster/state.json").unlink()
    with pytest.raises(NotFound, match="there is no ledger yet"):
        operations.refresh(folder, None)
    assert planned(folder)["graph.people"] == ("create", "blocked")
    assert not (folder / "__cluster/state.json").exists()
    imported = operations.take_in_graphs(folder, "act-ada")
    assert (sorted(imported.imported), imported.missing, imported.refused) == (["notes", "people"], (), {})
    heal(folder)
    assert operations.take_in_graphs(folder, None).imported == ()
    with og.open(str(folder / "graphs/people.omni")) as graph:
        assert graph.entity("Person", "ada")["age"] == 30


def test_a_graph_that_nobody_declared_is_told_and_can_be_taken_in(folder: Path) -> None:
    og.init(str(folder / "graphs/stray.omni"), schema=folder / "people.pg").close()
    (folder / "graphs/broken.omni").mkdir()
    (folder / "graphs/broken.omni/x").write_text("x")
    assert operations.refresh(folder, None).unknown_graphs == ("broken", "stray")
    change(folder, "cluster.yaml", "  people:\n", "  stray:\n    schema: people.pg\n  people:\n")
    assert planned(folder)["graph.stray"] == ("create", "blocked")
    found = operations.take_in_graphs(folder, None)
    assert (found.imported, found.undeclared) == (("stray",), ("broken",))
    assert operations.apply(folder, None).converged
