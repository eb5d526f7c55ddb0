"""Connections whose requests begin in time: who opens one and sends nothing, or half a head, does not keep it for ever.

The server below closes connections that are idle between requests, and the gate ends bodies that do not go on. Between
them is the head of a request, which nobody waits for in a thread but which keeps a connection open.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from omnigraph.server.process.even_shares import shares_of_this_process

HEAD_SECONDS = 30.0
"""How long the head of a request may take, from the first byte of it, or from when the connection was made."""

MOST_HEAD_BYTES = 1 << 16
"""Bytes that a head may have. The slower of the two parsers has such a bound of its own, the quicker one has none."""

PROTOCOL = f"{__name__}:PunctualHeads"
"""What the server below is told to use."""


class PunctualHeads(AutoHTTPProtocol):  # type: ignore[valid-type, misc]  # whichever is installed
    """The protocol of the server below, with a clock for heads."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._clock: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """The first head begins to be late."""
        super().connection_made(transport)
        self._set_clock()

    def data_received(self, data: bytes) -> None:
        """More has come: of a head that is not whole yet, or of a request that is under way."""
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self.send_400_response("The head of the request is too long.")
                return
        super().data_received(data)
        self._set_clock()

    def on_message_begin(self) -> None:
        """A head begins: what the quicker parser says."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """A head was all there."""
        self._in_head = False
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody waits any more."""
        super().connection_lost(exc)
        self._stop_clock()
        shares = shares_of_this_process()
        if shares is not None:
            shares.lost()

    def _set_clock(self) -> None:
        if self._answers():
            self._stop_clock()
        elif self._clock is None:
            self._clock = self.loop.call_later(HEAD_SECONDS, self._late)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _answers(self) -> bool:
        """Whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def _late(self) -> None:
        self._clock = None
        if not self._answers() and not self.transport.is_closing():
            self.transport.close()
