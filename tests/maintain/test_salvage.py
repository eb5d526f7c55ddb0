"""Salvage: whatever is damaged, the rest comes out, loads again, and what is lost is listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.maintain.salvage import SalvageReport, salvage
from tests.maintain.graphs import PERSON, knows, people, put


@pytest.fixture
def filled(store: GraphStore) -> GraphStore:
    """People and edges on two branches."""
    put(store, ada=1, bob=2)
    put(store, cid=3)
    knows(store, "ada", "bob")
    create_branch(store, "review")
    put(store, "review", dan=4)
    put(store, eve=5)
    return store


def names(report: SalvageReport, state: str) -> set[str]:
    (found,) = [one for one in report.states if one.name == state]
    assert found.path is not None
    lines = [json.loads(line) for line in Path(found.path).read_text().splitlines()]
    return {line["data"]["name"] for line in lines if line.get("type") == "Person"}


def newest_manifest(store: GraphStore, branch: str = "main") -> Path:
    line = store.branch(branch).manifest_branch
    place = Path(store.uri, "__manifest", *(["tree", line] if line else []), "_versions")
    return min(place.glob("*.manifest"))


def test_a_sound_graph_comes_out_whole_and_loads_again(filled: GraphStore, tmp_path: Path) -> None:
    report = salvage(filled.uri, tmp_path / "out")
    assert report.whole, report
    assert names(report, "main") == set(people(filled))
    assert names(report, "review") == set(people(filled, branch="review"))
    again = og.init(tmp_path / "again", schema=(tmp_path / "out/main/schema.pg"))
    again.load(tmp_path / "out/main/data.jsonl", mode="append")
    assert people(again._store) == people(filled)
    with pytest.raises(BadRequest, match="not empty"):
        salvage(filled.uri, tmp_path / "out")


def test_mains_newest_manifest_is_damaged(filled: GraphStore, tmp_path: Path) -> None:
    newest_manifest(filled).write_bytes(b"damaged")
    with open_store(filled.uri, read_only=True) as reader:
        # Other branches, older commits and their export go on.
        assert "dan" in people(reader, branch="review")
        with pytest.raises(OmniGraphError):
            people(reader)
    report = salvage(filled.uri, tmp_path / "out")
    assert not report.whole
    assert names(report, "review") == {"ada", "bob", "cid", "dan"}
    assert names(report, "main") == {"ada", "bob", "cid"}
    assert any("manifest version" in text for state in report.states for text in state.lost)


@pytest.mark.parametrize("lost", ["_schemas", "_refs", "_graph_commits.lance"])
def test_schemas_refs_or_the_log_are_gone(filled: GraphStore, tmp_path: Path, lost: str) -> None:
    expected = set(people(filled))
    filled.objects.delete_prefix(lost)
    report = salvage(filled.uri, tmp_path / "out")
    name = "main (line main)" if lost == "_refs" else "main"
    assert names(report, name) == expected


def test_a_damaged_file_costs_its_own_fragment(filled: GraphStore, tmp_path: Path) -> None:
    pin = filled.snapshot().pin(PERSON)
    file = max(Path(filled.uri, pin.location, "data").glob("*.lance"), key=lambda one: one.stat().st_mtime_ns)
    file.write_bytes(b"")
    report = salvage(filled.uri, tmp_path / "out", branches=["main"])
    assert report.exit_code == 1
    assert names(report, "main") == {"ada", "bob", "cid"}
    (table,) = [one for one in report.states[0].tables if one.table_key == PERSON]
    assert len(table.lost) == 1
    assert "fragment" in table.lost[0]
    assert json.loads((tmp_path / "out/report.json").read_text())["whole"] is False


def test_one_commit_by_its_id(filled: GraphStore, tmp_path: Path) -> None:
    parent = filled.snapshot().head.parent_commit_id
    assert parent is not None
    report = salvage(filled.uri, tmp_path / "out", at=[parent])
    assert names(report, parent) == {"ada", "bob", "cid"}
