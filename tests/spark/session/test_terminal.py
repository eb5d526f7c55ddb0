"""A load on Spark as a person at a terminal sees it: a bar that tells how far it is, and Ctrl-C that ends it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from omnigraph.ledger.store import create_store, open_store

SLOW = "spark.load.written=sleep:1.5"


def read_until(terminal: int, wanted: bytes | None, seconds: float) -> bytes:
    """What the terminal shows until some text appears; until the program ends when `wanted` is None."""
    shown = b""
    deadline = time.monotonic() + seconds
    os.set_blocking(terminal, False)
    while wanted is None or wanted not in shown:
        assert time.monotonic() < deadline, f"{wanted!r} is not among {shown[-2000:]!r}"
        try:
            data = os.read(terminal, 1 << 16)
        except BlockingIOError:
            time.sleep(0.05)
            continue
        except OSError:  # the other end is closed
            data = b""
        if not data:
            assert wanted is None, f"the program ended without showing {wanted!r}: {shown[-2000:]!r}"
            return shown
        shown += data
    return shown


@pytest.mark.spark
@pytest.mark.slow
def test_a_load_shows_its_progress_and_ctrl_c_ends_it_with_nothing_published(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph.omni")
    with create_store(uri, "node Person { slug: String @key }") as store:
        before = store.snapshot().head
    inputs = tmp_path / "in"
    inputs.mkdir()
    for part in range(12):
        records = [{"type": "Person", "data": {"slug": f"p{part}-{n}"}} for n in range(50)]
        (inputs / f"{part:02d}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    program = "from omnigraph.cli.main import run; run()"
    command = ["-c", program, "load", "--data", str(inputs), "--mode", "append", "--engine", "spark", uri]
    environment = {
        **os.environ,
        "OMNIGRAPH_SPARK_MASTER": "local[2]",
        "OMNIGRAPH_SPARK_CONF": f"spark.driver.memory=600m,spark.executorEnv.OMNIGRAPH_FAILPOINTS={SLOW}",
        "TERM": "xterm",
    }
    terminal, other_end = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 160, 0, 0))
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C means something
    )
    os.close(other_end)
    shown = read_until(terminal, b" records ", 300)
    shown += read_until(terminal, b"tasks ", 60)
    pressed = time.monotonic()
    os.write(terminal, b"\x03")
    rest = read_until(terminal, None, 180)
    assert process.wait(timeout=30) == 130, rest[-2000:]
    os.close(terminal)
    assert time.monotonic() - pressed < 150
    for part in (b"load: decoding, checking and writing", b"kB", b"/s"):
        assert part in shown, shown[-2000:]
    assert b"cancelled" in rest
    assert b"Traceback" not in rest
    with open_store(uri) as store:
        assert store.snapshot().head == before
        assert [entry.path for entry in store.objects.list("nodes") if "/data/" in entry.path] == []
        assert list(store.objects.list("__recovery")) == []
