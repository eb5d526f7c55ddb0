"""Folders for what a piece of work puts aside on local disk, and the removal of those whose process was killed.

A folder goes when its work ends. A process that is killed cannot remove anything: each folder holds a file that its
process keeps locked, a lock goes with its process, and so the next work that opens a folder knows which of the others
nobody needs any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "omnigraph-scratch-"
OWNER = "owner.lock"
SWEEP_EVERY = 60.0
"""Seconds between two looks at the folders of others: a look reads the whole temporary directory."""
_swept: dict[str, float] = {}


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """A new folder in the system's temporary directory, gone afterwards."""
    parent = tempfile.gettempdir()
    now = time.monotonic()
    if now - _swept.get(parent, -SWEEP_EVERY) >= SWEEP_EVERY:
        _swept[parent] = now
        remove_abandoned(Path(parent))
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{purpose}-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with _owned(folder):
            yield folder


def remove_abandoned(parent: Path) -> list[Path]:
    """Remove the folders in `parent` whose process is gone; which ones these were."""
    gone: list[Path] = []
    with suppress(OSError):
        gone = [folder for folder in sorted(parent.glob(f"{PREFIX}*")) if _is_abandoned(folder)]
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
    return gone


@contextmanager
def _owned(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. It has its name only once it is locked, so nobody finds it free too early."""
    descriptor = os.open(folder / f"{OWNER}.new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        # Where a file system has no locks the file stays without its name, and nobody takes the folder away.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(folder / f"{OWNER}.new", folder / OWNER)
        yield
    finally:
        os.close(descriptor)


def _is_abandoned(folder: Path) -> bool:
    """Whether the process that made a folder of this user is gone."""
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return False
        descriptor = os.open(folder / OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
