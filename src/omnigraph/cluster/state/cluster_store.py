"""The store of a cluster: the ledger by compare-and-swap, payloads by digest, and where the graphs are."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from omnigraph.cluster.resource_values import digest_of_bytes
from omnigraph.cluster.state.approvals import Approvals
from omnigraph.cluster.state.cluster_lock import ClusterLock
from omnigraph.cluster.state.cluster_sidecars import ClusterSidecars
from omnigraph.cluster.state.cluster_state import ClusterState, state_bytes, state_from_bytes
from omnigraph.errors import Conflict, StorageError, StorageKind
from omnigraph.storage.objects.object_errors import LostPrecondition, ObjectExists, ObjectNotFound, is_passing
from omnigraph.storage.objects.objects import Token, open_objects
from omnigraph.storage.uri import Root, parse_root

ROOM = "__cluster"
STATE = f"{ROOM}/state.json"
RESOURCES = f"{ROOM}/resources"

PayloadHealth = Literal["sound", "missing", "damaged", "unreadable"]


class ClusterStore:
    """Everything below one storage root. Nothing is read before it is asked for."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.objects = open_objects(root)
        self.lock = ClusterLock(root, self.objects)
        self.approvals = Approvals(self.objects)
        self.sidecars = ClusterSidecars(self.objects)

    def graph_uri(self, graph: str) -> str:
        """Where a graph of the cluster lies."""
        return f"{self.root.uri.rstrip('/')}/graphs/{graph}.omni"

    def graph_root(self, graph: str) -> Root:
        """The same, as a root."""
        return parse_root(self.graph_uri(graph))

    def names_of_graphs(self) -> list[str]:
        """What lies where graphs lie, by name."""
        return open_objects(parse_root(f"{self.root.uri.rstrip('/')}/graphs")).names()

    def read(self) -> tuple[ClusterState, Token] | None:
        """The ledger and what it was read as; None when there is none yet."""
        try:
            data, token = self.objects.get(STATE)
        except ObjectNotFound:
            return None
        return state_from_bytes(data, f"{self.root.uri.rstrip('/')}/{STATE}"), token

    def write(self, state: ClusterState, token: Token | None, actor: str | None) -> tuple[ClusterState, Token]:
        """Publish the next ledger, if nobody else has since `token` was read. None: there was none."""
        fresh = replace(state, updated_at=now(), updated_by=actor)
        data = state_bytes(fresh)
        try:
            if token is None:
                return fresh, self.objects.put_if_absent(STATE, data)
            return fresh, self.objects.put_if_match(STATE, data, token)
        except (LostPrecondition, ObjectExists):
            raise Conflict(
                "the ledger was changed by somebody else meanwhile, so this was not recorded: run the command again"
            ) from None

    def put_payload(self, data: bytes) -> str:
        """Store a payload under its digest; the digest. One that is there and whole is left as it is."""
        digest = digest_of_bytes(data)
        if self.payload_health(digest) == "sound":
            return digest
        self.objects.put(payload_path(digest), data)
        return digest

    def payload(self, digest: str) -> bytes:
        """A payload, if it still is what its digest says; `StorageError` otherwise, with what mends it."""
        try:
            data, _ = self.objects.get(payload_path(digest))
        except ObjectNotFound:
            raise _bad_payload(digest, "missing") from None
        if digest_of_bytes(data) != digest:
            raise _bad_payload(digest, "damaged")
        return data

    def payload_health(self, digest: str) -> PayloadHealth:
        """Whether a payload is there and unchanged."""
        try:
            data, _ = self.objects.get(payload_path(digest))
        except ObjectNotFound:
            return "missing"
        except StorageError as error:
            if is_passing(error):
                raise
            return "unreadable"
        return "sound" if digest_of_bytes(data) == digest else "damaged"

    def sweep_payloads(self, state: ClusterState) -> None:
        """Remove payloads of no use: neither the ledger names them nor anybody can be about to."""
        named = {found.payload for found in state.resources.values()}
        for entry in self.objects.list(RESOURCES):
            old = (datetime.now(UTC) - entry.modified).total_seconds() > _KEPT_SECONDS
            if old and entry.path.rpartition("/")[2] not in named:
                with contextlib.suppress(StorageError):
                    self.objects.delete(entry.path)


_KEPT_SECONDS = 7 * 86400.0
"""Payloads of earlier revisions are kept this long: a server may be reading them."""


def payload_path(digest: str) -> str:
    """Where a payload lies."""
    return f"{RESOURCES}/{digest}"


def now() -> str:
    """This moment, as the ledger writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _bad_payload(digest: str, what: str) -> StorageError:
    return StorageError(
        f"the payload {payload_path(digest)} is {what}: run `omnigraph cluster refresh`, then `omnigraph cluster "
        "apply`",
        StorageKind.PERMANENT,
        payload=digest,
    )
