"""Sidecars of a cluster: what is being moved outside the ledger, written down before it moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import orjson
from ulid import ULID

from omnigraph.errors import StorageError, StorageKind
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore

RECOVERIES = "__cluster/recoveries"

Step = Literal["create_graph", "apply_schema", "delete_graph"]


@dataclass(frozen=True, slots=True)
class ClusterSidecar:
    """One step under way. `details` is what the ledger would get when it is done."""

    step: Step
    graph: str
    actor: str | None
    started_at: str
    config_digest: str
    details: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: str(ULID()))


class ClusterSidecars:
    """The sidecars of one cluster."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def put(self, sidecar: ClusterSidecar) -> None:
        """Write one down."""
        self._objects.put_if_absent(_path(sidecar.id), orjson.dumps(asdict(sidecar), option=orjson.OPT_INDENT_2))

    def remove(self, id: str) -> None:
        """It is in the ledger, or nothing came of it."""
        self._objects.delete(_path(id))

    def list(self) -> list[ClusterSidecar]:
        """Those that are there, oldest first."""
        found = []
        for entry in self._objects.list(RECOVERIES):
            try:
                data, _ = self._objects.get(entry.path)
            except ObjectNotFound:
                continue
            try:
                found.append(ClusterSidecar(**orjson.loads(data)))
            except (orjson.JSONDecodeError, TypeError):
                raise StorageError(
                    f"the sidecar {entry.path} is damaged: look at the graph it may be about, and remove the file",
                    StorageKind.PERMANENT,
                ) from None
        return sorted(found, key=lambda sidecar: sidecar.id)


def _path(id: str) -> str:
    return f"{RECOVERIES}/{id}.json"
