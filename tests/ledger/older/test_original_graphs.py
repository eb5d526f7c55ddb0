"""Graphs that the original program wrote open as it would have opened them. They lie beside the repository, where
somebody put them; the forged ones in `test_migrations` follow their layout."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import omnigraph as og

ORIGINAL = Path(__file__).parents[4] / "shared" / "fixtures" / "original"
KNOWS = "query q() { match { $p: Person $p knows $q } return { $p.name, $q.name } order { $p.name } }"
NAMES = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"


def unpacked(name: str, place: Path) -> Path:
    """A graph, moved to where nobody wrote it."""
    archive = ORIGINAL / f"{name}.tar.gz"
    if not archive.exists():
        pytest.skip("the graphs of the original program do not lie beside the repository")
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    return place / "g.omni"


def commits(graph: og.Graph, branch: str) -> list[dict[str, object]]:
    names = ("graph_commit_id", "manifest_branch", "manifest_version", "parent_commit_id", "merged_parent_commit_id")
    return [{name: c.to_json()[name] for name in (*names, "actor_id", "created_at")} for c in graph.log(branch=branch)]


def listed(name: str) -> list[dict[str, object]]:
    return json.loads((ORIGINAL / f"{name}.json").read_text())["commits"][::-1]


def rows(path: Path) -> list[str]:
    """The lines of an export, of either program: nulls left out, and dates as days."""
    found = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        data = {key: value for key, value in row.pop("data", {}).items() if value is not None}
        if "type" in row:
            data.setdefault("id", data.get("name"))
        if data.get("since") == "2020-01-02":
            data["since"] = 18263
        found.append(json.dumps({**row, "data": data}, sort_keys=True))
    return sorted(found)


def counts(graph: og.Graph) -> tuple[int, int]:
    tables = graph.snapshot().tables
    return tables["node:Person"].row_count, tables["edge:Knows"].row_count


def is_sound(graph: og.Graph) -> bool:
    """Whether nothing is wrong but that files of a killed load still lie there, for cleanup."""
    return {finding.rule.name for finding in graph.verify().findings} <= {"LEFTOVERS"}


def test_history(tmp_path: Path) -> None:
    place = unpacked("history", tmp_path)
    for read_only in (True, False):
        with og.open(place, read_only=read_only) as graph:
            assert graph.branch_list() == ["main", "review/open"]
            assert graph.verify().findings == () or not read_only
            for branch, name in (("main", "main"), ("review/open", "review-open")):
                assert commits(graph, branch) == listed(f"history-commits-{name}")
                graph.export(tmp_path / "out.jsonl", branch=branch, overwrite=True)
                assert rows(tmp_path / "out.jsonl") == rows(ORIGINAL / f"history-{name}.jsonl")
            before_title = graph.log()[3].graph_commit_id
            assert [row["p.name"] for row in graph.query(NAMES, at=before_title).rows()] == ["ada", "bob", "cyd", "eve"]
    with og.open(place) as graph:
        graph.merge("review/open")
        assert [row["p.name"] for row in graph.query(NAMES).rows()] == ["ada", "bob", "eve", "fay"]
        knows = graph.query(KNOWS)
        assert [(row["p.name"], row["q.name"]) for row in knows.rows()] == [("ada", "bob"), ("fay", "ada")]
        graph.optimize()
        assert graph.verify().ok
        graph.cleanup(keep_versions=3, confirm=True)
        assert graph.verify().ok
        assert len(graph.query(NAMES, branch="review/open").rows()) == 5


def test_recovered(tmp_path: Path) -> None:
    place = unpacked("recovered", tmp_path)
    for read_only in (True, False):
        with og.open(place, read_only=read_only) as graph:
            assert counts(graph) == (4, 1)
            assert commits(graph, "main") == listed("recovered-commits")
            (record,) = graph.recoveries()
            assert (record.kind, record.recovery_for_actor) == ("RolledBack", "act-kill")
    with og.open(place) as graph:
        assert is_sound(graph)


def test_pending(tmp_path: Path) -> None:
    """A load that was killed before any table moved, after both had, and after one had."""
    for name, given, outcome in (("none", (3, 1), "RolledBack"), ("all", (7_003, 6_001), "RolledForward")):
        place = unpacked(f"pending-{name}", tmp_path / name)
        with og.open(place, read_only=True) as graph:
            assert counts(graph) == (3, 1)
            (finding,) = graph.verify().findings
            assert "did not finish the write 01M7HG7" in finding.message
            with pytest.raises(og.errors.BadRequest, match="unfinished writes included"):
                graph.repair()
        with og.open(place) as graph:
            assert counts(graph) == given
            (record,) = graph.recoveries()
            assert (record.kind, record.recovery_for_actor) == (outcome, "act-kill")
            assert is_sound(graph)
    half = unpacked("pending-all", tmp_path / "half")
    (newest,) = (half / "edges" / "602a25a3bd0b455b" / "_versions").glob(f"{2**64 - 1 - 6}.manifest")
    newest.unlink()
    with og.open(half) as graph:
        assert counts(graph) == (3, 1)
        assert [record.kind for record in graph.recoveries()] == ["RolledBack"]
        assert is_sound(graph)
