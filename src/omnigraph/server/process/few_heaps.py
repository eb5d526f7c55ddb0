"""Few heaps for the many threads of a process that does nothing but serve.

The C library gives threads heaps of their own, eight for each core, so that they need not wait for each other when they
take memory. What a thread gave back stays in its heap, and the others cannot have it: with some eighty threads that
write in turns, twice as much memory was kept for nobody as was in use, and it went on growing. With few heaps what one
thread gives back the next one takes; writes took no longer.
"""

from __future__ import annotations

import ctypes
import os

HEAPS = 2
"""Heaps of the process, the first one included."""

_M_ARENA_MAX = -8


def share_heaps() -> None:
    """Set it up, before there are many threads. What the environment says (`MALLOC_ARENA_MAX`) stays as it is."""
    if "MALLOC_ARENA_MAX" in os.environ:
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, HEAPS)
