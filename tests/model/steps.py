"""Steps of a history as plain values, so that a process of its own can take one, and be killed at it."""

from __future__ import annotations

import importlib
import os
import random
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import omnigraph as og
from omnigraph.errors import MergeConflicts, ValidationFailed
from tests.faults.harness import ROOMS, join, start_child

# A room declares its failpoints when it is imported, and the graph imports it at its first use.
for _room in (*ROOMS, "omnigraph.maintain.cleanup"):
    importlib.import_module(_room)

REFUSED = 77

_COMMIT = (
    "window.before_lease",
    "window.entered",
    "window.leaving",
    "write.leased",
    "write.premises_hold",
    "write.prepared",
    "write.published",
    "write.sidecar_deleted",
    "write.sidecar_put",
    "write.table_committed",
    "write.tables_committed",
    "sidecar.put",
    "sidecar.delete",
    "publish.before",
    "publish.after",
    "log.append.before",
    "log.append.after",
    "storage.commit.before",
    "storage.commit.after",
)
PLACES_TO_DIE: Mapping[str, tuple[str, ...]] = {
    "load": (*_COMMIT, "storage.fork.before", "storage.fork.after"),
    "mutate": (*_COMMIT, "storage.fork.before", "storage.fork.after"),
    "merge": (
        *_COMMIT,
        "storage.fork.before",
        "storage.fork.after",
        "merge.decided",
        "merge.staged",
        "merge.before_delete_source",
    ),
    "apply_schema": (
        *_COMMIT,
        "storage.fork.before",
        "storage.fork.after",
        "schema_apply.locked",
        "schema_apply.stored",
        "schema_apply.staged",
    ),
    "revert": (*_COMMIT, "storage.fork.before", "storage.fork.after", "undo.decided", "undo.staged"),
    "restore": (*_COMMIT, "storage.fork.before", "storage.fork.after", "restore.staged"),
    "branch_create": ("branch_create.before_manifest", "branch_create.before_ref", "branch_create.after_ref"),
    "branch_delete": ("branch_delete.before_ref", "branch_delete.after_ref", "branch_delete.between_forks"),
    "optimize": (*_COMMIT, "optimize.prepared", "storage.compaction.before", "storage.compaction.after"),
    "cleanup": ("cleanup.chosen", "cleanup.before_versions", "cleanup.before_forks", "cleanup.between_tables"),
}
"""The failpoints that a step can come past."""

WHILE_RECOVERING = (
    "recovery.taken_over",
    "recovery.planned",
    "recovery.restored",
    "recovery.before_publish",
    "recovery.published",
    "recovery.retired",
    "audit.append.before",
    "audit.append.after",
    "storage.restore.before",
    "storage.restore.after",
)


@dataclass(frozen=True)
class Step:
    """One call of a graph: its name and arguments."""

    call: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Death:
    """When a step's process dies: at a place (by its position among those of the step), or after some seconds.

    With `again` the first one who recovers dies too.
    """

    place: int = 0
    hit: int = 1
    after: float | None = None
    again: str | None = None


def die(uri: str, step: Step, death: Death) -> int:
    """Let a process take a step and die at it; how it ended: 0 when it was done before, REFUSED, or by SIGKILL."""
    if death.after is not None:
        child = start_child(take, uri, step)
        time.sleep(death.after)
        child.kill()
    else:
        places = PLACES_TO_DIE[step.call]
        child = start_child(take, uri, step, failpoints_on={places[death.place % len(places)]: f"kill:{death.hit}"})
    end = join(child)
    assert end in (0, REFUSED, -signal.SIGKILL), f"{step} ended with {end}"
    if death.again is not None:
        join(start_child(reopen, uri, failpoints_on={death.again: "kill"}))
    return end


def take(uri: str, step: Step) -> None:
    """Take a step in this process, which ends with it when the graph refuses."""
    # Two children of one fork server would otherwise make the same random choices.
    random.seed()
    with og.open(uri) as graph:
        try:
            getattr(graph, step.call)(*step.arguments, **step.options)
        except (ValidationFailed, MergeConflicts):
            os._exit(REFUSED)


def reopen(uri: str) -> None:
    """Open a graph for writing, which recovers what was left undone."""
    og.open(uri).close()
