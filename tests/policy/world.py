"""Actors who may each do one thing, and what each call on a graph needs: told by hand, from the contract alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import yaml

import omnigraph as og

SCHEMA = """\
node Person {
    slug: String @key
    age: I32?
}
edge Knows: Person -> Person
"""

ON_A_BRANCH = ("read", "export", "change")
TO_A_BRANCH = ("schema_apply", "branch_create", "branch_delete", "branch_merge")
PLAIN = ("invoke_query", "admin")

READ = "query q() { match { $p: Person } return { $p.slug } }"
NO_CHANGE = 'query m() { update Person set { age: 1 } where slug = "nobody" }'


@dataclass(frozen=True)
class Grant:
    """The one thing that an actor may do."""

    action: str
    scope: str | None = None

    @property
    def actor(self) -> str:
        return f"act-{self.action}-{self.scope or 'plain'}"

    def covers(self, action: str, branch: str | None) -> bool:
        if action != self.action:
            return False
        if self.scope in (None, "any"):
            return True
        return (branch == "main") == (self.scope == "protected")


GRANTS = [
    *(Grant(action, scope) for action in (*ON_A_BRANCH, *TO_A_BRANCH) for scope in ("any", "protected", "unprotected")),
    *(Grant(action) for action in PLAIN),
    Grant("graph_list"),
]


def rule(grant: Grant) -> dict[str, Any]:
    allow: dict[str, Any] = {"actors": {"group": grant.actor}, "actions": [grant.action]}
    if grant.scope is not None:
        allow["branch_scope" if grant.action in ON_A_BRANCH else "target_branch_scope"] = grant.scope
    return {"id": grant.actor, "allow": allow}


def policy_text(*more: dict[str, Any], groups: dict[str, list[str]] | None = None) -> str:
    return yaml.safe_dump(
        {
            "version": 1,
            "groups": {**{grant.actor: [grant.actor] for grant in GRANTS}, **(groups or {})},
            "protected_branches": ["main"],
            "rules": [*map(rule, GRANTS), *more],
        }
    )


_fresh = count()


def fresh(prefix: str = "b") -> str:
    return f"{prefix}-{next(_fresh)}"


Call = Callable[[Any, str, str], Any]
"""(graph, branch, actor): does one thing."""


@dataclass(frozen=True)
class Operation:
    """One call, and what it needs: pairs of action and place, `branch` standing for the branch of the call."""

    name: str
    needs: tuple[tuple[str, str | None], ...]
    call: Call
    only_main: bool = False

    def allowed_to(self, grant: Grant, branch: str) -> bool:
        return all(grant.covers(action, branch if place == "branch" else place) for action, place in self.needs)


def operations(tmp: Path) -> list[Operation]:
    """Every call of a Graph that a policy is asked for."""
    read: tuple[tuple[str, str | None], ...] = (("read", "branch"),)
    admin: tuple[tuple[str, str | None], ...] = (("admin", None),)
    return [
        Operation("query", read, lambda g, b, a: g.query(READ, branch=b, actor=a).rows()),
        Operation("explain", read, lambda g, b, a: g.explain(READ, branch=b, actor=a)),
        Operation("snapshot", read, lambda g, b, a: g.snapshot(branch=b, actor=a)),
        Operation("entity", read, lambda g, b, a: g.entity("Person", "ada", branch=b, actor=a)),
        Operation("read_blob", read, lambda g, b, a: g.read_blob("Person", "ada", "slug", branch=b, actor=a)),
        Operation("open_blob", read, lambda g, b, a: g.open_blob("Person", "ada", "slug", at=b, actor=a)),
        Operation("catalog", read, lambda g, b, a: g.catalog(b, actor=a)),
        Operation("schema_source", read, lambda g, b, a: g.schema_source(b, actor=a)),
        Operation("head", read, lambda g, b, a: g.head(b, actor=a)),
        Operation("log", read, lambda g, b, a: g.log(b, actor=a)),
        Operation("diff", read, lambda g, b, a: list(g.diff(b, b, actor=a))),
        Operation("changes", read, lambda g, b, a: g.changes(b, actor=a)),
        Operation("follow", read, lambda g, b, a: list(g.follow(b, timeout=0.0, actor=a))),
        Operation("commit", read, lambda g, b, a: g.commit(HEADS[b], actor=a)),
        Operation("commit_changes", read, lambda g, b, a: list(g.commit_changes(HEADS[b], actor=a))),
        Operation("refresh", (("read", "main"),), lambda g, b, a: g.refresh(actor=a)),
        Operation("recoveries", (("read", "main"),), lambda g, b, a: g.recoveries(actor=a)),
        Operation("plan_schema", (("read", "main"),), lambda g, b, a: g.plan_schema(SCHEMA, actor=a)),
        Operation("tags", (("read", "main"),), lambda g, b, a: g.tags.list(actor=a)),
        Operation("sync_branch", (("read", "main"),), lambda g, b, a: g.sync_branch("main", actor=a)),
        Operation("export", (("export", "branch"),), lambda g, b, a: g.export(tmp / fresh("out"), branch=b, actor=a)),
        Operation("export_lines", (("export", "branch"),), lambda g, b, a: list(g.export_lines(branch=b, actor=a))),
        Operation("mutate", (("change", "branch"),), lambda g, b, a: g.mutate(NO_CHANGE, branch=b, actor=a)),
        Operation("load", (("change", "branch"),), lambda g, b, a: g.load([ADA], mode="merge", branch=b, actor=a)),
        Operation(
            "load_stream",
            (("change", "branch"),),
            # The frame of no session comes past the policy and no further.
            lambda g, b, a: g.load_stream(None, checkpoint=tmp, branch=b, actor=a),
        ),
        Operation("embed", (("change", "branch"),), lambda g, b, a: g.embed(branch=b, actor=a)),
        Operation("embed as a preview", read, lambda g, b, a: g.embed(branch=b, dry_run=True, actor=a)),
        Operation("revert", (("change", "branch"),), lambda g, b, a: g.revert(b, branch=b, dry_run=True, actor=a)),
        Operation("restore", (("change", "branch"),), lambda g, b, a: g.restore(b, branch=b, dry_run=True, actor=a)),
        Operation(
            "restore of another branch",
            (("change", "work"), ("read", "main")),
            lambda g, b, a: g.restore("main", branch="work", dry_run=True, actor=a),
        ),
        Operation(
            "cherry_pick", (("change", "branch"),), lambda g, b, a: g.cherry_pick(b, into=b, dry_run=True, actor=a)
        ),
        Operation(
            "load on a new branch",
            (("change", "elsewhere"), ("branch_create", "elsewhere")),
            lambda g, b, a: g.load([ADA], mode="merge", branch=fresh(), from_=b, actor=a),
        ),
        Operation(
            "branch_create", (("branch_create", "elsewhere"),), lambda g, b, a: g.branch_create(fresh(), b, actor=a)
        ),
        Operation("branch_delete", (("branch_delete", "branch"),), delete_a_branch),
        Operation("merge", (("branch_merge", "branch"),), lambda g, b, a: g.merge(OTHER[b], b, actor=a)),
        Operation("apply_schema", (("schema_apply", "main"),), lambda g, b, a: g.apply_schema(SCHEMA, actor=a), True),
        Operation(
            "apply_schema on a branch",
            (("schema_apply", "branch"),),
            lambda g, b, a: g.apply_schema(SCHEMA, branch=b, actor=a),
        ),
        Operation("plan_schema of a branch", read, lambda g, b, a: g.plan_schema(SCHEMA, branch=b, actor=a)),
        Operation("optimize", admin, lambda g, b, a: g.optimize(b, actor=a)),
        Operation("ensure_indices", admin, lambda g, b, a: g.ensure_indices(b, actor=a)),
        Operation("repair", admin, lambda g, b, a: g.repair(actor=a)),
        Operation("cleanup", admin, lambda g, b, a: g.cleanup(keep_versions=10, actor=a)),
        Operation("verify", admin, lambda g, b, a: g.verify(actor=a)),
        Operation("set_granularity", admin, lambda g, b, a: g.set_granularity(None, actor=a)),
        Operation("relocate", admin, lambda g, b, a: g.relocate(actor=a)),
        Operation("tag create", admin, lambda g, b, a: g.tags.create(fresh("tag"), b, actor=a)),
        Operation("tag delete", admin, delete_a_tag),
    ]


ADA = {"type": "Person", "data": {"slug": "ada"}}
HEADS: dict[str, str] = {}
OTHER = {"main": "same", "work": "same"}


def delete_a_branch(graph: Any, branch: str, actor: str) -> None:
    if branch == "main":
        graph.branch_delete("main", actor=actor)
        return
    name = fresh("gone")
    OWNER["graph"].branch_create(name, "main")
    graph.branch_delete(name, actor=actor)


def delete_a_tag(graph: Any, branch: str, actor: str) -> None:
    name = fresh("tag")
    OWNER["graph"].tags.create(name, "main")
    graph.tags.delete(name, actor=actor)


OWNER: dict[str, Any] = {}


def make(path: Path) -> str:
    """A graph with `main`, `work` and `same`, which merges to nothing new; and the policy beside it."""
    graph = og.init(path / "g.omni", schema=SCHEMA)
    graph.load([ADA], mode="append")
    graph.branch_create("same")
    graph.branch_create("work")
    graph.load([{"type": "Person", "data": {"slug": "bob"}}], mode="append", branch="work")
    HEADS.update({branch: graph.head(branch).graph_commit_id for branch in ("main", "work")})
    OWNER["graph"] = graph
    (path / "policy.yaml").write_text(policy_text())
    return graph.uri
