"""The commit window: the only place where tables of a branch move.

In process a lock per (table key, branch incarnation), taken in sorted order; across processes one lease per branch
incarnation, taken after the locks. Without it two writers could interleave their table commits on one branch; Lance
lets them (it rebases appends), and one would publish half of the other's write. Preparing a write happens outside, so
the window lasts milliseconds; readers never wait for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph.config import settings
from omnigraph.errors import Busy, InternalError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.passed_on import PassedOn, pass_on, take
from omnigraph.ledger.values import BranchRef
from omnigraph.storage.leases.leases import Lease, Leases

declare("window.before_lease", "The in-process locks are held, the branch's lease is not")
declare("window.entered", "The window has just been entered; nothing has been read")
declare("window.leaving", "The work in the window is done; its lease and locks are still held")


@dataclass(frozen=True, slots=True)
class Window:
    """A window that is being held."""

    branch: BranchRef
    table_keys: frozenset[str] | None
    schema: bool
    lease: Lease

    def covers(self, table_key: str) -> None:
        """A table outside the window may not be committed: a hard error in every build."""
        if self.table_keys is not None and table_key not in self.table_keys:
            raise InternalError(
                f"the commit window on branch `{self.branch.name}` does not cover {table_key}; nothing of it was "
                "committed. Please report this.",
                table_key=table_key,
            )

    def check(self) -> None:
        """Fail if the branch's lease was lost: this process was paused for too long."""
        self.lease.check()


class CommitWindows:
    """The windows of one graph. Handles on the same graph in one process share their locks."""

    def __init__(self, graph: str, leases: Leases) -> None:
        self._graph = graph
        self._leases = leases

    @contextmanager
    def enter(
        self,
        branch: BranchRef,
        table_keys: Iterable[str] | None,
        *,
        schema: bool = False,
        wait: float | None = None,
        more_wait: Callable[[], bool] = lambda: False,
        give_back: Callable[[Lease], object] = Lease.release,
    ) -> Iterator[Window]:
        """Hold the window over `table_keys` of `branch`; `Busy` when others hold it for longer than `wait` seconds.

        None stands for every table. Without `wait` it is as long as the settings say. The lease is passed on to the
        next writer of this process if `more_wait` says at the end that there is one. Otherwise `give_back` releases
        it, if the work in the window was done.
        """
        keys = frozenset(table_keys) if table_keys is not None else None
        deadline = time.monotonic() + (settings().lease_wait_seconds if wait is None else wait)
        names = [f"table/{branch.incarnation}/{key}" for key in sorted(keys or ())]
        names += [f"schema/{branch.incarnation}"] if schema else []
        # The lease is one per branch, so its waiters queue up here instead of asking the store again and again.
        names.append(f"lease/{branch.incarnation}")
        with _held_locks(self._graph, names, deadline, branch):
            failpoint("window.before_lease")
            held = take(self._graph, lease_name(branch)) or PassedOn(self._acquired(branch, deadline))
            passed = done = False
            try:
                failpoint("window.entered")
                yield Window(branch, keys, schema, held.lease)
                failpoint("window.leaving")
                done = True
                passed = held.may_be_again and more_wait()
            finally:
                if passed:
                    pass_on(self._graph, held)
                elif done:
                    give_back(held.lease)
                else:
                    held.lease.release()

    def _acquired(self, branch: BranchRef, deadline: float) -> Lease:
        remaining = max(0.0, deadline - time.monotonic())
        owner = f"a writer of branch `{branch.name}`"
        return self._leases.acquire(lease_name(branch), owner, wait=remaining, again=True)


def lease_name(branch: BranchRef) -> str:
    """The lease that guards a branch's window across processes."""
    return f"branch-{branch.incarnation}"


class _Counted:
    """A lock and the number of those who hold it or wait for it."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


_locks: dict[tuple[str, str], _Counted] = {}
_registry = threading.Lock()


@contextmanager
def _held_locks(graph: str, names: Iterable[str], deadline: float, branch: BranchRef) -> Iterator[None]:
    held: list[tuple[str, str]] = []
    try:
        for name in names:
            key = (graph, name)
            if not _acquire(key, deadline):
                raise Busy(
                    f"another write of this process is still being committed to branch `{branch.name}`; try again "
                    "shortly",
                    branch=branch.name,
                )
            held.append(key)
        yield
    finally:
        for key in reversed(held):
            _release(key)


def _acquire(key: tuple[str, str], deadline: float) -> bool:
    with _registry:
        counted = _locks.setdefault(key, _Counted())
        counted.users += 1
    acquired = False
    try:
        acquired = counted.lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
    finally:
        if not acquired:
            _forget(key, counted)
    return acquired


def _release(key: tuple[str, str]) -> None:
    counted = _locks[key]
    counted.lock.release()
    _forget(key, counted)


def _forget(key: tuple[str, str], counted: _Counted) -> None:
    with _registry:
        counted.users -= 1
        if not counted.users:
            del _locks[key]
