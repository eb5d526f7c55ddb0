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

_open_descriptors: set[int] = set()
_guard = threading.Lock()

_SHORTEST_WAIT_SECONDS = 0.02
"""A look at a lock (`is_free`) holds it for an instant; nobody may be told "busy" because of that."""

_LONGEST_PAUSE_SECONDS = 0.004
"""Between two looks at a lock that is taken. Most are held for milliseconds."""


def try_lock(path: Path, wait: float = 0.0) -> int | None:
    """Lock `path` exclusively within `wait` seconds; the descriptor, or None when somebody else keeps it.

    The file may be removed by its holder on release (`unlock_and_remove`), so what was locked is compared with what the
    path names now, and the attempt starts again if they differ.
    """
    deadline = time.monotonic() + max(wait, _SHORTEST_WAIT_SECONDS)
    pause = 0.001
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _close(descriptor)
            if time.monotonic() >= deadline:
                return None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            continue
        except BaseException:
            _close(descriptor)
            raise
        try:
            ours = names_this_file(path, descriptor)
        except BaseException:
            _close(descriptor)
            raise
        if ours:
            return descriptor
        _close(descriptor)


def fair_lock(path: Path, wait: float) -> int | None:
    """Like `try_lock`, for locks that are taken again and again: who has just released one does not get it back first.

    Waiters of other processes look every few milliseconds, and the former holder would always be quicker. So whoever
    finds the lock taken locks a turnstile beside it first: its holder is the next, and newcomers queue behind that.
    """
    turnstile = path.with_name(f"{path.name}.next")
    deadline = time.monotonic() + wait
    if wait <= 0 or is_free(turnstile):
        descriptor = try_lock(path, 0.0)
        if descriptor is not None or wait <= 0:
            return descriptor
    first = try_lock(turnstile, max(0.0, deadline - time.monotonic()))
    if first is None:
        return None
    try:
        return try_lock(path, max(0.0, deadline - time.monotonic()))
    finally:
        unlock_and_remove(turnstile, first)


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
    """Release a lock and leave its file, for files of a fixed number."""
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
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        _close(descriptor)


def _open(path: Path) -> int:
    with _guard:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _open_descriptors.add(descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    with _guard:
        if descriptor in _open_descriptors:
            _open_descriptors.discard(descriptor)
            os.close(descriptor)


def _forget_locks_of_parent() -> None:
    global _guard
    _guard = threading.Lock()
    for descriptor in _open_descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _open_descriptors.clear()


os.register_at_fork(after_in_child=_forget_locks_of_parent)
