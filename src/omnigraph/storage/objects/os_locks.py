"""Locks of the operating system: gone when their process dies, and exclusive between threads as well.

`flock` belongs to an open file description, so each holder opens the file for itself and two threads of one process
exclude each other like two processes do. A child that is forked while a lock is held inherits the description and
would keep the lock alive after its parent's death; so it closes its copies right after the fork.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omnigraph.storage.objects.lock_waits import lock_within

_open_descriptors: set[int] = set()
_tickets: dict[int, tuple[Path, int]] = {}
"""By the descriptor of a lock that was waited for, the ticket of its holder, which is locked for as long as it."""

# Reentrant: what is collected while a file is being opened may close files of its own.
_guard = threading.RLock()

_SHORTEST_WAIT_SECONDS = 0.02
"""A look at a lock (`is_free`) holds it for an instant; nobody may be told "busy" because of that."""

_SHORTEST_PAUSE_SECONDS = 0.0002
_LONGEST_PAUSE_SECONDS = 0.0005
_PATIENT_PAUSE_SECONDS = 0.004
"""Between two looks at a lock that is taken. Most are held for milliseconds; who has waited for longer than that looks
less often."""

_TICKET_PAUSE_SECONDS = 0.002
"""Between two looks at the ticket of the one before, where there is no thread to wait for it with."""

_IMPATIENT_SECONDS = 0.25


def try_lock(path: Path, wait: float = 0.0) -> int | None:
    """Lock `path` exclusively within `wait` seconds; the descriptor, or None when somebody else keeps it.

    The file may be removed by its holder on release (`unlock_and_remove`), so what was locked is compared with what the
    path names now, and the attempt starts again if they differ.
    """
    began = time.monotonic()
    deadline = began + max(wait, _SHORTEST_WAIT_SECONDS)
    pause = _SHORTEST_PAUSE_SECONDS
    descriptor: int | None = None
    try:
        while True:
            if descriptor is None:
                descriptor = _open(path)
            locked = _locks_at_once(descriptor)
            if locked and names_this_file(path, descriptor):
                found, descriptor = descriptor, None
                return found
            now = time.monotonic()
            if not locked and now >= deadline:
                return None
            if not locked:
                time.sleep(pause)
                pause = _next_pause(pause, now - began)
            if locked or not names_this_file(path, descriptor):
                _close(descriptor)
                descriptor = None
    finally:
        if descriptor is not None:
            _close(descriptor)


def lock_again(path: Path, descriptor: int) -> bool:
    """Lock a file that was left open by `unlock`, if nobody holds it or is next, and it is still there.

    Otherwise the descriptor is closed.
    """
    try:
        if nobody_waits(path) and _locks_at_once(descriptor) and names_this_file(path, descriptor):
            return True
    except BaseException:
        _close(descriptor)
        raise
    _close(descriptor)
    return False


def _locks_at_once(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def fair_lock(path: Path, wait: float) -> int | None:
    """Like `try_lock`, for locks that are taken again and again: those who wait get it in the order in which they came.

    Waiters look every now and then, and whoever has just released the lock would always be quicker. So each waiter
    locks a ticket of its own and leaves its name at the end of the line; its turn comes when the ticket before it is
    free, because its owner has given the lock back, has given up or is dead. Only the order hangs on tickets. Who holds
    the lock keeps its ticket too: the next one sleeps until then, where it would look at the lock again and again.
    """
    if wait <= 0:
        return try_lock(path, 0.0)
    if nobody_waits(path) and (descriptor := _lock_at_once(path)) is not None:
        return descriptor
    deadline = time.monotonic() + wait
    ticket = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    own = try_lock(ticket)
    if own is None:
        return None
    found: int | None = None
    try:
        before = _queue_up(path, ticket)
        first = before is None or _wait_until_free(before, deadline)
        found = try_lock(path, max(0.0, deadline - time.monotonic())) if first else None
        return found
    finally:
        if found is None:
            unlock_and_remove(ticket, own)
        else:
            _tickets[found] = ticket, own


def nobody_waits(path: Path) -> bool:
    """Whether the last one who had to wait for the lock at `path` waits no longer."""
    try:
        last = _end_of_line(path).read_text()
    except FileNotFoundError:
        return True
    return not last or is_free(path.with_name(last))


def _queue_up(path: Path, ticket: Path) -> Path | None:
    """Leave a ticket at the end of the line; the one before it."""
    descriptor = _open(_end_of_line(path))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        last = os.pread(descriptor, 4096, 0).decode()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, ticket.name.encode(), 0)
    finally:
        _close(descriptor)
    return path.with_name(last) if last else None


def _wait_until_free(ticket: Path, deadline: float) -> bool:
    """Until the owner of a ticket has let go of it, or the deadline has passed.

    Only tickets are waited for in the kernel: their names are used once, so whoever gave up and is woken later is in
    nobody's way. Of the lock itself it would keep others out for that instant.
    """
    try:
        descriptor = _open(ticket, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    free = lock_within(descriptor, fcntl.LOCK_SH, deadline, close=_close)
    if free is not None:
        return free
    _close(descriptor)
    while not is_free(ticket):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_TICKET_PAUSE_SECONDS)
    return True


def _end_of_line(path: Path) -> Path:
    return path.with_name(f"{path.name}.line")


def _lock_at_once(path: Path) -> int | None:
    descriptor = _open(path)
    try:
        if _locks_at_once(descriptor) and names_this_file(path, descriptor):
            found, descriptor = descriptor, -1
            return found
        return None
    finally:
        if descriptor >= 0:
            _close(descriptor)


def _next_pause(pause: float, waited: float) -> float:
    return min(pause * 1.5, _LONGEST_PAUSE_SECONDS if waited < _IMPATIENT_SECONDS else _PATIENT_PAUSE_SECONDS)


def is_free(path: Path) -> bool:
    """Whether nobody alive holds the lock at `path`."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def names_this_file(path: Path, descriptor: int) -> bool:
    """Whether `path` still names the file behind `descriptor`."""
    try:
        named = os.stat(path)
    except FileNotFoundError:
        return False
    opened = os.fstat(descriptor)
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


