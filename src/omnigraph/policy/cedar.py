"""A bundle as Cedar: one `permit` for each rule, actors and groups as entities. Cedar's own default is to deny."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from omnigraph.policy.actions import Action, Scope
from omnigraph.policy.bundle import Bundle, Rule

if TYPE_CHECKING:
    import cedarpy

ACTOR, GROUP, ACTION, GRAPH, SERVER = (f"OmniGraph::{name}" for name in ("Actor", "Group", "Action", "Graph", "Server"))

SCHEMA = """\
namespace OmniGraph {
    entity Group;
    entity Actor in [Group];
    entity Graph;
    entity Server;
    type Place = { "branch_protected"?: Bool, "target_protected"?: Bool };
    action "read", "export", "change", "schema_apply", "branch_create", "branch_delete", "branch_merge",
        "invoke_query", "admin" appliesTo { principal: [Actor], resource: [Graph], context: Place };
    action "graph_list" appliesTo { principal: [Actor], resource: [Server], context: Place };
}
"""
"""What the compiled policies are checked against, so that a mistake in compiling is found before a decision is."""

READ_FOR_EVERYBODY = f'@id("read-for-everybody") permit (principal, action == {ACTION}::"read", resource is {GRAPH});'
"""What holds where actors are known and no policy was given."""


def compiled(bundle: Bundle) -> str:
    """The Cedar policies of a bundle."""
    return "\n".join(_permit(rule) for rule in bundle.rules)


def entities(bundle: Bundle) -> list[dict[str, Any]]:
    """The actors with the groups they are in."""
    groups = [{"uid": {"type": GROUP, "id": name}, "attrs": {}, "parents": []} for name in sorted(bundle.groups)]
    actors = [
        {
            "uid": {"type": ACTOR, "id": actor},
            "attrs": {},
            "parents": [
                {"type": GROUP, "id": name} for name, members in sorted(bundle.groups.items()) if actor in members
            ],
        }
        for actor in sorted(bundle.actors)
    ]
    return groups + actors


def request(
    actor: str, action: Action, *, branch_protected: bool | None, target_protected: bool | None
) -> dict[str, Any]:
    """The question to Cedar."""
    server = action is Action.GRAPH_LIST
    context = {"branch_protected": branch_protected, "target_protected": target_protected}
    return {
        "principal": {"type": ACTOR, "id": actor},
        "action": {"type": ACTION, "id": action.value},
        "resource": {"type": SERVER if server else GRAPH, "id": "server" if server else "graph"},
        "context": {key: value for key, value in context.items() if value is not None},
    }


def checked_policies(text: str) -> cedarpy.PolicySet:
    """The parsed policies; `ValueError` when Cedar finds fault with them."""
    import cedarpy

    outcome = cedarpy.validate_policies(text, SCHEMA)
    if not outcome.validation_passed:
        raise ValueError("; ".join(str(error) for error in outcome.errors))
    return cedarpy.PolicySet.from_str(text)


def _permit(rule: Rule) -> str:
    actions = ", ".join(f"{ACTION}::{_text(action.value)}" for action in sorted(rule.actions))
    server = Action.GRAPH_LIST in rule.actions
    conditions = [*_condition("branch_protected", rule.scope), *_condition("target_protected", rule.target_scope)]
    when = f" when {{ {' && '.join(conditions)} }}" if conditions else ""
    return (
        f"@id({_text(rule.id)})\n"
        f"permit (principal in {GROUP}::{_text(rule.group)}, action in [{actions}], "
        f"resource is {SERVER if server else GRAPH}){when};"
    )


def _condition(name: str, scope: Scope | None) -> list[str]:
    if scope is None or scope is Scope.ANY:
        return []
    # A call that is about no branch is in no scope.
    return [f"context has {name} && context.{name} == {'true' if scope is Scope.PROTECTED else 'false'}"]


def _text(value: str) -> str:
    """A text in Cedar's syntax: JSON's escapes, with code points in braces."""
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in quoted)
