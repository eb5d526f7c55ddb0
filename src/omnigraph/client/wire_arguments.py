"""Arguments of calls as a request has them: states, moments, conditions, filters, answers to conflicts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from omnigraph.choices import Target, Time
from omnigraph.errors import BadRequest
from omnigraph.sources import gathered

_OF_A_STORE = ("actor", "cancel", "memory_limit", "provider")
"""Arguments of a graph that is opened where it lies, and no parameters of a query here either."""


def state_name(at: Target) -> str | int | None:
    """What names a state, as JSON has it."""
    return at.isoformat() if isinstance(at, datetime) else at


def parameters(
    method: str, text: str, params: Mapping[str, Any] | None, more: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of a query, as a graph that is opened here gathers them."""
    local = {name: more[name] for name in _OF_A_STORE if more.get(name) is not None}
    left = {name: value for name, value in more.items() if name not in _OF_A_STORE}
    found = gathered(method, text, params, left, {**own, **local})
    if "actor" in local:
        raise BadRequest(f"{method}: a server takes the actor from the token; leave actor out")
    for name in local:
        raise BadRequest(f"{method}: {name} is for a graph that is opened where it lies, not through a server")
    return found


def condition(if_commit: str | None) -> dict[str, str]:
    """The header of a write that was meant for one state."""
    return {} if if_commit is None else {"Omnigraph-If-Graph-Commit": if_commit}


def filters(
    kinds: Collection[str] | None, types: Collection[str] | None, ops: Collection[str] | None
) -> dict[str, list[str] | None]:
    """Which changes are wanted."""
    found = {"kinds": kinds, "types": types, "ops": ops}
    return {key: list(value) if value else None for key, value in found.items()}


def answers(resolutions: Mapping[tuple[str, str], Any] | None) -> dict[str, dict[str, Any]] | None:
    """Answers for single rows, by table and then by row: JSON has no pairs as keys."""
    found: dict[str, dict[str, Any]] = {}
    for (table_key, row_id), answer in (resolutions or {}).items():
        found.setdefault(table_key, {})[row_id] = answer
    return found or None


def moment_text(moment: Time | None) -> str | None:
    """A moment as ISO text."""
    if moment is None:
        return None
    from omnigraph.times import aware, to_microseconds

    return aware(to_microseconds(moment, "a time")).isoformat()
