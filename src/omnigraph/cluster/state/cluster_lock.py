"""The lock of a cluster: one operator changes it at a time.

A lease, so it ends with its holder; `lock.json` beside it says who that is and for what, and has the id by which a
person who cannot wait takes the lock away.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from ulid import ULID

from omnigraph.config import settings
from omnigraph.errors import Busy, Conflict, LeaseLost, NotFound, StorageError
from omnigraph.failpoints import declare, failpoint
from omnigraph.storage.leases.leases import Lease, Leases, LeaseTimes
from omnigraph.storage.objects.object_errors import LostPrecondition, ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore, Token
from omnigraph.storage.uri import Root

LOCK = "__cluster/lock.json"
_LEASE = "cluster"

declare("cluster.locked", "The lock of the cluster is held; nothing else has happened")


@dataclass(frozen=True, slots=True)
class LockInfo:
    """Who holds the lock, for what, since when. `live` says whether the holder is still there."""

    id: str
    holder: str
    operation: str
    host: str
    process: int
    since: float
    live: bool = True

    @property
    def age(self) -> float:
        """Seconds since it was taken."""
        return max(0.0, time.time() - self.since)

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.holder} ({self.operation}, process {self.process} on {self.host}, for {self.age:.0f} s)"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "age_seconds": round(self.age, 1)}


class ClusterLock:
    """The lock of one cluster."""

    def __init__(self, root: Root, objects: ObjectStore) -> None:
        times = LeaseTimes(settings().lease_seconds, settings().lease_renewal_seconds)
        self._leases = Leases(root, objects, times)
        self._objects = objects

    @contextmanager
    def held(self, operation: str, actor: str | None, *, wait: float | None = None) -> Iterator[HeldCluster]:
        """Hold the lock for a block. `Busy` names who has it when it does not come free in time."""
        holder = actor or f"{_user()}@{socket.gethostname()}"
        try:
            seconds = settings().lease_wait_seconds if wait is None else wait
            lease = self._leases.acquire(_LEASE, holder, wait=seconds)
        except Busy as busy:
            raise self._busy(busy) from None
        info = LockInfo(str(ULID()), holder, operation, socket.gethostname(), os.getpid(), time.time())
        held = HeldCluster(lease)
        token: Token | None = None
        try:
            token = self._objects.put(LOCK, orjson.dumps(_stored(info)))
            failpoint("cluster.locked")
            yield held
        finally:
            self._release(lease, token)

    def info(self) -> LockInfo | None:
        """What `lock.json` says, and whether that is still so; None when nobody has the lock."""
        found = self._read()
        if found is None:
            return None
        info, _ = found
        return LockInfo(**{**asdict(info), "live": self._leases.is_live(_LEASE) is not None})

    def force_unlock(self, id: str) -> LockInfo:
        """Take the lock away from its holder, who finds out before its next step. Another id changes nothing."""
        found = self._read()
        if found is None:
            raise NotFound("nobody holds the lock of this cluster")
        info, token = found
        if info.id != id:
            raise Conflict(f"the lock has the id {info.id} now, held by {info.text}: nothing was changed", lock=info.id)
        try:
            self._objects.delete_if_match(LOCK, token)
        except LostPrecondition:
            raise Conflict("the lock went to somebody else meanwhile: nothing was changed") from None
        self._leases.take_away(_LEASE)
        return info

    def _busy(self, busy: Busy) -> Busy:
        found = self._read()
        if found is None:
            return Busy(f"somebody else changes this cluster now: {busy.message}")
        info, _ = found
        return Busy(
            f"the cluster is locked by {info.text}. Wait for it, or, if its holder is gone for good, run `omnigraph "
            f"cluster force-unlock {info.id}`",
            lock=_stored(info),
        )

    def _read(self) -> tuple[LockInfo, Token] | None:
        try:
            data, token = self._objects.get(LOCK)
            return LockInfo(**orjson.loads(data)), token
        except (ObjectNotFound, orjson.JSONDecodeError, TypeError):
            return None

    def _release(self, lease: Lease, token: Token | None) -> None:
        try:
            lease.check()
        except (LeaseLost, StorageError):
            return  # it is somebody else's by now, and so is what lies there
        if token is not None:
            with contextlib.suppress(StorageError):
                self._objects.delete_if_match(LOCK, token)
        lease.release()


class HeldCluster:
    """The lock while it is held, or what stands for it where the cluster is used without one."""

    def __init__(self, lease: Lease | None = None) -> None:
        self._lease = lease

    def check(self) -> None:
        """`LeaseLost` when the lock was taken away: the step that would come now must not happen."""
        if self._lease is not None:
            self._lease.check()


def _stored(info: LockInfo) -> dict[str, Any]:
    return {key: value for key, value in asdict(info).items() if key != "live"}


def _user() -> str:
    with contextlib.suppress(Exception):
        return getpass.getuser()
    return "somebody"
