"""Engine calls off the event loop: pools of threads, calls that stop when their client goes, streams made in threads.

Reads and writes have threads of their own: writers that wait for their turn must not keep readers from theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from omnigraph.errors import QueryTimeout
from omnigraph.read.state.control import CancelToken
from omnigraph.server.calls.admission import Ticket
from omnigraph.server.calls.growing_file import GrowingFile
from omnigraph.server.calls.rounds import Lookups, Rounds

T = TypeVar("T")

_WRITTEN_AT_ONCE = 1 << 20
EARLY_LOADS = 2
"""Loads that may be under way while their records still come in. Each keeps a thread for as long as its client sends;
others begin when their records are all there."""

SOON = 0.05
"""Seconds before somebody looks whether the client is still there; most calls are done by then."""


class Threads:
    """The threads of one server process."""

    def __init__(self, readers: int, writers: int) -> None:
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="omnigraph-read")
        self._writers = ThreadPoolExecutor(writers, thread_name_prefix="omnigraph-write")
        self._early = ThreadPoolExecutor(EARLY_LOADS, thread_name_prefix="omnigraph-load")
        self._early_loads = 0
        self.lookups = Lookups()
        self.rounds = Rounds(self._readers)

    async def read(self, request: Request, work: Callable[[CancelToken], T], seconds: float | None = None) -> T:
        """Run a read. When the client goes, it is cancelled; one that finds no thread within its seconds is not run."""
        token = CancelToken()
        begun = False

        def run() -> T:
            nonlocal begun
            begun = True
            return work(token)

        running = asyncio.get_running_loop().run_in_executor(self._readers, run)
        try:
            done, _ = await asyncio.wait({running}, timeout=SOON)
            if not done:
                gone = asyncio.ensure_future(_until_gone(request))
                try:
                    either: set[asyncio.Future[Any]] = {running, gone}
                    left = None if seconds is None else max(0.0, seconds - SOON)
                    done, _ = await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                    if not done and not begun and running.cancel():
                        token.cancel()  # for the case that it has just begun
                        raise QueryTimeout(
                            f"the read could not begin within {seconds:g} s, since others are under way; try again, or "
                            "give it more time",
                            timeout=seconds,
                        )
                    if not done:
                        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    gone.cancel()
        finally:
            if not running.done():
                token.cancel()
        return await running

    async def write(self, work: Callable[[], T]) -> T:
        """Run a write. Once it has begun it comes to its end, whether or not anybody waits for it."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writers, work))

    def begin(self, work: Callable[[], T]) -> asyncio.Future[T] | None:
        """Begin a load whose records still come in; None when enough of them are under way."""
        if self._early_loads >= EARLY_LOADS:
            return None
        self._early_loads += 1
        running = asyncio.get_running_loop().run_in_executor(self._early, work)
        running.add_done_callback(self._early_load_ended)
        return running

    def _early_load_ended(self, _: object) -> None:
        self._early_loads -= 1

    @asynccontextmanager
    async def kept(self, file: GrowingFile) -> AsyncIterator[Callable[[bytes], Awaitable[None]]]:
        """A call that writes pieces to a file, a megabyte at a time, while the next ones come in."""
        held: list[bytes] = []
        size = 0
        writing: asyncio.Future[int] | None = None

        async def written() -> None:
            if writing is not None:
                await asyncio.shield(writing)

        async def keep(piece: bytes) -> None:
            nonlocal held, size, writing
            held.append(piece)
            size += len(piece)
            if size >= _WRITTEN_AT_ONCE:
                await written()
                writing = self._written(file, held)
                held, size = [], 0

        try:
            yield keep
            await written()
            writing = self._written(file, held)
        finally:
            await written()  # nobody may close the file before

    def _written(self, file: GrowingFile, pieces: list[bytes]) -> asyncio.Future[int]:
        return asyncio.get_running_loop().run_in_executor(self._writers, lambda: file.write(b"".join(pieces)))

    async def pull(self, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        """The pieces of an iterator that blocks, each made when the one before it has been taken."""
        loop = asyncio.get_running_loop()
        while (piece := await loop.run_in_executor(self._readers, next, pieces, None)) is not None:
            yield piece

    def close(self) -> None:
        """Wait for what is running."""
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._early.shutdown(wait=True)
        self._writers.shutdown(wait=True)


class HeldStream(StreamingResponse):
    """A streamed response that keeps its place in the admission until its last byte."""

    def __init__(self, pieces: AsyncIterator[bytes], ticket: Ticket, media_type: str) -> None:
        super().__init__(pieces, media_type=media_type)
        self._ticket = ticket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ticket.release()


def in_chunks(lines: Iterator[bytes], size: int = 1 << 18) -> Iterator[bytes]:
    """Small pieces put together: a hop between threads for each line would cost more than the line."""
    held: list[bytes] = []
    length = 0
    for line in lines:
        held.append(line)
        length += len(line)
        if length >= size:
            yield b"".join(held)
            held, length = [], 0
    if held:
        yield b"".join(held)


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
