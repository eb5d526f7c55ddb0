"""Leases on an object store: an object with an expiry, renewed by put-if-match, taken over once it has run out.

Expiry compares wall clocks of machines, so a little skew is allowed for before a lease is taken over. A holder judges
itself by its own steady clock: when its last renewal is further back than the lease lasts, it has lost it, whatever the
store says by then.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from dataclasses import replace
from itertools import count

from omnigraph.errors import ResourceLimit, StorageError
from omnigraph.storage.constants import LOCKS_DIRECTORY
from omnigraph.storage.leases.lease_values import LeaseInfo, LeaseTimes, decode_info, encode_info, file_name, new_info
from omnigraph.storage.objects.object_errors import LostPrecondition, ObjectExists, ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore, Token

_log = logging.getLogger(__name__)

_DIRECTORY = f"{LOCKS_DIRECTORY}/leases"

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.25
_IMPATIENT_PAUSE_SECONDS = 0.05
_IMPATIENT_AFTER_SECONDS = 5.0
"""How long those who want a lease that is held pause between two looks: longer and longer at first, since each look is
two requests. But a store has no line of waiters, and a writer that takes the lease again as soon as it has given it
back leaves a gap of a tenth of a second: who has waited for long looks often enough to find it."""


class HeldObject:
    """A lease object that this process keeps renewing, in a thread of its own."""

    def __init__(
        self, objects: ObjectStore, path: str, info: LeaseInfo, stored: Token, times: LeaseTimes, renewed_at: float
    ) -> None:
        self.info = info
        self._objects = objects
        self._path = path
        self._stored = stored
        self._times = times
        self._renewed_at = renewed_at
        self._lost = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        try:
            threading.Thread(target=self._keep_renewing, name=f"lease {info.name}", daemon=True).start()
        except RuntimeError as error:
            self.release()
            raise ResourceLimit(
                f"the lease on `{info.name}` cannot be kept: no thread can be started ({error})"
            ) from error

    def still_ours(self) -> bool:
        """Ask the own clock first, then the store."""
        with self._lock:
            if self._lost or self._ran_out():
                self._lost = True
                return False
        try:
            data, _ = self._objects.get(self._path)
        except ObjectNotFound:
            return False
        found = decode_info(data)
        return found is not None and (found.token, found.owner) == (self.info.token, self.info.owner)

    def seen_within(self, seconds: float) -> bool:
        """By both clocks: the steady one may stand still while the machine is suspended."""
        with self._lock:
            steady = time.monotonic() - self._renewed_at
            wall = time.time() - ((self.info.expires_at or 0.0) - self._times.lease_seconds)
            return not self._lost and steady < seconds and abs(wall) < seconds

    def release(self) -> None:
        """Stop renewing and remove the object, if by our own clock nobody can have taken it over.

        Were the process paused right before the removal, it could hit a later holder's object; that one finds its
        object gone at its next check and stops, so nothing worse than a failed piece of work comes of it.
        """
        self._ended.set()
        with self._lock:
            if not self._lost and not self._ran_out():
                try:
                    self._objects.delete(self._path)
                except StorageError as error:
                    # The work is done and the object runs out by itself: nothing to undo, but somebody will wait.
                    _log.warning("the lease on `%s` could not be released: %s", self.info.name, error)
            self._lost = True

    def _keep_renewing(self) -> None:
        while not self._ended.wait(self._times.renewal_seconds):
            with self._lock:
                if self._lost or self._ended.is_set():
                    return
                if self._ran_out():
                    self._lost = True
                    return
                self._renew()

    def _renew(self) -> None:
        started = time.monotonic()
        fresh = replace(self.info, expires_at=time.time() + self._times.lease_seconds)
        try:
            self._stored = self._objects.put_if_match(self._path, encode_info(fresh), self._stored)
        except LostPrecondition:
            if not self._accepted_after_all(fresh):
                self._lost = True
                return
        except StorageError:
            # The store is in trouble for a moment; the next round tries again until the lease has run out.
            return
        self.info = fresh
        self._renewed_at = started

    def _accepted_after_all(self, fresh: LeaseInfo) -> bool:
        """Whether an earlier renewal was stored and only its answer was lost."""
        try:
            data, stored = self._objects.get(self._path)
        except StorageError:
            return False
        found = decode_info(data)
        if found is None or (found.token, found.owner) != (fresh.token, fresh.owner):
            return False
        self._stored = stored
        return True

    def _ran_out(self) -> bool:
        return time.monotonic() - self._renewed_at > self._times.lease_seconds


def pause(attempt: int, waited: float) -> float:
    """How long to wait before the next look at a lease that was held at so many looks before."""
    if waited >= _IMPATIENT_AFTER_SECONDS:
        return _IMPATIENT_PAUSE_SECONDS
    return min(_FIRST_PAUSE_SECONDS * 1.5 ** min(attempt, 16), _LONGEST_PAUSE_SECONDS)


class ObjectLeases:
    """Keeps leases as objects below `__locks/leases`."""

    def __init__(self, objects: ObjectStore, times: LeaseTimes) -> None:
        self._objects = objects
        self._times = times

    def try_acquire(self, name: str, owner: str, wait: float, *, again: bool = False) -> HeldObject | None:
        """Make the object, or take it over when it has run out, within `wait` seconds."""
        began = time.monotonic()
        for attempt in count():
            held = self._attempt(name, owner)
            if held is not None:
                return held
            waited = time.monotonic() - began
            if waited >= wait:
                return None
            time.sleep(min(wait - waited, pause(attempt, waited) * random.uniform(0.5, 1.5)))
        raise AssertionError("unreachable")

    def holder(self, name: str) -> LeaseInfo | None:
        """Who holds the object, unless it has run out."""
        return self._live(self._path(name))

    def must_wait(self, name: str) -> bool:
        """Nobody knows without a request."""
        return False

    def holders(self, prefix: str) -> list[LeaseInfo]:
        """Everybody whose lease name begins with `prefix`."""
        found = [self._live(entry.path) for entry in self._objects.list(_DIRECTORY)]
        return [info for info in found if info is not None and info.name.startswith(prefix)]

    def take_away(self, name: str) -> None:
        """Remove the object: its holder finds it gone, or another's."""
        self._objects.delete(self._path(name))

    def sweep(self) -> int:
        """Remove objects that ran out long ago: so long that nobody can be about to take them over."""
        oldest = time.time() - 100 * (self._times.lease_seconds + self._times.clock_skew_seconds)
        left_behind = [
            entry.path
            for entry in self._objects.list(_DIRECTORY)
            if entry.modified.timestamp() < oldest and self._live(entry.path) is None
        ]
        for path in left_behind:
            self._objects.delete(path)
        return len(left_behind)

    def close(self) -> None:
        """Nothing is kept: a lease that nobody holds has no object."""

    def _attempt(self, name: str, owner: str) -> HeldObject | None:
        path = self._path(name)
        started = time.monotonic()
        # Mostly nobody holds it: one request instead of a look and a request.
        info = new_info(name, owner, 0, self._times.lease_seconds)
        with contextlib.suppress(ObjectExists):
            token = self._objects.put_if_absent(path, encode_info(info))
            return HeldObject(self._objects, path, info, token, self._times, started)
        try:
            data, stored = self._objects.get(path)
        except ObjectNotFound:
            return None
        found = decode_info(data)
        if found is not None and not self._expired(found):
            return None
        info = new_info(name, owner, found.token if found else 0, self._times.lease_seconds)
        try:
            token = self._objects.put_if_match(path, encode_info(info), stored)
        except LostPrecondition:
            return None
        return HeldObject(self._objects, path, info, token, self._times, started)

    def _live(self, path: str) -> LeaseInfo | None:
        try:
            data, _ = self._objects.get(path)
        except ObjectNotFound:
            return None
        info = decode_info(data)
        return info if info is not None and not self._expired(info) else None

    def _expired(self, info: LeaseInfo) -> bool:
        return info.expires_at is not None and time.time() > info.expires_at + self._times.clock_skew_seconds

    def _path(self, name: str) -> str:
        return f"{_DIRECTORY}/{file_name(name)}.json"
