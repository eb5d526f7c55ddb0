"""The lease of a branch, passed on from one writer of a process to the next one of the same process.

Processes get the lease in turn. One that has many writers and gave it back after each write would have them wait for as
many rounds of all processes: sixteen threads beside four other processes for eighty writes each. So while more of its
writers wait, the one that is done passes the lease on, a bounded number of times. What nobody takes is given back soon.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from omnigraph.errors import LeaseLost, StorageError
from omnigraph.storage.leases.leases import Lease

MOST_PASSED_ON = 15
"""So often a lease is passed on before other processes have their turn."""

UNTAKEN_SECONDS = 1.0
"""After so long a lease that nobody took is given back. The next writer mostly takes it within milliseconds."""


@dataclass(frozen=True, slots=True)
class PassedOn:
    """A lease and how often it was passed on."""

    lease: Lease
    times: int = 0

    @property
    def may_be_again(self) -> bool:
        """Whether other processes have not waited for long enough yet."""
        return self.times < MOST_PASSED_ON


_waiting: dict[tuple[str, str], tuple[PassedOn, threading.Timer]] = {}
_guard = threading.Lock()


def pass_on(graph: str, held: PassedOn) -> None:
    """Leave a lease to the next writer of this process. Only one per name is ever held, so none is there yet."""
    key = (graph, held.lease.name)
    passed = PassedOn(held.lease, held.times + 1)
    timer = threading.Timer(UNTAKEN_SECONDS, _give_back, (key, passed))
    timer.daemon = True
    with _guard:
        _waiting[key] = passed, timer
    try:
        timer.start()
    except RuntimeError:
        # No thread to be had: then it is not passed on.
        _give_back(key, passed)


def take(graph: str, name: str) -> PassedOn | None:
    """The lease that was left to this writer, if there is one and it is still held."""
    with _guard:
        found = _waiting.pop((graph, name), None)
    if found is None:
        return None
    passed, timer = found
    timer.cancel()
    try:
        passed.lease.check()
    except (LeaseLost, StorageError):
        passed.lease.release()
        return None
    return passed


def _give_back(key: tuple[str, str], passed: PassedOn) -> None:
    with _guard:
        if key not in _waiting or _waiting[key][0] is not passed:
            return
        del _waiting[key]
    passed.lease.release()


def _forget_those_of_parent() -> None:
    global _guard
    _guard = threading.Lock()
    _waiting.clear()


os.register_at_fork(after_in_child=_forget_those_of_parent)
