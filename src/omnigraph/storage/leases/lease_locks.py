"""Leases on local disk: one lock file each, locked by the operating system while the lease is held.

The file names the holder for others to read. It is removed by its holder on release, while still locked; a holder that
died leaves the file, unlocked, and the next one under that name (or `sweep`) clears it away.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from omnigraph.storage.constants import OS_LOCK_DIRECTORY
from omnigraph.storage.leases.lease_values import LeaseInfo, decode_info, encode_info, file_name, new_info
from omnigraph.storage.objects.object_errors import storage_errors
from omnigraph.storage.objects.os_locks import fair_lock, is_free, names_this_file, try_lock, unlock_and_remove
from omnigraph.storage.uri import Root

_log = logging.getLogger(__name__)

_SUFFIX = ".lease"


class HeldLock:
    """A lock file that this process has locked."""

    def __init__(self, path: Path, descriptor: int, info: LeaseInfo) -> None:
        self._path = path
        self._descriptor = descriptor
        self.info = info

    def still_ours(self) -> bool:
        """A lock ends with its process, so only the removal of its file (of the whole graph, say) can take it away."""
        with storage_errors("looking at the lock", str(self._path)):
            return os.getpid() == self.info.process and names_this_file(self._path, self._descriptor)

    def release(self) -> None:
        """Unlock and remove the file. A forked child holds nothing and releases nothing."""
        if os.getpid() != self.info.process:
            return
        try:
            unlock_and_remove(self._path, self._descriptor)
        except OSError as error:
            # The work is done and the lock is free: only its file stays.
            _log.warning("the file of the lease on `%s` could not be removed: %s", self.info.name, error)


class LockLeases:
    """Keeps leases as locked files below `__locks/os`."""

    def __init__(self, root: Root) -> None:
        self._directory = Path(root.path, OS_LOCK_DIRECTORY)

    def try_acquire(self, name: str, owner: str, wait: float) -> HeldLock | None:
        """Lock the file of this name within `wait` seconds."""
        path = self._path(name)
        with storage_errors("locking", str(path)):
            descriptor = fair_lock(path, wait)
            if descriptor is None:
                return None
            try:
                info = _note_holder(descriptor, name, owner)
            except BaseException:
                # Without its note (the disk is full, say) the lock is given back: nobody could tell who has it.
                unlock_and_remove(path, descriptor)
                raise
        return HeldLock(path, descriptor, info)

    def holder(self, name: str) -> LeaseInfo | None:
        """Who has the file locked."""
        return self._holder_of(self._path(name), name)

    def holders(self, prefix: str) -> list[LeaseInfo]:
        """Everybody whose lease name begins with `prefix`."""
        found = [self._holder_of(path, None) for path in self._files()]
        return [info for info in found if info is not None and info.name.startswith(prefix)]

    def sweep(self) -> int:
        """Remove lock files that nobody holds."""
        removed = 0
        for path in self._files():
            try:
                if is_free(path) and (descriptor := try_lock(path)) is not None:
                    unlock_and_remove(path, descriptor)
                    removed += 1
            except OSError as error:
                _log.info("the file of a lease that nobody holds stays: %s (%s)", path, error)
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


def _note_holder(descriptor: int, name: str, owner: str) -> LeaseInfo:
    """Write into a file that is locked who has it."""
    earlier = decode_info(os.pread(descriptor, 65536, 0))
    info = new_info(name, owner, earlier.token if earlier else 0, None)
    # A reader in between finds an empty file, which it takes for a holder that has just come.
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, encode_info(info), 0)
    return info
