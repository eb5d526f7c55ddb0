"""New ids for whole columns: ULIDs that sort in the order in which they were made."""

from __future__ import annotations

import secrets
import time

import numpy as np
import pyarrow as pa

LENGTH = 26
_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)
_RANDOM_BITS = 80


def new_ulids(count: int) -> pa.Array:
    """`count` new ULIDs: one instant, a random start, then counting up, so they never repeat and compress well.

    The lowest 40 bits count, the 40 above them are random, so that two calls of one millisecond do not meet.
    """
    if count == 0:
        return pa.array([], pa.string())
    milliseconds = time.time_ns() // 1_000_000
    # Leave the counter room: its top bit starts clear, so it cannot run over into the random part.
    head = (milliseconds << 40) | secrets.randbits(40)
    counter = secrets.randbits(39) + np.arange(count, dtype=np.uint64)
    text = np.empty((count, LENGTH), np.uint8)
    for position in range(18):
        shift = 5 * (17 - position)
        text[:, position] = _ALPHABET[(head >> shift) & 31]
    for position in range(18, LENGTH):
        low = np.uint64(5 * (LENGTH - 1 - position))
        text[:, position] = _ALPHABET[(counter >> low) & np.uint64(31)]
    offsets = np.arange(0, (count + 1) * LENGTH, LENGTH, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
