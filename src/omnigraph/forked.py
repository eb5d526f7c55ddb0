"""Graphs and `fork`: a child process cannot go on with what its parent opened.

Lance works with threads of its own, and a fork copies none of them: whatever the child asks of them would wait for
ever. So a handle remembers the process that made it, and a process that was forked from one with open graphs opens
none.
"""

from __future__ import annotations

import os

from omnigraph.errors import BadRequest

_used_in: int | None = None
"""The process in which a graph was first opened; a forked child inherits it."""


def opened_here() -> int:
    """Take note that this process opens a graph; its id. Refuses a child that was forked from one that did."""
    global _used_in
    here = os.getpid()
    if _used_in is not None and _used_in != here:
        raise BadRequest(f"this process was forked from one that had a graph open. {_ADVICE}")
    _used_in = here
    return here


def is_here(made_in: int) -> bool:
    """Whether this is the process that made a handle."""
    return os.getpid() == made_in


def refuse_in_child(made_in: int) -> None:
    """Refuse a handle that another process made."""
    if not is_here(made_in):
        raise BadRequest(f"this graph was opened in process {made_in}, and this process was forked from it. {_ADVICE}")


_ADVICE = (
    "Lance's threads do not live on in a forked child: start the process with spawn "
    "(multiprocessing.get_context('spawn')) and open the graph there; a Graph can be sent to it and opens itself again."
)
