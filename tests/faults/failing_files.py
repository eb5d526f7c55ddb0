"""A file system that fails: every file operation of the storage package counted, and chosen ones made to fail.

The storage package is the only one that touches files: through the operating system (locks), through obstore (small
objects) and through Lance (tables). Each of these calls passes through here while a `Disk` is plugged in. A call fails
in the words of the library that it goes to, before it does anything, or after it has done it (an answer that was lost).
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import lance
import obstore
from lance.dataset import LanceDataset, LanceScanner
from lance.fragment import LanceFragment
from obstore.exceptions import GenericError

from omnigraph.storage.handles import creating, newest
from omnigraph.storage.leases import lease_locks
from omnigraph.storage.objects import objects, os_locks
from omnigraph.storage.staging import distributed, staging

WRITES = frozenset({"mkdir", "create", "pwrite", "put", "write_fragments", "commit", "create_branch", "delete_rows"})
OPENS = frozenset({"create", "open", "read_bytes", "get", "put", "list", "head", "dataset", "to_reader", "commit"}) | {
    "write_fragments",
    "delete_rows",
    "create_branch",
}

CAUSES = {
    "ENOSPC": (errno.ENOSPC, WRITES),
    "EDQUOT": (errno.EDQUOT, WRITES),
    "EMFILE": (errno.EMFILE, OPENS),
    "EIO": (errno.EIO, None),
}
"""What each cause refuses: a full disk what writes, a lack of descriptors what opens, a bad disk anything."""


@dataclass
class Disk:
    """Counts operations and fails those that `fails` chooses, by number and name."""

    fails: Callable[[int, str], bool] = lambda number, name: False
    code: int = errno.EIO
    after: bool = False
    operations: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def passes(self, name: str) -> bool:
        """Take note of an operation; whether it may go on."""
        with self._lock:
            self.operations.append(name)
            return not self.fails(len(self.operations), name)


def full_from(number: int, cause: str) -> Disk:
    """From operation `number` on, everything that the cause refuses fails."""
    code, names = CAUSES[cause]
    return Disk(lambda n, name: n >= number and (names is None or name in names), code)


def failing_once(number: int, cause: str, *, after: bool = False) -> Disk:
    """Only operation `number` fails."""
    return Disk(lambda n, name: n == number, CAUSES[cause][0], after=after)


@contextmanager
def plugged(disk: Disk) -> Iterator[Disk]:
    """Every file operation of this process goes to `disk` meanwhile."""
    with contextlib.ExitStack() as stack:

        def put_in(owner: Any, name: str, value: Any) -> None:
            before = owner.__dict__[name]
            setattr(owner, name, value)
            stack.callback(setattr, owner, name, before)

        def system(code: int) -> OSError:
            return OSError(code, os.strerror(code))

        def of_lance(code: int) -> OSError:
            return OSError(f"LanceError(IO): Generic LocalFileSystem error: {os.strerror(code)} (os error {code})")

        def of_obstore(code: int) -> Exception:
            return GenericError(f"Generic LocalFileSystem error: {os.strerror(code)} (os error {code})")

        def guarded(name: str, call: Callable[..., Any], error: Callable[[int], Exception]) -> Callable[..., Any]:
            def guard(*args: Any, **options: Any) -> Any:
                if disk.passes(name):
                    return call(*args, **options)
                if disk.after:
                    call(*args, **options)
                raise error(disk.code)

            return guard

        fake_os = SimpleNamespace(**{name: getattr(os, name) for name in dir(os) if not name.startswith("_")})
        fake_os.open = lambda path, flags, *rest, **options: guarded(
            "create" if flags & os.O_CREAT else "open", os.open, system
        )(path, flags, *rest, **options)
        for name in ("pread", "pwrite", "ftruncate", "unlink", "stat"):
            setattr(fake_os, name, guarded(name, getattr(os, name), system))
        for module in (os_locks, lease_locks, newest):
            put_in(module, "os", fake_os)
        fake_lock = SimpleNamespace(
            **{name: getattr(os_locks.fcntl, name) for name in ("LOCK_EX", "LOCK_SH", "LOCK_NB", "LOCK_UN")},
            flock=guarded("flock", os_locks.fcntl.flock, system),
        )
        put_in(os_locks, "fcntl", fake_lock)
        fake_obstore = SimpleNamespace(
            **{name: guarded(name, getattr(obstore, name), of_obstore) for name in ("get", "head", "list", "delete")},
            put=guarded("put", obstore.put, of_obstore),
        )
        put_in(objects, "obstore", fake_obstore)
        put_in(objects, "write_file", guarded("put", objects.write_file, system))
        put_in(lance, "dataset", guarded("dataset", lance.dataset, of_lance))
        for owner, name in (
            (LanceScanner, "to_reader"),
            (LanceDataset, "create_branch"),
            (LanceFragment, "delete_rows"),
        ):
            put_in(owner, name, guarded(name, owner.__dict__[name], of_lance))
        put_in(LanceDataset, "commit", staticmethod(guarded("commit", LanceDataset.commit, of_lance)))
        for module, name in (
            (staging, "lance_write_fragments"),
            (distributed, "lance_write_fragments"),
            (creating, "write_fragments"),
        ):
            put_in(module, name, guarded("write_fragments", module.__dict__[name], of_lance))
        yield disk
