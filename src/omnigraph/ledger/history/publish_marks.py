"""Marks: which branch may have a published commit that is not in the commit log yet.

Opening a graph for writing completes the log. To look at the head of every branch for that would cost more with each
branch, so whoever publishes leaves a trace first: mostly that is its sidecar, and a publish without one puts a mark,
which goes when the commit is logged. Marks lie beside the sidecars: the one listing that finds those finds these too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.recovery.sidecars import SIDECAR_PREFIX
from omnigraph.ledger.values import BranchRef
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore

_SUFFIX = ".publish"

declare("publish.marked", "A publish without a sidecar has put its mark; nothing is published")


@dataclass(frozen=True, slots=True)
class PublishMark:
    """A commit that may have been published without being logged; `branch` None: the mark does not say where."""

    graph_commit_id: str
    branch: BranchRef | None


class PublishMarks:
    """The marks of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def put(self, branch: BranchRef, graph_commit_id: str) -> None:
        """Leave a mark, before the publish. Putting it again changes nothing."""
        content = {"branch": branch.name, "incarnation": branch.incarnation}
        self._objects.put(_path(graph_commit_id), orjson.dumps(content))
        failpoint("publish.marked")

    def read(self, names: Iterable[str]) -> list[PublishMark]:
        """The marks among the names that a listing of the sidecars found. One that went meanwhile is left out."""
        ids = sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return [mark for one in ids if (mark := self._get(one)) is not None]

    def remove(self, graph_commit_id: str) -> None:
        """The commit is logged, or was never published."""
        self._objects.delete(_path(graph_commit_id))

    def _get(self, graph_commit_id: str) -> PublishMark | None:
        try:
            data, _ = self._objects.get(_path(graph_commit_id))
        except ObjectNotFound:
            return None
        try:
            content = orjson.loads(data)
            return PublishMark(graph_commit_id, BranchRef(content["branch"], content["incarnation"], None))
        except (ValueError, TypeError, KeyError):
            return PublishMark(graph_commit_id, None)


def _path(graph_commit_id: str) -> str:
    return f"{SIDECAR_PREFIX}/{graph_commit_id}{_SUFFIX}"
