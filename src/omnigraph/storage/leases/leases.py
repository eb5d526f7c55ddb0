"""Leases: who may do a piece of work now, across threads, processes and machines.

A lease belongs to a piece of work, not to a process: it is released when the work ends and lost when its holder dies.
On local disk it is a lock of the operating system. On an object store it is an object with a time of expiry that its
holder keeps renewing; who finds it expired may take it over, and its fencing token grows by that, so that a holder
that was paused past its time finds out at the next `check`.

Tokens grow from holder to holder of one name. A takeover always counts on from the token it found; after a release the
clock gives the next one, which is enough, since nobody who released a lease still acts under it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from omnigraph.errors import Busy, LeaseLost
from omnigraph.storage.constants import LEASE_WAIT_SECONDS
from omnigraph.storage.leases.lease_locks import LockLeases
from omnigraph.storage.leases.lease_objects import ObjectLeases
from omnigraph.storage.leases.lease_values import Held, LeaseInfo, LeaseKeeper, LeaseTimes
from omnigraph.storage.objects.objects import ObjectStore
from omnigraph.storage.uri import Root

__all__ = ["Lease", "LeaseInfo", "LeaseTimes", "Leases"]


class Lease:
    """A lease that is held. A context manager; `check` before each step that must not happen twice."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._released = False

    @property
    def info(self) -> LeaseInfo:
        """Who holds it, as others see it."""
        return self._held.info

    @property
    def name(self) -> str:
        """What is guarded."""
        return self.info.name

    @property
    def token(self) -> int:
        """The fencing token: larger than that of every earlier holder."""
        return self.info.token

    def check(self) -> None:
        """Raise `LeaseLost` when somebody else may hold the lease by now."""
        if self._released or not self._held.still_ours():
            raise LeaseLost(
                f"the lease on `{self.name}` is no longer held by {self.info.owner}: it ran out while the process was "
                "paused, and somebody else may have gone on. This work stops here",
                lease=self.name,
            )

    def release(self) -> None:
        """Give it back. Doing so again, or after it was lost, does nothing."""
        if not self._released:
            self._released = True
            self._held.release()

    def release_later(self, later: Callable[[Callable[[], None]], object]) -> None:
        """Give it back by what `later` does with the work, for who need not wait until it is done."""
        if not self._released:
            self._released = True
            later(self._held.release)

    def seen_within(self, seconds: float) -> bool:
        """Whether the store has told lately that the lease is held, by this process's clocks: then to ask again tells
        nothing new. Never on local disk, where to ask costs nothing."""
        return not self._released and self._held.seen_within(seconds)

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Leases:
    """The leases of one graph."""

    def __init__(self, root: Root, objects: ObjectStore, times: LeaseTimes | None = None) -> None:
        self._keeper: LeaseKeeper = LockLeases(root) if root.is_local else ObjectLeases(objects, times or LeaseTimes())

    def acquire(self, name: str, owner: str, *, wait: float = LEASE_WAIT_SECONDS, again: bool = False) -> Lease:
        """Take a lease, waiting up to `wait` seconds for its holder; `Busy` after that.

        `again`: it will be taken again under this name, so what it is kept in need not be removed when it is released.
        """
        held = self._keeper.try_acquire(name, owner, wait, again=again)
        if held is None:
            holder = self._keeper.holder(name)
            whose = f"{holder.owner} (process {holder.process} on {holder.host})" if holder else "somebody else"
            raise Busy(
                f"`{name}` is held by {whose}; waited {wait:.1f} s for it. Try again shortly",
                lease=name,
                owner=holder.owner if holder else None,
            )
        return Lease(held)

    def is_live(self, name: str) -> LeaseInfo | None:
        """Who holds a lease now, if somebody alive does."""
        return self._keeper.holder(name)

    def must_wait(self, name: str) -> bool:
        """Whether who wants a lease now has to wait for it. On an object store nobody looks: it takes as long as to
        try."""
        return self._keeper.must_wait(name)

    def list_live(self, prefix: str = "") -> list[LeaseInfo]:
        """The leases that somebody alive holds and whose names begin with `prefix`, sorted by name."""
        return sorted(self._keeper.holders(prefix), key=lambda info: info.name)

    def take_away(self, name: str) -> None:
        """Take a lease from its holder, who finds out at its next `check`. For a person who cannot wait."""
        self._keeper.take_away(name)

    def sweep(self) -> int:
        """Remove what dead holders left behind; how many. For maintenance: nothing depends on it."""
        return self._keeper.sweep()

    def close(self) -> None:
        """Remove what was kept for the next time."""
        self._keeper.close()
