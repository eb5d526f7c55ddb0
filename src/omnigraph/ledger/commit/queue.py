"""The queue of a branch: writers of one process take turns before they prepare, in the order in which they came.

Two writes that were prepared on one state and touch the same tables cannot both be committed; the loser's work is
wasted, and with many writers most work is. So whoever wants to write waits first, and prepares when nobody before it
touches a table that it reads or writes. Nothing depends on the queue but the pace: what a write leaned on is checked
again in its commit window, against writers of other processes and against those who do not queue.

A write that allows it may be carried along by the one whose turn it is (`Turn.along`), instead of waiting for its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from omnigraph.config import settings
from omnigraph.errors import Busy


@dataclass(frozen=True, slots=True)
class Footprint:
    """The tables that a write can touch, known before it runs. `writes` None: any table."""

    writes: frozenset[str] | None
    reads: frozenset[str] = frozenset()

    def meets(self, other: Footprint) -> bool:
        """Whether one of the two writes what the other one touches."""
        if self.writes is None or other.writes is None:
            return True
        return not (
            self.writes.isdisjoint(other.writes)
            and self.writes.isdisjoint(other.reads)
            and self.reads.isdisjoint(other.writes)
        )


EVERYTHING = Footprint(None)

CONTENDED_WRITES = 32
"""So many writes after a lost race are prepared with the commit window held from the start, and then it is tried
without again. More than a process makes before the others have their turn (`passed_on`)."""


class _State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    CARRIED = "carried"
    DONE = "done"


@dataclass(eq=False, slots=True)
class _Place:
    footprint: Footprint
    rider: object | None
    state: _State = _State.WAITING
    woken: threading.Event = field(default_factory=threading.Event)
    thread: int = field(default_factory=threading.get_ident)


class Turn:
    """The turn of a write: nobody of this process that touches its tables runs beside it."""

    def __init__(self, line: _Line, place: _Place) -> None:
        self._line = line
        self._place = place
        self._carried: list[_Place] = []

    def along(self, most: int) -> list[object]:
        """Take the next waiting writes along that allow it: their riders, in order. They are done when the turn is.

        None of them overtakes a write that it meets and that came before it.
        """
        with self._line.lock:
            ahead: list[_Place] = []
            found: list[object] = []
            for place in self._line.places:
                if len(found) >= most:
                    break
                if place is self._place or place in self._carried:
                    continue
                free = not any(place.footprint.meets(other.footprint) for other in ahead)
                if place.rider is not None and place.state is _State.WAITING and free:
                    place.state = _State.CARRIED
                    self._carried.append(place)
                    found.append(place.rider)
                else:
                    ahead.append(place)
            return found

    def put_back(self) -> None:
        """Let those who were taken along wait for their own turns again: their carrier was interrupted."""
        with self._line.lock:
            for place in self._carried:
                place.state = _State.WAITING
            self._carried.clear()

    def _end(self) -> None:
        with self._line.lock:
            for place in (self._place, *self._carried):
                place.state = _State.DONE
                self._line.places.remove(place)
                place.woken.set()
            self._line.advanced += 1
            self._line.wake()


@dataclass(eq=False)
class _Line:
    """The writes of one branch in this process, in the order in which they came."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    places: list[_Place] = field(default_factory=list)
    advanced: int = 0

    def wake(self) -> None:
        """Start everybody whose turn has come. Called with the lock held.

        A write inside another one of its thread, from a callback, waits for nobody: the other would wait for it. It is
        the other that finds what it leaned on moved, and is prepared again or fails.
        """
        ahead: list[_Place] = []
        running = {place.thread for place in self.places if place.state is _State.RUNNING}
        for place in self.places:
            free = place.thread in running or not any(place.footprint.meets(o.footprint) for o in ahead)
            if place.state is _State.WAITING and free:
                place.state = _State.RUNNING
                place.woken.set()
            ahead.append(place)

    def leave(self, place: _Place) -> None:
        """Take a place out that did not run."""
        with self.lock:
            if place in self.places:
                self.places.remove(place)
            self.wake()


_lines: dict[tuple[str, str], tuple[_Line, int]] = {}
_registry = threading.Lock()


