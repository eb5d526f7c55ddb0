"""Look-ups by key that come at the same time, run together in one thread.

A look-up takes about a millisecond. Given a thread each, many of them at once spend most of it in handing over between
threads. So the first one is run at once, those that come meanwhile wait, and the next round runs all that wait: it
looks at the branch once, reads their rows at once, and wakes the event loop once. Nothing else is run here, so nobody
waits for a long read; and where a round takes long, because storage does, the next begins beside it.

Clients who were answered together ask again together, one right after the other. So behind a round of several the next
one is not begun by the first of them, with the others left to wait for it, but when all who have come were heard.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from starlette.requests import Request

from omnigraph.graph import Graph
from omnigraph.handle.asked import ReadAsk
from omnigraph.handle.asking import ask_together
from omnigraph.read.result.result import Result
from omnigraph.read.state.control import CancelToken

MOST_TOGETHER = 64
"""Reads of one round."""

PATIENCE = 0.025
"""Seconds that a read waits for a round of others before it begins one beside it."""

CROWD = 3
"""Reads of a round behind which others are waited for."""

GATHERED = 3
"""Turns of the event loop behind a crowd before its next round begins: answers go out in one, requests come in with the
next, and reach their round in the one after it. Where nobody comes that takes some hundredths of a millisecond."""

SOON = 0.05
"""Seconds before somebody looks whether the clients of a round are still there."""

KNOWN_QUERIES = 256
"""Queries that are remembered to be look-ups."""

LONGEST_TEXT = 1 << 16
"""Characters of a text that is remembered; a look-up is a line or two, or one of a file of stored queries."""

Begun = tuple[bytes, Iterator[bytes] | None]
"""The first bytes of a response, and what makes the rest of them; None when that was all."""


@dataclass(slots=True, eq=False)
class Waiting:
    """A read that waits for its round, and then for its answer."""

    request: Request
    graph: Graph
    ask: ReadAsk
    begin: Callable[[Result], Begun]
    token: CancelToken
    answer: asyncio.Future[Begun | None]
    found: Begun | Exception | None = None


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query of a graph: the text, and which query of it."""

    graph_id: str
    text: str
    name: str | None


class Lookups:
    """Which queries are look-ups by key: that is known once one has been run. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[NamedQuery, None] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: NamedQuery) -> bool:
        return key in self._known

    def note(self, key: NamedQuery, is_one: bool) -> None:
        """Remember, or forget, that a query is a look-up."""
        if (key in self._known) == is_one or len(key.text) > LONGEST_TEXT:
            return
        with self._lock:
            if is_one:
                self._known[key] = None
                while len(self._known) > KNOWN_QUERIES:
                    self._known.popitem(last=False)
            else:
                self._known.pop(key, None)


class Rounds:
    """The rounds of one server process. Everything but `_run` happens on the event loop."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._waiting: list[Waiting] = []
        self._under_way: list[list[Waiting]] = []
        self._impatient: asyncio.TimerHandle | None = None
        self._last = 0
        self._gathering: asyncio.Handle | None = None

    async def read(
        self, request: Request, graph: Graph, ask: ReadAsk, begin: Callable[[Result], Begun]
    ) -> Begun | None:
        """The answer of a look-up; None when the query proves to be something else, and has not been run."""
        token = CancelToken()
        loop = asyncio.get_running_loop()
        one = Waiting(request, graph, replace(ask, cancel=token), begin, token, loop.create_future())
        self._waiting.append(one)
        if self._has_room():
            self._start_soon(loop)
        elif self._impatient is None:
            self._impatient = loop.call_later(PATIENCE, self._start, loop)
        try:
            return await one.answer
        finally:
            token.cancel()

    def _has_room(self) -> bool:
        """Whether a round may begin now: beside a single read there is room for another, and a third one waits."""
        return not self._under_way or (len(self._under_way) == 1 and len(self._under_way[0]) == 1)

    def _start_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a round: now, or behind a crowd when those have been heard who come too."""
        if self._last < CROWD or len(self._waiting) >= MOST_TOGETHER:
            self._start(loop)
        elif self._gathering is None:
            self._gathering = loop.call_soon(self._gather, loop, GATHERED)

    def _gather(self, loop: asyncio.AbstractEventLoop, turns: int) -> None:
        if turns and self._waiting:
            self._gathering = loop.call_soon(self._gather, loop, turns - 1)
        else:
            self._gathering = None
            self._start(loop)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a round with those who wait."""
        if self._impatient is not None:
            self._impatient.cancel()
            self._impatient = None
        group, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
        if not group:
            return
        self._under_way.append(group)
        self._last = len(group)
        if self._waiting:
            self._impatient = loop.call_later(PATIENCE, self._start, loop)
        late = loop.call_later(SOON, _watch, group)
        self._threads.submit(self._run, loop, group, late)

    def _run(self, loop: asyncio.AbstractEventLoop, group: list[Waiting], late: asyncio.TimerHandle) -> None:
        """Run a round in its thread."""
        try:
            for graph in dict.fromkeys(one.graph for one in group):
                _answer(graph, [one for one in group if one.graph is graph])
        finally:
            loop.call_soon_threadsafe(self._end, loop, group, late)

    def _end(self, loop: asyncio.AbstractEventLoop, group: list[Waiting], late: asyncio.TimerHandle) -> None:
        late.cancel()
        self._under_way.remove(group)
        if self._waiting and self._has_room():
            self._start_soon(loop)
        for one in group:
            if one.answer.done():
                continue
            if isinstance(one.found, Exception):
                one.answer.set_exception(one.found)
            else:
                one.answer.set_result(one.found)


def _answer(graph: Graph, group: Sequence[Waiting]) -> None:
    """Run the look-ups of one graph. What proves to be none is left as it is, unless it is alone."""
    for one, read in zip(group, ask_together(graph, [one.ask for one in group]), strict=True):
        try:
            if isinstance(read, Exception):
                one.found = read
            elif len(group) == 1 or read.row is not None:
                one.token.check()
                one.found = one.begin(read.result())
        except Exception as error:
            one.found = error


def _watch(group: Sequence[Waiting]) -> None:
    """Cancel those reads of a round that takes long whose clients go."""
    for one in group:
        if not one.answer.done():
            watching = asyncio.ensure_future(_cancel_when_gone(one))
            one.answer.add_done_callback(partial(_stop_watching, watching))


def _stop_watching(watching: asyncio.Task[None], _: object) -> None:
    watching.cancel()


async def _cancel_when_gone(one: Waiting) -> None:
    while (await one.request.receive())["type"] != "http.disconnect":
        pass
    one.token.cancel()
