"""`policy test`: cases in YAML, each a question with the answer that its author expects."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.policy.actions import ON_A_BRANCH, TO_A_BRANCH, Action
from omnigraph.policy.decide_access import Decision, Policy
from omnigraph.yaml_text import read_yaml

_KEYS = {"id", "actor", "action", "branch", "target_branch", "expect"}


@dataclass(frozen=True, slots=True)
class Case:
    """One question, and whether it is to be allowed."""

    id: str
    actor: str
    action: Action
    branch: str | None
    target_branch: str | None
    allowed: bool


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """How a case went."""

    case: Case
    decision: Decision

    @property
    def passed(self) -> bool:
        """Whether the policy says what was expected."""
        return self.decision.allowed == self.case.allowed

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        case = self.case
        return {
            "id": case.id,
            "actor": case.actor,
            "action": case.action.value,
            "branch": case.branch,
            "target_branch": case.target_branch,
            "expect": "allow" if case.allowed else "deny",
            "passed": self.passed,
            **self.decision.to_json(),
        }


def read_cases(path: str | PathLike[str]) -> list[Case]:
    """The cases of a YAML file: `version: 1`, and `cases` with id, actor, action, branch or target_branch, expect."""
    content = read_yaml(path, "case")
    found = content.get("cases") if isinstance(content, dict) else None
    if not isinstance(found, list) or content.get("version") != 1 or content.keys() - {"version", "cases"}:
        raise BadRequest(f"the case file {path} must hold `version: 1` and `cases`, a list")
    return [_case(entry, f"{path}, case {place + 1}") for place, entry in enumerate(found)]


def run_cases(policy: Policy, cases: list[Case]) -> list[CaseOutcome]:
    """Ask the policy every case."""
    return [
        CaseOutcome(case, policy.decide(case.actor, case.action, branch=case.branch, target=case.target_branch))
        for case in cases
    ]


def place_of(action: Action, branch: str | None) -> dict[str, str | None]:
    """The branch of a question as the policy takes it: what is acted on, or what the outcome changes."""
    if branch is not None and action not in ON_A_BRANCH | TO_A_BRANCH:
        raise BadRequest(f"{action.value} is about no branch; leave the branch out")
    if branch is None and action in ON_A_BRANCH | TO_A_BRANCH:
        raise BadRequest(f"{action.value} is about a branch: name it")
    return {"target" if action in TO_A_BRANCH else "branch": branch}


def _case(entry: Any, where: str) -> Case:
    if not isinstance(entry, dict) or entry.keys() - _KEYS or not {"actor", "action", "expect"} <= entry.keys():
        raise BadRequest(f"{where}: a case has actor, action, expect, and id, branch or target_branch where they help")
    if entry["action"] not in tuple(Action):
        raise BadRequest(f"{where}: `{entry['action']}` is no action; use {', '.join(Action)}")
    if entry["expect"] not in ("allow", "deny"):
        raise BadRequest(f"{where}: expect is allow or deny, not {entry['expect']!r}")
    action = Action(entry["action"])
    given = {"branch": entry.get("branch"), "target": entry.get("target_branch")}
    if given != {"branch": None, "target": None, **place_of(action, given["branch"] or given["target"])}:
        raise BadRequest(f"{where}: {action.value} takes {'target_branch' if action in TO_A_BRANCH else 'branch'}")
    return Case(
        str(entry.get("id", where)),
        str(entry["actor"]),
        action,
        given["branch"],
        given["target"],
        entry["expect"] == "allow",
    )
