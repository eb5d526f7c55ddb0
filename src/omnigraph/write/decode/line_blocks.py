"""Bytes to blocks of whole lines as Arrow text, without copying line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequest

BLOCK_BYTES = 8 << 20
"""How much text is decoded at a time: large enough for Arrow's threads, small enough to keep memory flat."""

LONGEST_LINE = 256 << 20
"""Bytes of one line. Beyond it the text is not a stream of records."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineTooLong(BadRequest):
    """A line that no memory should be filled with."""


def line_blocks(stream: IO[bytes], block_bytes: int | None = None) -> Iterator[pa.Array]:
    """The lines of a stream, in blocks; each line keeps its line feed. The last line may have none."""
    block_bytes = block_bytes or BLOCK_BYTES
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
            if len(rest) > LONGEST_LINE:
                raise LineTooLong(
                    f"a line is longer than {LONGEST_LINE:,} bytes; write one record per line, or each record over "
                    "several lines"
                )
            continue
        yield as_lines(b"".join((rest, memoryview(data)[:cut])) if rest or cut < len(data) else data)
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
