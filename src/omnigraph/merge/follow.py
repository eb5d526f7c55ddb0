"""The change feed as it goes on: looks again and again, and hands over a page whenever there is something new.

Nobody is told of commits by a graph on disk or on an object store, so somebody has to look. A look that finds nothing
costs one question to the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from omnigraph.errors import BadRequest
from omnigraph.merge.feed import Page

LOOK_EVERY = 0.5
"""Seconds between two looks."""

PAGE = 100
"""Commits of a page."""

Look = Callable[[str], Page]
"""The page after a cursor."""


def follow(look: Look, first: Page, *, every: float = LOOK_EVERY, timeout: float | None = None) -> Iterator[Page]:
    """Pages with at least one commit each, from `first` on, as long as somebody wants the next one.

    With `timeout` it ends when nothing has happened for so many seconds.
    """
    found = first
    waited = 0.0
    while True:
        if found.blocks:
            waited = 0.0
            yield found
        elif timeout is not None and waited >= timeout:
            return
        else:
            pause = every if timeout is None else min(every, timeout - waited)
            time.sleep(pause)
            waited += pause
        found = look(found.cursor)


def checked_pause(every: float, timeout: float | None) -> None:
    """Refuse a pause that is none."""
    if not every > 0 or (timeout is not None and not timeout >= 0):
        raise BadRequest("follow: `every` is a number of seconds above 0, and `timeout` one from 0 on")
