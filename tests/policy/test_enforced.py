"""A policy holds for every call of a Graph and every command: each actor may do the one thing it was granted."""

from __future__ import annotations

import inspect
import json
import pickle
import shlex
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.errors import OmniGraphError, PolicyDenied
from omnigraph.policy.actions import Action
from omnigraph.policy.decide_access import Decision, Policy, read_policy
from tests.policy.world import ADA, GRANTS, HEADS, NO_CHANGE, READ, SCHEMA, Grant, fresh, make, operations

NOT_ASKED = {
    "under": "gives another handle, and calls on that are asked",
    "close": "changes nothing",
    "branch": "is branch_create and merge, which are asked",
    "to_spark": "is asked like query; a session is too dear for a test of that",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    path = tmp_path_factory.mktemp("policy")
    return make(path), path


@pytest.fixture(scope="module")
def graph(world: tuple[str, Path]) -> Any:
    return og.open(world[0], policy=world[1] / "policy.yaml")


def test_every_operation_asks_for_what_it_needs_and_for_nothing_else(world: Any, graph: og.Graph) -> None:
    wrong = []
    for operation in operations(world[1]):
        for branch in ("main",) if operation.only_main else ("main", "work"):
            for grant in GRANTS:
                expected = operation.allowed_to(grant, branch)
                try:
                    operation.call(graph, branch, grant.actor)
                    allowed = True
                except PolicyDenied:
                    allowed = False
                except OmniGraphError:
                    allowed = True  # it came past the policy
                if allowed != expected:
                    wrong.append((operation.name, branch, grant.actor, f"allowed: {allowed}"))
    assert wrong == []


def test_every_public_method_is_among_the_operations(world: Any) -> None:
    public = {name for name, _ in inspect.getmembers(og.Graph, inspect.isfunction) if not name.startswith("_")}
    covered = {operation.name.split()[0] for operation in operations(world[1])} | {"branch_list"}
    assert public - covered - NOT_ASKED.keys() == set()


def test_two_grants_together_make_a_load_that_forks(graph: og.Graph, world: Any) -> None:
    rules = world[1] / "both.yaml"
    rules.write_text(
        "{version: 1, groups: {g: [both]}, protected_branches: [main], rules: [{id: r, allow: {actors: {group: g}, "
        "actions: [change]}}, {id: s, allow: {actors: {group: g}, actions: [branch_create]}}]}"
    )
    handle = graph.under(read_policy(rules))
    assert handle.load([ADA], mode="merge", branch=fresh(), from_="main", actor="both").branch_created
    with pytest.raises(PolicyDenied, match="branch_delete"):
        graph.merge("same", "work", delete_source=True, actor="act-branch_merge-any")


def test_without_an_actor_everything_is_refused(graph: og.Graph) -> None:
    for call in (lambda: graph.query(READ), lambda: graph.mutate(NO_CHANGE), graph.verify, graph.branch_list):
        with pytest.raises(PolicyDenied, match="needs an actor"):
            call()


def test_unknown_actors_are_denied_and_actors_of_calls_win_over_the_handle(world: Any) -> None:
    handle = og.open(world[0], policy=world[1] / "policy.yaml", actor="act-read-any")
    assert handle.query(READ).rows()
    with pytest.raises(PolicyDenied, match="`act-nobody` may not read on branch `main`"):
        handle.query(READ, actor="act-nobody")
    assert pickle.loads(pickle.dumps(handle)).query(READ).rows()
    with handle.branch("work") as bound, pytest.raises(PolicyDenied):
        bound.mutate(NO_CHANGE)


def test_branches_that_an_actor_may_not_read_are_not_listed(graph: og.Graph) -> None:
    assert graph.branch_list(actor="act-read-protected") == ["main"]
    assert "main" not in graph.branch_list(actor="act-read-unprotected")
    with pytest.raises(PolicyDenied):
        graph.branch_list(actor="act-export-any")


def test_a_commit_is_no_way_around_a_scope(graph: og.Graph) -> None:
    """A state is read by its branch, whatever names it."""
    for at in (HEADS["main"], "main"):
        with pytest.raises(PolicyDenied):
            graph.query(READ, branch="work", at=at, actor="act-read-unprotected")
    assert graph.query(READ, at=HEADS["work"], actor="act-read-unprotected").rows()
    with pytest.raises(PolicyDenied):
        graph.query(READ, at="01AAAAAAAAAAAAAAAAAAAAAAAA", actor="act-nobody")


def test_what_cannot_be_evaluated_is_denied(monkeypatch: pytest.MonkeyPatch, world: Any) -> None:
    import cedarpy

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no engine today")

    policy = read_policy(world[1] / "policy.yaml")
    monkeypatch.setattr(cedarpy, "is_authorized", broken)
    assert policy.decide("act-read-any", Action.READ, branch="main") == Decision(False, failure="RuntimeError")
    with pytest.raises(PolicyDenied, match="cannot be evaluated"):
        policy.require("act-read-any", Action.READ, branch="main")


def test_combined_commits_are_asked_for_each_mutation(world: Any) -> None:
    handle = og.open(world[0], policy=world[1] / "policy.yaml", combine=True)
    handle.mutate(NO_CHANGE, actor="act-change-any")
    with pytest.raises(PolicyDenied):
        handle.mutate(NO_CHANGE, actor="act-read-any")


def test_an_empty_policy_allows_nothing() -> None:
    from omnigraph.policy.bundle import Bundle

    policy = Policy(Bundle({}, frozenset(), ()))
    assert not any(policy.decide("anybody", action, branch="x", target="x").allowed for action in Action)


BRANCH = "BRANCH"
"""Stands for the branch in a command, and for the place that a need is about."""

COMMANDS: list[tuple[str, tuple[str, str | None]]] = [
    (f"query -e '{READ}' --branch BRANCH", ("read", BRANCH)),
    ("snapshot --branch BRANCH", ("read", BRANCH)),
    ("blob get Person ada slug --branch BRANCH", ("read", BRANCH)),
    ("commit list --branch BRANCH", ("read", BRANCH)),
    ("commit show BRANCH", ("read", BRANCH)),
    ("commit changes BRANCH", ("read", BRANCH)),
    ("commit recoveries", ("read", "main")),
    ("branch diff BRANCH BRANCH", ("read", BRANCH)),
    ("changes --branch BRANCH", ("read", BRANCH)),
    ("schema show --branch BRANCH", ("read", BRANCH)),
    ("schema plan --schema SCHEMA --branch BRANCH", ("read", BRANCH)),
    ("schema diagram", ("read", "main")),
    ("tag list", ("read", "main")),
    ("embed --dry-run --branch BRANCH", ("read", BRANCH)),
    ("export --to - --branch BRANCH", ("export", BRANCH)),
    (f"mutate -e '{NO_CHANGE}' --branch BRANCH", ("change", BRANCH)),
    ("load --data DATA --mode merge --branch BRANCH", ("change", BRANCH)),
    ("embed --branch BRANCH", ("change", BRANCH)),
    ("revert BRANCH --branch BRANCH --dry-run", ("change", BRANCH)),
    ("restore BRANCH --branch BRANCH --dry-run", ("change", BRANCH)),
    ("cherry-pick BRANCH --into BRANCH --dry-run", ("change", BRANCH)),
    ("schema apply --yes --schema SCHEMA --branch BRANCH", ("schema_apply", BRANCH)),  # unasked: a preview is a read
    ("branch create FRESH --from BRANCH", ("branch_create", "elsewhere")),
    ("branch delete nothing-like-it --yes", ("branch_delete", "elsewhere")),
    ("branch merge same --into BRANCH", ("branch_merge", BRANCH)),
    ("optimize --branch BRANCH", ("admin", None)),
    ("index --branch BRANCH", ("admin", None)),
    ("cleanup --keep 10", ("admin", None)),
    ("repair", ("admin", None)),
    ("verify", ("admin", None)),
    ("tag create FRESH BRANCH", ("admin", None)),
    ("tag delete nothing-like-it", ("admin", None)),
]


def test_commands_obey_too(tmp_path: Path, world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schema.pg").write_text(SCHEMA)
    (tmp_path / "data.jsonl").write_text("")
    files = {"SCHEMA": str(tmp_path / "schema.pg"), "DATA": str(tmp_path / "data.jsonl")}
    told_by = ["--store", world[0], "--policy", str(world[1] / "policy.yaml"), "--as"]
    wrong = []
    for command, (action, place) in COMMANDS:
        # The grants of its own action, whatever their scope, and two of others.
        others = [grant for grant in (Grant("read", "any"), Grant("admin")) if grant.action != action]
        for branch in ("main", "work") if BRANCH in command else ("main",):
            for grant in [*(grant for grant in GRANTS if grant.action == action), *others]:
                names = {**files, BRANCH: branch, "FRESH": fresh()}
                code = main([*(names.get(word, word) for word in shlex.split(command)), *told_by, grant.actor])
                told = capsys.readouterr().err
                allowed = grant.covers(action, branch if place == BRANCH else place)
                if code == 2 or ("may not" in told) == allowed:
                    wrong.append((command, branch, grant.actor, code, told))
    assert wrong == []
    assert main(["branch", "list", "--json", *told_by, Grant("read", "unprotected").actor]) == 0
    listed = {branch["name"] for branch in json.loads(capsys.readouterr().out)["branches"]}
    assert {"work", "same"} <= listed - {"main"} == listed  # what may be read


def test_a_copy_needs_the_right_to_administer(tmp_path: Path, world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["copy", world[0], str(tmp_path / "copy"), "--policy", str(world[1] / "policy.yaml"), "--as"]
    assert main([*argv, Grant("read", "any").actor]) == 1
    assert "may not" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()
    assert main([*argv, Grant("admin").actor]) == 0


def test_the_policy_commands(tmp_path: Path, world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(world[1] / "policy.yaml")
    assert main(["policy", "validate", file]) == 0
    assert "24 rules for 24 actors; protected branches: main" in capsys.readouterr().out
    asked = ["--actor", "act-change-unprotected", "--action", "change"]
    assert main(["policy", "explain", file, *asked, "--branch", "work"]) == 0
    assert "allowed: act-change-unprotected (act-change-unprotected) change on work, by rule" in capsys.readouterr().out
    assert main(["policy", "explain", file, *asked, "--branch", "main"]) == 0
    assert "denied" in (told := capsys.readouterr().out)
    assert "on protected main, no rule allows it" in told
    cases = tmp_path / "cases.yaml"
    cases.write_text(
        "version: 1\ncases:\n"
        "  - {id: a, actor: act-read-any, action: read, branch: main, expect: allow}\n"
        "  - {id: b, actor: act-read-any, action: branch_merge, target_branch: main, expect: deny}\n"
    )
    assert main(["policy", "test", file, "--cases", str(cases)]) == 0
    cases.write_text(cases.read_text().replace("expect: deny", "expect: allow"))
    assert main(["policy", "test", file, "--cases", str(cases), "--json"]) == 1
    assert '"passed": false' in capsys.readouterr().out
    assert main(["policy", "explain", file, "--actor", "x", "--action", "read"]) == 1
    assert "read is about a branch: name it" in capsys.readouterr().err
