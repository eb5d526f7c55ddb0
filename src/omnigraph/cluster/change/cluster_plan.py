"""A plan as a value: each change with what it waits for, what it needs, and what `apply` will do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Operation = Literal["create", "update", "delete"]
Disposition = Literal["applied", "derived", "deferred", "blocked"]
"""What `apply` does with a change: carries it out; nothing, since it comes with another; leaves it until it is
approved; nothing, since it cannot be done."""


@dataclass(frozen=True, slots=True)
class NeededApproval:
    """An approval that a change needs, or may use. `state` is missing, stale or valid."""

    effect: str
    required: bool
    state: str
    id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"effect": self.effect, "required": self.required, "state": self.state, "id": self.id}


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one resource."""

    address: str
    operation: Operation
    disposition: Disposition
    reason: str | None = None
    waits_for: tuple[str, ...] = ()
    approval: NeededApproval | None = None
    steps: tuple[Mapping[str, Any], ...] = ()
    step_texts: tuple[str, ...] = ()
    before: str | None = None
    after: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "address": self.address,
            "operation": self.operation,
            "disposition": self.disposition,
            "reason": self.reason,
            "waits_for": list(self.waits_for),
            "approval": self.approval.to_json() if self.approval else None,
            "steps": list(self.steps),
            "before": self.before,
            "after": self.after,
        }


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The difference between what is wanted and what is recorded."""

    name: str
    storage: str
    revision: int
    config_digest: str
    state_digest: str | None
    changes: tuple[Change, ...] = ()
    pending_recoveries: tuple[str, ...] = field(default=())

    @property
    def blocked(self) -> tuple[Change, ...]:
        """What cannot be done."""
        return tuple(change for change in self.changes if change.disposition == "blocked")

    def change(self, address: str) -> Change | None:
        """The change of a resource."""
        return next((change for change in self.changes if change.address == address), None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        counts = {word: sum(c.operation == word for c in self.changes) for word in ("create", "update", "delete")}
        return {
            "cluster": self.name,
            "storage": self.storage,
            "revision": self.revision,
            "config_digest": self.config_digest,
            "state_digest": self.state_digest,
            "counts": counts,
            "changes": [change.to_json() for change in self.changes],
            "approvals_needed": [
                c.address for c in self.changes if c.approval is not None and c.disposition == "deferred"
            ],
            "pending_recoveries": list(self.pending_recoveries),
        }