class WriteQueue:
    """The queues of one graph, one per branch. Handles on the same graph in one process share them."""

    def __init__(self, graph: str) -> None:
        self._graph = graph
        self._contended: dict[str, int] = {}
        self._company: dict[str, int] = {}

    def note_lost(self, branch: str) -> None:
        """A writer of another process came first: the next writes had better not leave it the chance."""
        self._contended[branch] = CONTENDED_WRITES

    def is_contended(self, branch: str) -> bool:
        """Whether writers of other processes are at work on a branch, as far as is known; asked once per write."""
        left = self._contended.get(branch, 0)
        if left:
            self._contended[branch] = left - 1
        return left > 0

    def note_company(self, branch: str) -> None:
        """Another process has published on a branch since the last write of this one."""
        self._company[branch] = CONTENDED_WRITES

    def has_company(self, branch: str) -> bool:
        """Whether other processes have published on a branch lately; asked once per publish."""
        left = self._company.get(branch, 0)
        if left:
            self._company[branch] = left - 1
        return left > 0

    def is_accompanied(self, branch: str) -> bool:
        """The same, for who only wants to know."""
        return self._company.get(branch, 0) > 0

    @contextmanager
    def turn(self, branch: str, footprint: Footprint) -> Iterator[Turn]:
        """Wait for the turn of a write and hold it; `Busy` when nothing moves for as long as the settings allow."""
        with self.turn_or_ride(branch, footprint, None) as turn:
            assert turn is not None
            yield turn

    @contextmanager
    def turn_or_ride(self, branch: str, footprint: Footprint, rider: object | None) -> Iterator[Turn | None]:
        """Like `turn`, for a write that may be taken along by another one: None when it was, and is done."""
        with _line_of(self._graph, branch) as line:
            place = _Place(footprint, rider)
            with line.lock:
                line.places.append(place)
                line.wake()
            _wait(line, place, branch)
            if place.state is _State.DONE:
                yield None
                return
            turn = Turn(line, place)
            try:
                yield turn
            finally:
                turn._end()

    def waiting(self, branch: str) -> int:
        """How many writes of a branch wait or run in this process."""
        with _registry:
            found = _lines.get((self._graph, branch))
        return len(found[0].places) if found else 0

    def others(self, branch: str) -> int:
        """How many writes of a branch wait or run in other threads of this process than the one that asks."""
        with _registry:
            found = _lines.get((self._graph, branch))
        if found is None:
            return 0
        here = threading.get_ident()
        with found[0].lock:
            return sum(place.thread != here and place.state is not _State.CARRIED for place in found[0].places)

    def others_in_company(self, branch: str) -> int:
        """The same where writers of other processes are at work on the branch too, as far as is known; otherwise 0."""
        return self.others(branch) if self._contended.get(branch, 0) else 0


@contextmanager
def _line_of(graph: str, branch: str) -> Iterator[_Line]:
    key = (graph, branch)
    with _registry:
        line, users = _lines.get(key, (_Line(), 0))
        _lines[key] = (line, users + 1)
    try:
        yield line
    finally:
        with _registry:
            _, users = _lines[key]
            if users > 1:
                _lines[key] = (line, users - 1)
            else:
                del _lines[key]


def _wait(line: _Line, place: _Place, branch: str) -> None:
    """Until the turn has come, or somebody has done the work. Patience starts anew whenever the queue moves."""
    patience = settings().queue_wait_seconds
    try:
        seen, since = line.advanced, time.monotonic()
        while not place.woken.wait(min(patience, 1.0)):
            if line.advanced != seen:
                seen, since = line.advanced, time.monotonic()
            elif time.monotonic() - since >= patience and place.state is _State.WAITING:
                raise Busy(
                    f"other writes of this process to branch `{branch}` are still at work after {patience:g} s; "
                    "nothing was written. Try again shortly",
                    branch=branch,
                )
    except BaseException:
        with line.lock:
            carried = place.state is _State.CARRIED
        if carried:
            # Somebody has taken this write along: it ends with theirs, whatever becomes of the caller.
            place.woken.wait()
        line.leave(place)
        raise
