"""Approvals: that somebody meant it. Each is for one address, one wanted state and one present state, and for once."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson
from ulid import ULID

from omnigraph.cluster.state.cluster_state import ClusterState
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore

APPROVALS = "__cluster/approvals"


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval, as it was given."""

    address: str
    effect: str
    config_digest: str
    state_digest: str
    approved_by: str | None
    approved_at: str
    id: str = field(default_factory=lambda: str(ULID()))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


class Approvals:
    """The approvals of one cluster. None is ever removed: they are kept for audit."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def give(self, approval: Approval) -> None:
        """Write one down."""
        path = f"{APPROVALS}/{approval.id}.json"
        self._objects.put_if_absent(path, orjson.dumps(asdict(approval), option=orjson.OPT_INDENT_2))

    def list(self) -> list[Approval]:
        """All that were ever given, oldest first. What is no approval allows nothing, and is passed over."""
        found = []
        for entry in self._objects.list(APPROVALS):
            with contextlib.suppress(ObjectNotFound, orjson.JSONDecodeError, TypeError):
                data, _ = self._objects.get(entry.path)
                found.append(Approval(**orjson.loads(data)))
        return sorted(found, key=lambda approval: approval.id)


def use_of(approval: Approval, config_digest: str, state: ClusterState) -> str:
    """`valid`, `used`, or `stale`: what was wanted or what is there has changed since."""
    if any(used["id"] == approval.id for used in state.approvals_used):
        return "used"
    if (approval.config_digest, approval.state_digest) == (config_digest, state.digest):
        return "valid"
    return "stale"
