"""Writers driven step by step: every failpoint is a place where another one may go on, and where one may die.

Each writer is a thread with a handle of its own that believes to be a process of its own. One runs at a time, from one
failpoint to the next; who goes on is chosen by a list of numbers, so a schedule is a value and runs again the same way.
Waiting (for a lock, a lease, a moment) gives the turn away. A writer that dies stands still for ever and loses its
locks, as a process does; what its `finally` would have done is not done.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph import failpoints
from omnigraph.errors import OmniGraphError
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.commit import attempts, window
from omnigraph.ledger.manifest import publish
from omnigraph.ledger.recovery.recover import recover_all
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.maintain import recovered
from omnigraph.maintain.optimize.optimize import optimize
from omnigraph.storage.leases import lease_locks
from omnigraph.storage.objects import os_locks
from tests.faults.invariants import check_history, check_pins_are_heads, observe
from tests.faults.writers import COMPANY, KNOWS, PERSON, content, new_graph, put_company, put_friends, put_people

MOST_STEPS = 3_000
PATIENCE = 150
"""How often a writer asks for a lock before it is told that it is busy."""


@dataclass(frozen=True)
class Schedule:
    """Which writers, in which order they go on (`choices`, modulo those that can), and at which step one dies."""

    writers: tuple[str, ...]
    choices: tuple[int, ...]
    dies_at: int | None = None

    @classmethod
    def at_random(cls, seed: int) -> Schedule:
        """A schedule that the seed describes. Long runs of one writer are as likely as quick changes."""
        chance = random.Random(seed)
        writers = tuple(chance.choice(sorted(WRITERS)) for _ in range(chance.choice((2, 2, 3))))
        stays = chance.choice((0.2, 0.6, 0.9))
        choices: list[int] = []
        for _ in range(400):
            same = choices and chance.random() < stays
            choices.append(choices[-1] if same else chance.randrange(60))
        return cls(writers, tuple(choices), chance.randrange(5, 90) if chance.random() < 0.5 else None)


class _Dead(BaseException):
    """Unwinds the thread of a writer that died, long after it stopped to matter."""


@dataclass
class _Writer:
    number: int
    name: str
    thread: threading.Thread | None = None
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    at: str = "start"
    over: bool = False
    dead: bool = False
    waits: int = 0
    outcome: object = None
    descriptors: set[int] = field(default_factory=set)
    store: GraphStore | None = None


def _people(store: GraphStore, name: str) -> object:
    return put_people(store, {name: 1})


def _people_of_branch(store: GraphStore, name: str) -> object:
    return put_people(store, {name: 1}, "review")


def _friends(store: GraphStore, name: str) -> object:
    return put_friends(store, {name: 1}, [("ada", name)])


def _company(store: GraphStore, name: str) -> object:
    return put_company(store, name)


def _reopen(store: GraphStore, name: str) -> object:
    # Recovery as an open runs it, with a handle that shares no lock in process with the others.
    return recover_all(store)


def _optimize(store: GraphStore, name: str) -> object:
    return optimize(store, "main")


WRITERS: dict[str, Callable[[GraphStore, str], object]] = {
    "people": _people,
    "people of a branch": _people_of_branch,
    "friends": _friends,
    "company": _company,
    "reopen": _reopen,
    "optimize": _optimize,
}


class Stage:
    """A graph at a fixed place, put back to its first state before each schedule."""

    def __init__(self, place: Path) -> None:
        self.path = place / "graph"
        place.mkdir(exist_ok=True)
        self._copy = place / "copy"
        with new_graph(str(self.path)) as store:
            create_branch(store, "review")
            put_people(store, {"carl": 1}, "review")
        shutil.copytree(self.path, self._copy)

    def play(self, schedule: Schedule) -> list[str]:
        """Run a schedule and check what it leaves; its script, one line per step. Fails with the script."""
        shutil.rmtree(self.path)
        shutil.copytree(self._copy, self.path)
        run = _Run(str(self.path), schedule)
        try:
            run.play()
            _check(str(self.path), run.writers)
        except BaseException as failure:
            script = "\n".join(run.script)
            raise AssertionError(f"{failure!r}\nplay it again: {schedule!r}\n{script}") from failure
        finally:
            run.let_go()
        return run.script


class _Run:
    def __init__(self, uri: str, schedule: Schedule) -> None:
        self.schedule = schedule
        self.script: list[str] = []
        self.writers = [_Writer(number, name) for number, name in enumerate(schedule.writers)]
        self._uri = uri
        self._by_thread: dict[int, _Writer] = {}
        self._back = threading.Semaphore(0)
        self._ended = False

    def play(self) -> None:
        """Let one writer after the other go on, until all are through or dead."""
        with _cooperative(self), failpoints.watched(self.reached):
            for writer in self.writers:
                writer.thread = threading.Thread(target=self._work, args=(writer,), daemon=True)
                writer.thread.start()
            for step in range(MOST_STEPS):
                ready = [writer for writer in self.writers if not writer.over and not writer.dead]
                if not ready:
                    return
                choices = self.schedule.choices
                chosen = ready[choices[step % len(choices)] % len(ready)]
                if step == self.schedule.dies_at:
                    self.script.append(f"{chosen.number} {chosen.name} dies at {chosen.at}")
                    self._kill(chosen)
                    continue
                self.script.append(f"{chosen.number} {chosen.name} goes on from {chosen.at}")
                chosen.go.release()
                assert self._back.acquire(timeout=60), f"writer {chosen.number} hangs after {chosen.at}"
            raise AssertionError("the writers do not come to an end")

    def let_go(self) -> None:
        """Unwind the threads of those who died, and let nobody log a commit in the graph of the next schedule."""
        self._ended = True
        for writer in self.writers:
            if writer.dead:
                writer.go.release()
            if writer.thread is not None:
                writer.thread.join(10)
            if writer.store is not None:
                writer.store.unlogged.close()

    def reached(self, name: str) -> None:
        """Stop here until it is this writer's turn. Threads that are nobody's go on."""
        writer = self._by_thread.get(threading.get_ident())
        if writer is None or self._ended:
            if writer is not None and writer.dead:
                raise _Dead
            return
        writer.at = name
        self._back.release()
        writer.go.acquire()
        if writer.dead:
            raise _Dead

    def wait(self, what: str) -> bool:
        """Give the turn away while waiting; False when patience is at an end."""
        writer = self._by_thread.get(threading.get_ident())
        if writer is None or self._ended:
            return False
        writer.waits += 1
        self.reached(f"waiting for {what}")
        return writer.waits < PATIENCE

    def note(self, descriptor: int) -> None:
        """A lock of the running writer, for the case that it dies. Its number may have been another's before."""
        writer = self._by_thread.get(threading.get_ident())
        for other in self.writers if writer is not None else ():
            other.descriptors.discard(descriptor)
        if writer is not None:
            writer.descriptors.add(descriptor)

    def _work(self, writer: _Writer) -> None:
        self._by_thread[threading.get_ident()] = writer
        writer.go.acquire()
        try:
            if writer.dead:
                return
            store = writer.store = GraphStore(open_root(self._uri), read_only=False)
            # Locks and queues in process are shared by all handles on a graph; these writers are no one process.
            store.windows._graph = store.queue._graph = f"{self._uri} {writer.number}"
            writer.outcome = WRITERS[writer.name](store, f"w{writer.number}")
        except _Dead:
            return
        except OmniGraphError as error:
            writer.outcome = error
        except BaseException as error:
            writer.outcome = error
        finally:
            # The number of a thread that ended is given to the next one, such as that which logs commits.
            del self._by_thread[threading.get_ident()]
            writer.over = True
            if not writer.dead:
                self._back.release()

    def _kill(self, writer: _Writer) -> None:
        writer.dead = True
        for descriptor in writer.descriptors & os_locks._open_descriptors:
            _lose_lock(descriptor)
        if writer.store is not None:
            # The thread that logs its commits a little later dies with it.
            with writer.store.unlogged._guard:
                writer.store.unlogged._waiting.clear()


