"""Connections in even shares among the workers of a server.

Workers listen on one socket, and whoever wakes first would take all connections that wait there: with few clients, all
of them often went to one worker while the other had nothing to do. So each takes one at a time, and who has more
connections than another leaves the next one to that other, for as long as a busy worker may need to come and take it.

How many each has stands in a file that all of them have mapped. A worker has its line of it for as long as it holds a
lock, which the system releases when the worker dies, however it does.
"""

from __future__ import annotations

import asyncio
import fcntl
import mmap
import os
import socket
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

VARIABLE = "OMNIGRAPH_SERVER_SHARES"
"""How a worker process is told where the numbers stand."""

LOOP = f"{__name__}:EvenLoop"
"""What the server below is told to run on, in a worker."""

PATIENCE = 0.01
"""Seconds that a connection is left to a worker with fewer of them."""

NO_ROOM = 1.0
"""Seconds before it is tried again when the system has no room for another connection."""

MOST_WORKERS = 256
"""Lines of the file. Workers beyond them take what they get."""

_LINE = struct.Struct("=q")
_NOBODY = -1


class Shares:
    """How many connections each worker has, seen from one of them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b")
        self._shared = mmap.mmap(self._file.fileno(), MOST_WORKERS * _LINE.size)
        self._own = next((line for line in range(MOST_WORKERS) if self._lock(line)), None)
        self._count = 0
        self._say()

    @staticmethod
    def create(path: Path) -> None:
        """The file, before there is any worker."""
        path.write_bytes(_LINE.pack(_NOBODY) * MOST_WORKERS)

    def took(self) -> None:
        """This worker has a connection more."""
        self._count += 1
        self._say()

    def lost(self) -> None:
        """This worker has a connection less."""
        self._count -= 1
        self._say()

    def left(self) -> None:
        """This worker takes no more connections."""
        if self._own is not None:
            self._write(self._own, _NOBODY)
            self._own = None

    def others_have_fewer(self) -> bool:
        """Whether the next connection is another worker's."""
        return any(0 <= count < self._count for count in _LINE_ARRAY.unpack_from(self._shared))

    def forget_the_dead(self) -> None:
        """Strike out workers that were killed: nobody holds their lock any more."""
        for line, count in enumerate(_LINE_ARRAY.unpack_from(self._shared)):
            if line != self._own and 0 <= count < self._count and self._lock(line):
                self._write(line, _NOBODY)
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, line)

    def _lock(self, line: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, line)
        except OSError:
            return False
        return True

    def _say(self) -> None:
        if self._own is not None:
            self._write(self._own, self._count)

    def _write(self, line: int, count: int) -> None:
        _LINE.pack_into(self._shared, line * _LINE.size, count)


_LINE_ARRAY = struct.Struct(f"={MOST_WORKERS}q")


@cache
def shares_of_this_process() -> Shares | None:
    """The shares of the workers that this one is among; None where there is only one."""
    path = os.environ.get(VARIABLE)
    return Shares(Path(path)) if path else None


class EvenLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers take an even share of the connections that come to a socket."""

    async def create_server(  # type: ignore[override]  # as the server below calls it in a worker
        self, protocol_factory: Callable[[], asyncio.Protocol], *, sock: socket.socket, backlog: int, **_: Any
    ) -> Taking:
        """Listen on a socket that other processes listen on too."""
        sock.setblocking(False)
        sock.listen(backlog)
        shares = shares_of_this_process()
        assert shares is not None, "this is a worker"
        return Taking(self, protocol_factory, sock, shares)


class Taking:
    """A socket from which connections are taken: what stands for the loop's own kind of server."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make_protocol: Callable[[], asyncio.Protocol],
        listener: socket.socket,
        shares: Shares,
    ) -> None:
        self._loop = loop
        self._make_protocol = make_protocol
        self._listener = listener
        self._shares = shares
        self._later: asyncio.TimerHandle | None = None
        self._begun: set[asyncio.Task[None]] = set()
        loop.add_reader(listener, self._ready)

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """Where it listens."""
        return (self._listener,)

    def close(self) -> None:
        """Take no more."""
        self._loop.remove_reader(self._listener)
        if self._later is not None:
            self._later.cancel()
        self._shares.left()

    async def wait_closed(self) -> None:
        """It is closed at once; what becomes of its connections is for the server above to see to."""

    def _ready(self) -> None:
        """Somebody waits: take him, or leave him to another for a while."""
        if not self._shares.others_have_fewer():
            self._take()
            return
        self._loop.remove_reader(self._listener)
        self._later = self._loop.call_later(PATIENCE, self._resume)

    def _resume(self) -> None:
        """Take who still waits, whoever has more: he has waited long enough."""
        self._later = None
        self._loop.add_reader(self._listener, self._ready)
        self._take(in_vain=True)

    def _take(self, in_vain: bool = False) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:
            # The system would go on saying that somebody waits.
            self._loop.remove_reader(self._listener)
            self._later = self._loop.call_later(NO_ROOM, self._resume)
            return
        if in_vain:
            self._shares.forget_the_dead()
        connection.setblocking(False)
        self._shares.took()
        task = self._loop.create_task(self._begin(connection))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def _begin(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except OSError:
            # It was gone before it began.
            self._shares.lost()
            connection.close()
