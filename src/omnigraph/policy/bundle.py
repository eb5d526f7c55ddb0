"""A policy bundle: groups, protected branches and rules, read from YAML. What is wrong with one is told at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest
from omnigraph.policy.actions import OF_THE_SERVER, ON_A_BRANCH, TO_A_BRANCH, Action, Scope
from omnigraph.yaml_text import read_yaml

VERSION = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """One permission. `scope` narrows actions on a branch, `target_scope` those to a branch; None is any branch."""

    id: str
    group: str
    actions: frozenset[Action]
    scope: Scope | None = None
    target_scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a policy file says. Whatever no rule allows is denied."""

    groups: Mapping[str, frozenset[str]]
    protected_branches: frozenset[str]
    rules: tuple[Rule, ...]

    @property
    def actors(self) -> frozenset[str]:
        """Everybody whom the groups name."""
        return frozenset().union(*self.groups.values())


def read_bundle(path: str | PathLike[str]) -> Bundle:
    """The bundle of a YAML file."""
    return parse_bundle(read_yaml(path, "policy"), f"the policy file {path}")


def parse_bundle(content: Any, what: str = "the policy") -> Bundle:
    """The bundle that YAML data describes; `BadRequest` with every problem when it describes none."""
    problems: list[str] = []
    data = _object(content, "the policy", {"version", "groups", "protected_branches", "rules"}, problems)
    if data.get("version") != VERSION:
        problems.append(f"version must be {VERSION} and is {data.get('version')!r}")
    groups = {
        name: frozenset(_texts(members, f"groups.{name}", problems))
        for name, members in _named(data.get("groups"), "groups", problems)
    }
    protected = frozenset(_texts(data.get("protected_branches") or [], "protected_branches", problems))
    rules = tuple(_rules(data.get("rules"), groups, problems))
    ids = [rule.id for rule in rules]
    problems += [f"the rule id `{twice}` stands twice" for twice in sorted(set(ids)) if ids.count(twice) > 1]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise BadRequest(f"{what} is not valid:\n{listed}", problems=problems)
    return Bundle(groups, protected, rules)


def _rules(content: Any, groups: Mapping[str, Any], problems: list[str]) -> Iterator[Rule]:
    if not isinstance(content, list):
        problems.append("rules must be a list, each with an id and what it allows")
        return
    for place, entry in enumerate(content):
        where = f"rules[{place}]"
        found = _object(entry, where, {"id", "allow"}, problems)
        name = found.get("id")
        if not isinstance(name, str) or not name:
            problems.append(f"{where}.id must be a text that explains can name")
            name = where
        where = f"rule `{name}`"
        keys = {"actors", "actions", "branch_scope", "target_branch_scope"}
        allow = _object(found.get("allow"), f"{where}: allow", keys, problems)
        group = _object(allow.get("actors"), f"{where}: actors", {"group"}, problems).get("group")
        if group not in groups:
            hint = did_you_mean(str(group), groups) or "name one of `groups`"
            problems.append(f"{where}: there is no group `{group}`; {hint}")
        actions = frozenset(_actions(allow.get("actions"), where, problems))
        scope = _scope(allow.get("branch_scope"), f"{where}: branch_scope", problems)
        target = _scope(allow.get("target_branch_scope"), f"{where}: target_branch_scope", problems)
        problems += [f"{where}: {problem}" for problem in _mixtures(actions, scope, target)]
        yield Rule(name, str(group), actions, scope, target)


def _mixtures(actions: frozenset[Action], scope: Scope | None, target: Scope | None) -> Iterator[str]:
    """What a rule may not put together: a scope that means nothing for an action would look like a limit."""
    if actions & OF_THE_SERVER and actions - OF_THE_SERVER:
        yield "graph_list is an action on the server; give it a rule of its own"
    if scope is not None and target is not None:
        yield "branch_scope and target_branch_scope cannot stand together; make two rules"
    for given, name, fitting in (
        (scope, "branch_scope", ON_A_BRANCH),
        (target, "target_branch_scope", TO_A_BRANCH),
    ):
        wrong = sorted(actions - fitting)
        if given is not None and wrong:
            yield f"{name} does not go with {', '.join(wrong)}: it is for {', '.join(sorted(fitting))}"


def _actions(content: Any, where: str, problems: list[str]) -> Iterator[Action]:
    names = _texts(content, f"{where}: actions", problems)
    if content == []:
        problems.append(f"{where}: actions must name at least one action")
    for name in names:
        try:
            yield Action(name)
        except ValueError:
            hint = did_you_mean(name, list(Action)) or f"use {', '.join(Action)}"
            problems.append(f"{where}: `{name}` is no action; {hint}")


def _scope(content: Any, where: str, problems: list[str]) -> Scope | None:
    if content is None:
        return None
    try:
        return Scope(content)
    except ValueError:
        problems.append(f"{where} must be {', '.join(Scope)} and is {content!r}")
        return None


def _object(content: Any, where: str, keys: set[str], problems: list[str]) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        problems.append(f"{where} must be a mapping with {', '.join(sorted(keys))}")
        return {}
    for key in content:
        if key not in keys:
            hint = did_you_mean(str(key), keys) or f"use {', '.join(sorted(keys))}"
            problems.append(f"{where}: unknown key `{key}`; {hint}")
    return content


def _named(content: Any, where: str, problems: list[str]) -> list[tuple[str, Any]]:
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        problems.append(f"{where} must be a mapping of names")
        return []
    return list(content.items())


def _texts(content: Any, where: str, problems: list[str]) -> list[str]:
    if not isinstance(content, list) or not all(isinstance(item, str) and item for item in content):
        problems.append(f"{where} must be a list of names")
        return []
    return content
