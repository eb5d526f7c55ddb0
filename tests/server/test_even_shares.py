"""Connections in even shares: who has more leaves the next one to another, and not for long."""

from __future__ import annotations

import asyncio
import errno
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.server.launch import listen
from omnigraph.server.process import even_shares
from omnigraph.server.process.even_shares import Shares, Taking

ANOTHER = """
import sys
from pathlib import Path
from omnigraph.server.process.even_shares import Shares
shares = Shares(Path(sys.argv[1]))
print("there", flush=True)
for line in sys.stdin:
    getattr(shares, line.strip())()
    print("done", flush=True)
"""


class Another:
    """Another worker: a process that has a line of the file."""

    def __init__(self, path: Path) -> None:
        words = [sys.executable, "-c", ANOTHER, str(path)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._told()

    def do(self, call: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{call}\n")
        self.process.stdin.flush()
        self._told()

    def _told(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Shares.create(tmp_path / "shares")
    return tmp_path / "shares"


@pytest.fixture
def another(path: Path) -> Iterator[Another]:
    found = Another(path)
    yield found
    found.kill()


def test_who_has_more_knows_it(path: Path, another: Another) -> None:
    own = Shares(path)
    assert not own.others_have_fewer()
    own.took()
    assert own.others_have_fewer()
    another.do("took")
    assert not own.others_have_fewer()
    own.took()
    own.lost()
    assert not own.others_have_fewer()
    another.do("lost")
    assert own.others_have_fewer()
    another.do("left")
    assert not own.others_have_fewer(), "it takes no more connections"


def test_nothing_is_left_to_the_dead(path: Path, another: Another) -> None:
    own = Shares(path)
    own.took()
    own.forget_the_dead()
    assert own.others_have_fewer(), "it is alive"
    another.kill()
    assert own.others_have_fewer(), "nobody has looked yet"
    own.forget_the_dead()
    assert not own.others_have_fewer()
    third = Another(path)
    assert own.others_have_fewer(), "who comes after it has a line again"
    third.kill()


class Said:
    """Shares that say what a test wants."""

    def __init__(self, others_have_fewer: bool) -> None:
        self.fewer = others_have_fewer
        self.count = 0
        self.looked = 0

    def others_have_fewer(self) -> bool:
        return self.fewer

    def took(self) -> None:
        self.count += 1

    def lost(self) -> None:
        self.count -= 1

    def left(self) -> None:
        self.fewer = False

    def forget_the_dead(self) -> None:
        self.looked += 1


class Greeting(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        transport.write(b"hello")
        transport.close()


def seconds_until_greeted(listener: socket.socket, shares: Any) -> float:
    async def greeted() -> float:
        loop = asyncio.get_running_loop()
        taking = Taking(loop, Greeting, listener, shares)
        started = time.perf_counter()
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        assert await asyncio.wait_for(reader.read(), 20) == b"hello"
        took = time.perf_counter() - started
        writer.close()
        taking.close()
        await taking.wait_closed()
        return took

    return asyncio.run(greeted())


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with listen("127.0.0.1", 0) as found:
        found.setblocking(False)
        found.listen(8)
        yield found


def test_a_connection_is_taken_at_once_or_after_a_while(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(even_shares, "PATIENCE", 0.3)
    mine, another = Said(False), Said(True)
    assert seconds_until_greeted(listener, mine) < 0.3
    assert (mine.count, mine.looked) == (1, 0)
    assert seconds_until_greeted(listener, another) >= 0.3
    assert (another.count, another.looked) == (1, 1), "who did not come may be dead"


def test_what_is_left_to_another_is_taken_by_the_other(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(even_shares, "PATIENCE", 20.0)
    patient, free = Said(True), Said(False)

    async def greeted() -> None:
        loop = asyncio.get_running_loop()
        both = [Taking(loop, Greeting, each, shares) for each, shares in ((listener, patient), (listener.dup(), free))]  # type: ignore[arg-type]
        for _ in range(3):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            assert await asyncio.wait_for(reader.read(), 10) == b"hello"
            writer.close()
        for each in both:
            each.close()
            each.sockets[0].close()

    asyncio.run(greeted())
    assert (patient.count, free.count) == (0, 3)


def test_where_there_is_no_room_it_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(even_shares, "NO_ROOM", 0.2)

    class Full(socket.socket):
        refused = 0

        def accept(self) -> Any:
            if not self.refused:
                self.refused += 1
                raise OSError(errno.EMFILE, "no room")
            return super().accept()

    with Full(socket.AF_INET, socket.SOCK_STREAM) as full:
        full.bind(("127.0.0.1", 0))
        full.setblocking(False)
        full.listen(8)
        assert seconds_until_greeted(full, Said(False)) >= 0.2
        assert full.refused == 1
