"""The garbage collector of a process that does nothing but serve.

As Python sets it up it looks through young objects after every 700 of them, a request or two, and now and then through
all: a tenth of the time of a server that is asked for rows by key. Nearly all objects there go when nobody needs them,
without the collector. So it looks less often, and never at what is there when the server starts.
"""

from __future__ import annotations

import gc

YOUNG = 20_000
"""Objects after which the youngest are looked through: some dozens of requests."""

ROUNDS = 20
"""Such looks before the next older ones are looked through too."""


def collect_less_often() -> None:
    """Set it up. For a process that is the server's own."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, ROUNDS, ROUNDS)
