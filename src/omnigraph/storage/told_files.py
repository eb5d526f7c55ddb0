"""Small files by which processes on one disk tell each other what they would otherwise read from tables.

What they say is never the only place where it stands, and nobody waits for it: a file that is gone, half written or of
another program is none. Whoever reads one has to make sure that it speaks of what is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from omnigraph.storage.constants import OS_LOCK_DIRECTORY, TOLD_SUFFIX
from omnigraph.storage.objects.local_files import read_file
from omnigraph.storage.uri import Root
from omnigraph.storage.values import TableVersion

_DIGEST_SIZE = 16


class ToldFiles:
    """The files of one graph. On an object store there are none: to read one takes as long as to read the table."""

    def __init__(self, root: Root) -> None:
        self._root = Path(root.path) if root.is_local else None

    def read(self, name: str) -> bytes | None:
        """What was told under a name; None when nothing was, or it is not whole."""
        if self._root is None:
            return None
        try:
            data = read_file(str(self._path(self._root, name)))
        except OSError:
            return None
        return data[_DIGEST_SIZE:] if _digest(data[_DIGEST_SIZE:]) == data[:_DIGEST_SIZE] else None

    def write(self, name: str, content: bytes) -> None:
        """Tell something, in the place of what was told before. Trouble with it is nobody's business."""
        if self._root is None:
            return
        with contextlib.suppress(OSError):
            # Written in its place, without a name of its own first: a reader in between finds that it is not whole.
            descriptor = os.open(self._path(self._root, name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                os.ftruncate(descriptor, os.pwrite(descriptor, _digest(content) + content, 0))
            finally:
                os.close(descriptor)

    def describes(self, table: TableVersion) -> str | None:
        """What tells a version of a table from any other that ever had its number: the digest of the file that
        describes it. That names the transaction, and so no two commits have the same one."""
        if self._root is None:
            return None
        try:
            return _digest(read_file(f"{self._root}/{table.manifest_file}")).hex()
        except OSError:
            return None

    def _path(self, root: Path, name: str) -> Path:
        return root / OS_LOCK_DIRECTORY / f"{name}{TOLD_SUFFIX}"


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_SIZE).digest()
