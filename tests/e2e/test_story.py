"""One graph through its whole life: init, load, branch, mutate, merge, time travel, optimize, reopen, write."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, Conflict, NotFound, PreconditionFailed

pytestmark = pytest.mark.usefixtures("logged_soon")

SCHEMA = """
node Person {
    slug: String @key
    name: String @index
    age: I32?
}
edge Knows: Person -> Person { since: Date? @key(src, dst) }
"""

QUERIES = """
query friends($slug: String) {
  match { $p: Person { slug: $slug } $p knows $f }
  return { $f.slug, $f.age }
}
query older($slug: String, $age: I32) { update Person set { age: $age } where slug = $slug }
query forget($slug: String) { delete Person where slug = $slug }
query meet($a: String, $b: String) { insert Knows { from: $a, to: $b, since: date("2026-01-02") } }
"""


def people(count: int) -> list[dict[str, object]]:
    nodes = [{"type": "Person", "data": {"slug": f"p{i}", "name": f"Person {i}", "age": i}} for i in range(count)]
    edges = [{"edge": "Knows", "from": f"p{i}", "to": f"p{(i + 1) % count}"} for i in range(count)]
    return [*nodes, *edges]


def test_the_life_of_a_graph(anywhere: str) -> None:
    with og.init(anywhere, schema=SCHEMA, actor="ada") as g:
        loaded = g.load(people(50), mode="append")
        assert loaded.rows_loaded == 100
        assert loaded.commit is not None
        assert loaded.engine == "local"
        g.tags.create("loaded")
        g.ensure_indices()
        assert g.query(QUERIES, "friends", slug="p1").rows() == [{"f.slug": "p2", "f.age": 2}]

        with g.branch("review/1") as review:
            review.mutate(QUERIES, "older", slug="p2", age=99)
            review.mutate(QUERIES, "forget", slug="p7")
            assert review.query(QUERIES, "friends", slug="p6").rows() == []
        assert g.query(QUERIES, "friends", slug="p6").rows() == [{"f.slug": "p7", "f.age": 7}]

        g.mutate(QUERIES, "meet", a="p1", b="p9")
        changes = [(c.op, c.kind, c.id) for c in g.diff("main", "review/1", kinds=["node"])]
        assert changes == [("update", "node", "p2"), ("delete", "node", "p7")]
        merged = g.merge("review/1", delete_source=True)
        assert merged.outcome == "merged"
        assert g.branch_list() == ["main"]
        assert g.entity("Person", "p7") is None
        assert g.entity("Person", "p2")["age"] == 99  # type: ignore[index]
        assert g.entity("Person", "p2", at="loaded")["age"] == 2  # type: ignore[index]
        assert len(g.query("query all() { match { $p: Person } return { $p.slug } }", at="loaded")) == 50

        report = g.optimize()
        assert report.commit is None or not report.commit.changes_data
        kinds = [commit.kind.value for commit in g.log()]
        assert kinds[-1] == "Init"
        assert kinds.count("BranchMerge") == 1

    with og.open(anywhere, read_only=True) as reader, pytest.raises(BadRequest, match="read-only"):
        reader.mutate(QUERIES, "older", slug="p2", age=1)
    with og.open(anywhere) as again:
        head = again.head().graph_commit_id
        assert again.mutate(QUERIES, "older", slug="p3", age=33, if_commit=head).commit is not None
        with pytest.raises(PreconditionFailed):
            again.mutate(QUERIES, "older", slug="p3", age=34, if_commit=head)
        assert again.recoveries() == []


def test_branch_as_a_block_merges_when_asked(tmp_path: Path) -> None:
    with og.init(tmp_path / "g", schema=SCHEMA) as g:
        with g.branch("in/1", merge=True) as branch:
            branch.load(people(3), mode="append")
        assert len(g.query("query all() { match { $p: Person } return { $p.slug } }")) == 3
        with contextlib.suppress(ZeroDivisionError), g.branch("in/2", merge=True) as branch:
            branch.load(people(5), mode="merge")
            1 / 0  # noqa: B018 - a caller's own failure
        assert len(g.query("query all() { match { $p: Person } return { $p.slug } }")) == 3


def test_handles_are_bound_to_branches(tmp_path: Path) -> None:
    with og.init(tmp_path / "g", schema=SCHEMA) as g:
        g.branch_create("b")
        with og.open(tmp_path / "g", branch="b") as bound:
            bound.load(people(2), mode="append")
            assert bound.branch_name == "b"
            with pytest.raises(BadRequest, match="bound to"):
                bound.branch_delete("b")
            bound.sync_branch("main")
            assert len(bound.snapshot().tables) == 2
        with pytest.raises(NotFound, match="did you mean"):
            og.open(tmp_path / "g", branch="mian")
        with pytest.raises(Conflict):
            g.tags.create("b")
