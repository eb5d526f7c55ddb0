"""Leases on local disk: one lock file each, locked by the operating system while the lease is held.

The file names the holder for others to read. It is removed by its holder on release, while still locked; a holder that
died leaves the file, unlocked, and the next one under that name (or `sweep`) clears it away. The file of a lease that
is taken again and again stays, and open: to make and to remove a file takes longer than to lock it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from omnigraph.storage.constants import OS_LOCK_DIRECTORY, TOLD_SUFFIX
from omnigraph.storage.leases.lease_values import LeaseInfo, decode_info, encode_info, file_name, new_info
from omnigraph.storage.objects.object_errors import storage_errors
from omnigraph.storage.objects.os_locks import (
    close,
    fair_lock,
    is_free,
    lock_again,
    names_this_file,
    nobody_waits,
    try_lock,
    unlock,
    unlock_and_remove,
)
from omnigraph.storage.uri import Root

_log = logging.getLogger(__name__)

_SUFFIX = ".lease"

_MOST_KEPT = 64
"""Files of leases that one handle keeps open while nobody holds them: those of its writers and of the branches that
they write to."""


_TOLD_SECONDS = 3600.0
"""After so long what a process told of its publishes is removed."""


class HeldLock:
    """A lock file that this process has locked."""

    def __init__(
        self, path: Path, descriptor: int, info: LeaseInfo, keep: Callable[[Path, int], None] | None = None
    ) -> None:
        self._path = path
        self._descriptor = descriptor
        self._keep = keep
        self.info = info

    def still_ours(self) -> bool:
        """A lock ends with its process, so only the removal of its file (of the whole graph, say) can take it away."""
        with storage_errors("looking at the lock", str(self._path)):
            return os.getpid() == self.info.process and names_this_file(self._path, self._descriptor)

    def seen_within(self, seconds: float) -> bool:
        """To look again costs nothing."""
        return False

    def release(self) -> None:
        """Unlock and remove the file. A forked child holds nothing and releases nothing."""
        if os.getpid() != self.info.process:
            return
        try:
            if self._keep is not None:
                self._keep(self._path, self._descriptor)
            else:
                unlock_and_remove(self._path, self._descriptor)
        except OSError as error:
            # The work is done and the lock is free: only its file stays.
            _log.warning("the file of the lease on `%s` could not be removed: %s", self.info.name, error)


class LockLeases:
    """Keeps leases as locked files below `__locks/os`."""

    def __init__(self, root: Root) -> None:
        self._directory = Path(root.path, OS_LOCK_DIRECTORY)
        self._kept: dict[Path, tuple[int, int]] = {}
        weakref.finalize(self, _close_all, self._kept).atexit = False

    def try_acquire(self, name: str, owner: str, wait: float, *, again: bool = False) -> HeldLock | None:
        """Lock the file of this name within `wait` seconds; with `again` it stays when the lease is released."""
        path = self._path(name)
        with storage_errors("locking", str(path)):
            process, descriptor = self._kept.pop(path, (0, -1))
            if process != os.getpid() or not lock_again(path, descriptor):
                found = fair_lock(path, wait)
                if found is None:
                    return None
                descriptor = found
            try:
                info = _note_holder(descriptor, name, owner)
            except BaseException:
                # Without its note (the disk is full, say) the lock is given back: nobody could tell who has it.
                unlock_and_remove(path, descriptor)
                raise
        return HeldLock(path, descriptor, info, self._keep if again else None)

    def close(self) -> None:
        """Remove the files that were kept, unless somebody else holds them."""
        for path in list(self._kept):
            process, descriptor = self._kept.pop(path, (0, -1))
            # A file that cannot be removed is nobody's: `sweep` finds it.
            with contextlib.suppress(OSError):
                if process == os.getpid() and lock_again(path, descriptor):
                    unlock_and_remove(path, descriptor)

    def _keep(self, path: Path, descriptor: int) -> None:
        if path in self._kept or len(self._kept) >= _MOST_KEPT:
            unlock_and_remove(path, descriptor)
            return
        try:
            unlock(descriptor)
        except OSError:
            close(descriptor)
            raise
        self._kept[path] = os.getpid(), descriptor

    def holder(self, name: str) -> LeaseInfo | None:
        """Who has the file locked."""
        return self._holder_of(self._path(name), name)

    def must_wait(self, name: str) -> bool:
        """Whether somebody has the file locked, or is in line for it."""
        path = self._path(name)
        with storage_errors("looking at the lock", str(path)):
            return not is_free(path) or not nobody_waits(path)

    def holders(self, prefix: str) -> list[LeaseInfo]:
        """Everybody whose lease name begins with `prefix`."""
        found = [self._holder_of(path, None) for path in self._files()]
        return [info for info in found if info is not None and info.name.startswith(prefix)]

    def take_away(self, name: str) -> None:
        """Remove the file: its holder has locked what is no longer there, and the next one makes another."""
        path = self._path(name)
        with storage_errors("removing the lock", str(path)):
            path.unlink(missing_ok=True)

    def sweep(self) -> int:
        """Remove lock files that nobody holds."""
        removed = 0
        tickets = [path for path in self._directory.glob(f"*{_SUFFIX}.*") if path.suffix != ".line"]
        for path in [*self._files(), *tickets]:
            try:
                if is_free(path) and (descriptor := try_lock(path)) is not None:
                    unlock_and_remove(path, descriptor)
                    removed += 1
            except OSError as error:
                _log.info("the file of a lease that nobody holds stays: %s (%s)", path, error)
        for path in self._directory.glob(f"*{TOLD_SUFFIX}"):
            # Nobody needs what was told so long ago, and of a branch that is gone nothing more will be.
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _TOLD_SECONDS:
                    path.unlink()
        return removed

    def _holder_of(self, path: Path, name: str | None) -> LeaseInfo | None:
        with storage_errors("reading the lock", str(path)):
            if is_free(path):
                return None
            try:
                info = decode_info(path.read_bytes())
            except FileNotFoundError:
                return None
        if info is None and name is not None:
            return LeaseInfo(name, "somebody who just took it", 0, "", 0, 0.0)
        return info

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob(f"*{_SUFFIX}")) if self._directory.is_dir() else []

    def _path(self, name: str) -> Path:
        return self._directory / (file_name(name) + _SUFFIX)


def _close_all(kept: dict[Path, tuple[int, int]]) -> None:
    for process, descriptor in kept.values():
        if process == os.getpid():
            close(descriptor)
    kept.clear()


def _note_holder(descriptor: int, name: str, owner: str) -> LeaseInfo:
    """Write into a file that is locked who has it."""
    earlier = decode_info(os.pread(descriptor, 65536, 0))
    info = new_info(name, owner, earlier.token if earlier else 0, None)
    # A reader in between finds an empty file, which it takes for a holder that has just come.
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, encode_info(info), 0)
    return info
