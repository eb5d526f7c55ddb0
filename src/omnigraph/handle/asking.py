"""Asking for reads without running them yet: what a server does with reads that come at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.handle.asked import AskedRead, ReadAsk
from omnigraph.handle.reads import Reads, given_query
from omnigraph.policy.actions import Action

if TYPE_CHECKING:
    from omnigraph.ledger.values import Snapshot


def ask(graph: Reads, asked: ReadAsk, state: Snapshot | None = None) -> AskedRead:
    """A read up to where it would begin; on a state that was looked up for it before, and that it may read."""
    given, values = given_query("query", asked.source, asked.params, {}, {})
    snapshot = state or graph._state("query", asked.at, asked.branch, asked.actor)
    return graph._asked(given, asked.name, values, snapshot, "auto", {"cancel": asked.cancel, "timeout": asked.timeout})


def ask_together(graph: Reads, asked: Sequence[ReadAsk]) -> list[AskedRead | Exception]:
    """Reads that came at the same time, each with its own error: they look at a branch once, and those that look up a
    row by its key have it read with the rows of the others. Every one of them still has to be run."""
    from omnigraph.read.lookups import fetch_together

    states: dict[str, Snapshot] = {}
    found: list[AskedRead | Exception] = []
    for one in asked:
        try:
            found.append(ask(graph, one, _state_among(graph, states, one)))
        except Exception as error:
            found.append(error)
    if len(found) > 1:
        reads = [read for read in found if isinstance(read, AskedRead)]
        fetch_together((read.run, read.row) for read in reads if not callable(read.run) and read.row is not None)
    return found


def _state_among(graph: Reads, states: dict[str, Snapshot], asked: ReadAsk) -> Snapshot:
    """The state of a read. That of a branch was looked up after all of them had come, so it is new enough."""
    if asked.at is not None:
        return graph._state("query", asked.at, asked.branch, asked.actor)
    place = graph._place(asked.branch)
    graph._allow(Action.READ, asked.actor, branch=place)
    if place not in states:
        states[place] = graph._store.snapshot(branch=place, operation="query")
    return states[place]
