"""Threads of a server share heaps, so that what one gives back another can have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.server.process.few_heaps import HEAPS

COUNT = """
import ctypes, sys, threading
from omnigraph.server.process.few_heaps import share_heaps
if sys.argv[2] == "shared":
    share_heaps()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier(12)
def use():
    together.wait()
    for _ in range(2000):
        libc.free(ctypes.c_void_p(libc.malloc(20_000)))
    together.wait()
threads = [threading.Thread(target=use) for _ in range(12)]
[each.start() for each in threads]
[each.join() for each in threads]
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


def heaps(place: Path, how: str) -> int:
    subprocess.run([sys.executable, "-c", COUNT, str(place), how], check=True)
    return place.read_text().count("<heap nr=")


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of the C library of Linux")
def test_threads_share_heaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert heaps(tmp_path / "own", "own") > HEAPS
    assert heaps(tmp_path / "shared", "shared") <= HEAPS
    monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    assert HEAPS < heaps(tmp_path / "told", "shared") <= 4, "what the environment says stays"