def _lose_lock(descriptor: int) -> None:
    """Free a lock as the death of its process would.

    The number stays taken until the thread of the dead writer is unwound. Closed here, it would be given to the next
    lock of this process, and what the dead writer gives back in the end would be that one.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


def open_root(uri: str) -> object:
    """The root of a graph; a handle is made without opening, since another writer may be in the middle of something."""
    from omnigraph.storage.uri import parse_root

    return parse_root(uri)


@contextmanager
def _cooperative(run: _Run) -> Iterator[None]:
    """Make every wait give the turn away."""
    try_lock, held, sleep = os_locks.try_lock, window._locks.held, time.sleep

    def patient_lock(path: Path, wait: float = 0.0) -> int | None:
        while True:
            descriptor = try_lock(path)
            if descriptor is not None:
                run.note(descriptor)
                return descriptor
            if wait <= 0 or not run.wait(path.name):
                return None

    @contextmanager
    def patiently_held(name: tuple[str, str], seconds: float) -> Iterator[bool]:
        while True:
            with held(name, 0.0) as has_it:
                if has_it:
                    yield True
                    return
            if not run.wait(f"the window of {name[1]}"):
                yield False
                return

    def nap(seconds: float) -> None:
        if not run.wait("a moment"):
            sleep(0.0)

    fake_time = type("Time", (), {"sleep": staticmethod(nap), "monotonic": time.monotonic, "time_ns": time.time_ns})
    with ExitStack() as stack:

        def put_in(owner: object, name: str, value: object) -> None:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)

        put_in(lease_locks, "try_lock", patient_lock)
        put_in(lease_locks, "fair_lock", patient_lock)
        put_in(window._locks, "held", patiently_held)
        put_in(attempts, "time", fake_time)
        put_in(publish, "time", fake_time)
        put_in(recovered, "time", fake_time)
        yield


def _check(uri: str, writers: Sequence[_Writer]) -> None:
    """What must hold after any schedule: the invariants of page 04, and for each writer what it was told."""
    with open_store(uri) as store:
        assert store.sidecars.list() == [], "an unfinished write is left"
        check_pins_are_heads(store)
        check_history(store)
        seen = {"main": content(store), "review": content(store, "review")}
        for writer in writers:
            _check_told(writer, seen)
        before = observe(store)
        put_friends(store, {"next": 1}, [("ada", "next")])
        assert observe(store) != before
        rows = [record.operation_id for record in store.audit.list()]
        assert len(rows) == len(set(rows)), "two audit rows for one operation"


def _check_told(writer: _Writer, seen: dict[str, dict[str, list[tuple[object, ...]]]]) -> None:
    person = f"w{writer.number}"
    tables = {"people": PERSON, "people of a branch": PERSON, "friends": PERSON, "company": COMPANY}
    if writer.name not in tables:
        told_well = writer.dead or not isinstance(writer.outcome, BaseException)
        assert told_well or isinstance(writer.outcome, OmniGraphError), writer.outcome
        return
    branch = "review" if writer.name == "people of a branch" else "main"
    there = person in {row[0] for row in seen[branch][tables[writer.name]]}
    if writer.name == "friends":
        assert (f"ada-{person}" in {row[0] for row in seen[branch][KNOWS]}) == there, "half of a write is there"
    if writer.dead:
        return
    if isinstance(writer.outcome, BaseException):
        assert isinstance(writer.outcome, OmniGraphError), writer.outcome
        assert not there, f"reported as failed and there: {writer.outcome}"
    else:
        assert there, "acknowledged and not there"
