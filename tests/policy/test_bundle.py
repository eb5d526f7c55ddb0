"""What a policy file may say: mistakes are told all at once, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from omnigraph.errors import BadRequest
from omnigraph.policy.bundle import parse_bundle, read_bundle
from omnigraph.policy.decide_access import Policy

GOOD = """\
version: 1
groups:
  team: [act-ada, act-bob]
  admins: [act-ada]
protected_branches: [main]
rules:
  - id: team-reads
    allow: { actors: { group: team }, actions: [read, export], branch_scope: any }
  - id: admins-merge
    allow: { actors: { group: admins }, actions: [branch_merge], target_branch_scope: protected }
"""


def broken(text: str, change: str, to: str) -> list[str]:
    assert change in text
    with pytest.raises(BadRequest) as caught:
        parse_bundle(yaml.safe_load(text.replace(change, to)))
    problems: list[str] = caught.value.details["problems"]
    return problems


def test_a_good_bundle_compiles() -> None:
    bundle = parse_bundle(yaml.safe_load(GOOD))
    assert bundle.actors == {"act-ada", "act-bob"}
    assert Policy(bundle).cedar.count("permit") == 2


@pytest.mark.parametrize(
    ("change", "to", "told"),
    [
        ("version: 1", "version: 2", "version must be 1"),
        ("[read, export]", "[reed]", "`reed` is no action; did you mean `read`?"),
        ("[read, export]", "[]", "at least one action"),
        ("[read, export]", "[read, graph_list]", "a rule of its own"),
        ("branch_scope: any", "branch_scope: any, target_branch_scope: any", "cannot stand together"),
        ("[read, export]", "[invoke_query]", "branch_scope does not go with invoke_query"),
        ("[branch_merge]", "[change]", "target_branch_scope does not go with change"),
        ("branch_scope: any", "branch_scope: some", "must be any, protected, unprotected"),
        ("group: team", "group: teem", "there is no group `teem`"),
        ("group: team", "role: team", "unknown key `role`"),
        ("id: admins-merge", "id: team-reads", "stands twice"),
        ("protected_branches: [main]", "protected_branches: main", "must be a list"),
        ("team: [act-ada, act-bob]", "team: act-ada", "groups.team must be a list"),
        ("rules:", "rulez:", "unknown key `rulez`"),
    ],
)
def test_a_mistake_is_told(change: str, to: str, told: str) -> None:
    assert any(told in problem for problem in broken(GOOD, change, to)), broken(GOOD, change, to)


def test_all_mistakes_are_told_at_once() -> None:
    assert len(broken(GOOD.replace("version: 1", "version: 3"), "[read, export]", "[reed, exprt]")) == 3


def test_a_key_that_stands_twice_has_a_place(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD + "version: 1\n")
    with pytest.raises(BadRequest, match=r"line 11, column 1: the key `version` stands twice"):
        read_bundle(file)


@pytest.mark.parametrize("text", ["", "[]", "- a", "a: [", "a: !!python/object:os.system {}", "\x00"])
def test_what_is_no_bundle_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(BadRequest):
        read_bundle(file)


@pytest.mark.parametrize("name", ['say "hi"', "back\\slash", "zwei\nZeilen", "día", "\u200b", "a') ; permit(principal"])
def test_names_cannot_break_out_of_the_compiled_policy(name: str) -> None:
    from omnigraph.policy.actions import Action

    bundle = parse_bundle(
        {
            "version": 1,
            "groups": {name: [name], "other": ["someone"]},
            "protected_branches": [],
            "rules": [{"id": name, "allow": {"actors": {"group": name}, "actions": ["admin"]}}],
        }
    )
    policy = Policy(bundle)
    assert policy.decide(name, Action.ADMIN).rules == (name,)
    assert not policy.decide("someone", Action.ADMIN).allowed
