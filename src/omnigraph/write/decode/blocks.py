"""Bytes to blocks of whole lines as Arrow text, without copying line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa

BLOCK_BYTES = 16 << 20
"""How much text is decoded at a time: large enough for Arrow's threads, small enough to keep memory flat."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_blocks(stream: IO[bytes], block_bytes: int = BLOCK_BYTES) -> Iterator[pa.Array]:
    """The lines of a stream, in blocks; each line keeps its line feed. The last line may have none."""
    rest = b""
    first = True
    while True:
        data = stream.read(block_bytes)
        if first:
            data, first = data.removeprefix(_BYTE_ORDER_MARK), False
        if not data:
            break
        cut = data.rfind(b"\n") + 1
        if not cut:
            rest += data
            continue
        yield as_lines(rest + data[:cut] if rest else data[:cut] if cut < len(data) else data)
        rest = data[cut:]
    if rest:
        yield as_lines(rest)


def as_lines(data: bytes) -> pa.Array:
    """Text as one value per line, over the very bytes."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    tail = 0 if len(ends) and ends[-1] == len(data) - 1 else 1
    offsets = np.empty(len(ends) + 1 + tail, np.int32)
    offsets[0] = 0
    offsets[1 : len(ends) + 1] = ends + 1
    if tail:
        offsets[-1] = len(data)
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
