"""The lease of a branch, passed on from one writer of a process to the next one of the same process.

Processes get the lease in turn. One that has many writers and gave it back after each write would have them wait for as
many rounds of all processes: sixteen threads beside four other processes for eighty writes each. So while more of its
writers wait, the one that is done passes the lease on, once for each of them: a process has as many writes in its turn
as it has writers, and no more. What nobody takes is given back soon.

A program that writes again and again has nobody waiting: it has one write in each turn. Two would spare the second one
to read what others published, but all others wait for twice as long.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, replace

from omnigraph.errors import LeaseLost, StorageError
from omnigraph.storage.leases.leases import Lease

MOST_PASSED_ON = 15
"""So often a lease is passed on before other processes have their turn."""

UNTAKEN_SECONDS = 1.0
"""After so long a lease that nobody took is given back. The next writer mostly takes it within milliseconds."""

IN_LINE_SECONDS = 0.1
"""The same, where who is next does nothing but wait for it: it may have given up in the same instant."""


@dataclass(frozen=True, slots=True)
class PassedOn:
    """A lease, how often it was passed on, and how often it may be before other processes have their turn."""

    lease: Lease
    times: int = 0
    most: int = 0

    def with_waiting(self, writers: int) -> PassedOn:
        """The lease in the hands of somebody who sees so many other writers of the process wait."""
        return replace(self, most=max(self.most, min(writers, MOST_PASSED_ON)))

    @property
    def may_be_again(self) -> bool:
        """Whether a writer that waited in this turn has not had it yet."""
        return self.times < self.most


_waiting: dict[tuple[str, str], tuple[PassedOn, threading.Timer]] = {}
_guard = threading.Lock()


def pass_on(graph: str, held: PassedOn, seconds: float) -> None:
    """Leave a lease to the next writer of this process, for so long. Only one per name is ever held, so none is there
    yet."""
    key = (graph, held.lease.name)
    passed = replace(held, times=held.times + 1)
    timer = threading.Timer(seconds, _give_back, (key, passed))
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


def is_left(graph: str, name: str) -> bool:
    """Whether a lease was left to the next writer of this process."""
    return (graph, name) in _waiting


def give_all_back(graph: str) -> None:
    """Give back what was left of a graph: one of its handles is closed. Who would have taken it asks for it."""
    with _guard:
        left = [(key, passed) for key, (passed, _) in _waiting.items() if key[0] == graph]
    for key, passed in left:
        _give_back(key, passed)


def _give_back(key: tuple[str, str], passed: PassedOn) -> None:
    with _guard:
        if key not in _waiting or _waiting[key][0] is not passed:
            return
        _, timer = _waiting.pop(key)
    timer.cancel()
    passed.lease.release()


def _forget_those_of_parent() -> None:
    global _guard
    _guard = threading.Lock()
    _waiting.clear()


os.register_at_fork(after_in_child=_forget_those_of_parent)
