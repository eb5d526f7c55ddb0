"""The commit window: the only place where tables of a branch move.

In process a lock per branch incarnation, whose waiters get it in the order in which they came; across processes one
lease per branch incarnation, taken after the lock. Without it two writers could interleave their table commits on one
branch; Lance lets them (it rebases appends), and one would publish half of the other's write. Preparing a write happens
outside, so the window lasts milliseconds; readers never wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from omnigraph.config import settings
from omnigraph.errors import Busy, InternalError, TableMoved
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit import passed_on
from omnigraph.ledger.commit.fair_locks import FairLocks
from omnigraph.ledger.commit.passed_on import PassedOn, give_all_back, is_left, pass_on, take
from omnigraph.ledger.values import BranchRef
from omnigraph.storage.leases.leases import Lease, Leases

declare("window.before_lease", "The in-process locks are held, the branch's lease is not")
declare("window.entered", "The window has just been entered; nothing has been read")
declare("window.leaving", "The work in the window is done; its lease and locks are still held")


@dataclass(frozen=True, slots=True)
class Window:
    """A window that is being held. `endings` is what is left to do when it is left, with its lease or before it."""

    branch: BranchRef
    table_keys: frozenset[str] | None
    schema: bool
    lease: Lease
    endings: list[Callable[[], None]] = field(default_factory=list)

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

    def end(self) -> None:
        """Do what is left to do, now."""
        while self.endings:
            self.endings.pop()()


_locks = FairLocks()
"""By graph and branch incarnation: who has the window, and who of this process waits for it."""


def _give_back_at_once(window: Window) -> None:
    window.end()
    window.lease.release()


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
        more_wait: Callable[[], int] = lambda: 0,
        give_back: Callable[[Window], object] = _give_back_at_once,
    ) -> Iterator[Window]:
        """Hold the window over `table_keys` of `branch`; `Busy` when others hold it for longer than `wait` seconds.

        None stands for every table. Without `wait` it is as long as the settings say. The lease is passed on to the
        next writer of this process if there is one: somebody waits here for the window, or `more_wait` knows how many
        will. Otherwise `give_back` releases it, and ends the window, if the work in it was done.
        """
        keys = frozenset(table_keys) if table_keys is not None else None
        deadline = time.monotonic() + (settings().lease_wait_seconds if wait is None else wait)
        # The lease is one per branch, so its waiters queue up here instead of asking the store again and again.
        line = (self._graph, branch.incarnation)
        with _locks.held(line, deadline - time.monotonic()) as has_it:
            if not has_it:
                raise Busy(
                    f"another write of this process is still being committed to branch `{branch.name}`; try again "
                    "shortly",
                    branch=branch.name,
                )
            failpoint("window.before_lease")
            held = take(self._graph, lease_name(branch)) or PassedOn(self._acquired(branch, deadline))
            window = Window(branch, keys, schema, held.lease)
            done = untouched = False
            try:
                failpoint("window.entered")
                yield window
                failpoint("window.leaving")
                done = True
            except TableMoved:
                # Nothing was done: who waits need not ask for the lease again.
                untouched = True
                raise
            finally:
                wanted, in_line = (more_wait(), self.waiting(branch)) if done or untouched else (0, 0)
                held = held.with_waiting(max(wanted, in_line))
                left_for = _left_for(held, wanted, in_line)
                if left_for is not None:
                    window.end()
                    pass_on(self._graph, held, left_for)
                elif done:
                    give_back(window)
                else:
                    _give_back_at_once(window)

    def waiting(self, branch: BranchRef) -> int:
        """How many of this process wait for the window of a branch."""
        return _locks.waiting((self._graph, branch.incarnation))

    def is_left(self, branch: BranchRef) -> bool:
        """Whether the lease of a branch was left to the next writer of this process."""
        return is_left(self._graph, lease_name(branch))

    def must_wait(self, branch: BranchRef) -> bool:
        """Whether somebody else has the window of a branch, or is next for it, as far as a look costs nothing."""
        return not self.is_left(branch) and self._leases.must_wait(lease_name(branch))

    def close(self) -> None:
        """Give back leases that were left to the next writer."""
        give_all_back(self._graph)

    def _acquired(self, branch: BranchRef, deadline: float) -> Lease:
        remaining = max(0.0, deadline - time.monotonic())
        owner = f"a writer of branch `{branch.name}`"
        return self._leases.acquire(lease_name(branch), owner, wait=remaining, again=True)


def lease_name(branch: BranchRef) -> str:
    """The lease that guards a branch's window across processes."""
    return f"branch-{branch.incarnation}"


def _left_for(held: PassedOn, wanted: int, in_line: int) -> float | None:
    """For how long a lease is left to the next writer of this process; None when it is not."""
    if held.may_be_again and wanted:
        return passed_on.UNTAKEN_SECONDS
    if held.may_be_again and in_line:
        return passed_on.IN_LINE_SECONDS
    return None
