"""Small objects as files on a local disk: written whole under another name, then renamed into place.

Without the object-store library, whose threads cost more than such a file does: every small write puts one. And with as
few calls of the operating system as can be: at each of them another thread may take the interpreter, and who reads
beside many writers waits until it gives it back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_SMALL = 64 << 10
_PIECE = 4 << 20
_MOST_FOLDERS_LOST = 100


def read_file(path: str) -> bytes:
    """The content of a file."""
    return b"".join(read_pieces(path))


def read_pieces(path: str) -> Iterator[bytes]:
    """The content of a file of any size, in pieces; most files are one."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = _SMALL
        while piece := os.read(descriptor, size):
            yield piece
            size = _PIECE
    finally:
        os.close(descriptor)


def write_file(path: str, data: bytes, *, replace: bool) -> None:
    """Put `data` at `path`; who reads it sees the old file or the new one. `FileExistsError` unless it may `replace`.

    The caller holds the lock of the object, so nobody makes it between the look and the renaming.
    """
    # The name says that it is a temporary file: `ObjectStore.remove_temporaries` finds it if this process dies.
    temporary = f"{path}#{int.from_bytes(os.urandom(7))}"
    descriptor = _create(temporary)
    try:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)
        if not replace and os.path.lexists(path):
            raise FileExistsError(path)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _create(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    for _ in range(_MOST_FOLDERS_LOST):
        try:
            return os.open(path, flags, 0o666)
        except FileNotFoundError:
            # Somebody who removes empty folders may take the new one, or one on the way to it.
            with contextlib.suppress(FileNotFoundError):
                os.makedirs(os.path.dirname(path), exist_ok=True)
    return os.open(path, flags, 0o666)
