"""The ledger as a value: what was applied, by digest; how each resource is; what was approved and recovered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import orjson

from omnigraph.cluster.resource_values import digest_of
from omnigraph.errors import StorageError, StorageKind

VERSION = 1

Status = Literal["pending", "planned", "applying", "applied", "drifted", "blocked", "error"]
STATUSES: tuple[str, ...] = ("pending", "planned", "applying", "applied", "drifted", "blocked", "error")


@dataclass(frozen=True, slots=True)
class Condition:
    """Why a resource is as it is: a word for programs, a sentence for people."""

    type: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A resource in the ledger. `digest` is what was applied, None where nothing was yet, or nothing is left of it."""

    digest: str | None
    status: Status
    binding: Mapping[str, Any] = field(default_factory=dict)
    own_digest: str | None = None
    payload: str | None = None
    conditions: tuple[Condition, ...] = ()
    applied_at: str | None = None
    applied_by: str | None = None
    revision: int = 0

    def has(self, condition: str) -> bool:
        """Whether it is in that condition."""
        return any(found.type == condition for found in self.conditions)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The whole ledger. A new revision comes with every change of what is applied, or of how it is."""

    name: str
    revision: int = 0
    config_digest: str | None = None
    converged: bool = False
    resources: Mapping[str, Recorded] = field(default_factory=dict)
    observations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    approvals_used: tuple[Mapping[str, Any], ...] = ()
    recoveries: tuple[Mapping[str, Any], ...] = ()
    updated_at: str | None = None
    updated_by: str | None = None
    version: int = VERSION

    @property
    def digest(self) -> str:
        """What an approval is bound to: the revision and every resource, not what was merely looked at."""
        return digest_of({"revision": self.revision, "resources": {k: asdict(v) for k, v in self.resources.items()}})

    def applied(self, kind: str) -> dict[str, Recorded]:
        """The resources of a kind that are applied, or were and have drifted."""
        return {
            address: found
            for address, found in self.resources.items()
            if address.startswith(f"{kind}.") and found.digest is not None
        }

    def with_resource(self, address: str, recorded: Recorded | None) -> ClusterState:
        """The ledger with one resource as it is now; None takes it out."""
        resources = {key: value for key, value in self.resources.items() if key != address}
        if recorded is not None:
            resources[address] = recorded
        return replace(self, resources=dict(sorted(resources.items())))


def state_bytes(state: ClusterState) -> bytes:
    """The ledger as it is stored: JSON that a person can read and compare."""
    return orjson.dumps(asdict(state), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def state_from_bytes(data: bytes, where: str) -> ClusterState:
    """The ledger that was stored; `StorageError` for anything else, with what mends it."""
    try:
        content = orjson.loads(data)
        if content["version"] > VERSION:
            raise StorageError(
                f"the ledger {where} was written by a later release (version {content['version']}): use that one",
                StorageKind.PERMANENT,
            )
        resources = {address: _recorded(found) for address, found in content["resources"].items()}
        lists = {key: tuple(content[key]) for key in ("approvals_used", "recoveries")}
        return ClusterState(**{**content, **lists, "resources": resources})
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise StorageError(
            f"the ledger {where} is damaged: put it back from a copy, or move it away and run `omnigraph cluster "
            "import`, which makes a new one from the graphs that exist",
            StorageKind.PERMANENT,
        ) from None


def _recorded(content: dict[str, Any]) -> Recorded:
    if content["status"] not in STATUSES:
        raise ValueError(content["status"])
    return Recorded(**{**content, "conditions": tuple(Condition(**found) for found in content["conditions"])})