def unlock(descriptor: int) -> None:
    """Release a lock and leave its file, and the descriptor, for `lock_again` or `close`."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    _give_up_ticket(descriptor)


def close(descriptor: int) -> None:
    """Let go of a file, and of its lock if it is held."""
    _close(descriptor)


def unlock_and_remove(path: Path, descriptor: int) -> None:
    """Release a lock and remove its file, while it is still held, so that nobody can lock a file that is going away."""
    try:
        if names_this_file(path, descriptor):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
    finally:
        # Whatever becomes of the file: unlocked, it is nobody's, and the next holder or a sweep clears it away.
        _close(descriptor)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock at `path`, waiting as long as it takes; for sections that last microseconds."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        _close(descriptor)


def _open(path: Path, flags: int = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC) -> int:
    with _guard:
        try:
            descriptor = os.open(path, flags, 0o666)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, flags, 0o666)
        _open_descriptors.add(descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    with _guard:
        ticket = _tickets.pop(descriptor, None)
        if descriptor in _open_descriptors:
            _open_descriptors.discard(descriptor)
            os.close(descriptor)
    _remove_ticket(ticket)


def _give_up_ticket(descriptor: int) -> None:
    with _guard:
        ticket = _tickets.pop(descriptor, None)
    _remove_ticket(ticket)


def _remove_ticket(ticket: tuple[Path, int] | None) -> None:
    if ticket is not None:
        # Whatever becomes of its file, it is unlocked: that is what the next one waits for.
        with contextlib.suppress(OSError):
            unlock_and_remove(*ticket)


def _forget_locks_of_parent() -> None:
    global _guard
    _guard = threading.RLock()
    for descriptor in _open_descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _open_descriptors.clear()
    _tickets.clear()


os.register_at_fork(after_in_child=_forget_locks_of_parent)
