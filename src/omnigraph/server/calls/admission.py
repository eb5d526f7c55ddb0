"""Admission: how much one actor may have under way, so that nobody takes the server from the others."""

from __future__ import annotations

import threading
from collections import defaultdict

from omnigraph.errors import TooManyRequests


class Admission:
    """Counts what is under way for each actor, requests and bytes of their bodies."""

    def __init__(self, requests: int, size: int) -> None:
        self._requests = requests
        self._bytes = size
        self._lock = threading.Lock()
        self._under_way: dict[str, int] = defaultdict(int)
        self._held: dict[str, int] = defaultdict(int)

    def enter(self, actor: str | None) -> Ticket:
        """A ticket for one more request; `TooManyRequests` when the actor has enough of them."""
        who = actor or ""
        with self._lock:
            if self._under_way[who] >= self._requests:
                raise TooManyRequests(
                    f"{self._requests} requests of this actor are under way, and no more are taken on; try again "
                    "when one of them is done",
                    limit="per_actor_inflight",
                )
            self._under_way[who] += 1
        return Ticket(self, who)

    def hold(self, who: str, size: int) -> None:
        """Count bytes that are held for an actor."""
        with self._lock:
            if self._held[who] + size > self._bytes:
                raise TooManyRequests(
                    f"{self._bytes} bytes of this actor's requests are held already; try again when some of them are "
                    "done",
                    limit="per_actor_bytes",
                )
            self._held[who] += size

    def leave(self, who: str, size: int) -> None:
        """One request less, with all that it held."""
        with self._lock:
            self._under_way[who] -= 1
            self._held[who] -= size
            if not self._under_way[who]:
                del self._under_way[who], self._held[who]


class Ticket:
    """One admitted request. Released once, at its very end."""

    def __init__(self, admission: Admission, who: str) -> None:
        self._admission = admission
        self._who = who
        self._size = 0
        self._released = False

    def hold(self, size: int) -> None:
        """Bytes more that this request holds."""
        self._admission.hold(self._who, size)
        self._size += size

    def release(self) -> None:
        """The request is over."""
        if not self._released:
            self._released = True
            self._admission.leave(self._who, self._size)
