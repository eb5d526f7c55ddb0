"""What the tests of the ledger run in other processes, and children that are killed.

Apart from the tests, so that the fork server can have it imported before a child is asked for.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from omnigraph.errors import BadRequest, Conflict, TableMoved
from omnigraph.ledger.branches import branches
from omnigraph.ledger.branches.schema_lock import hold_schema_lock
from omnigraph.ledger.manifest.publish import Publication, publish
from omnigraph.ledger.store import create_store, open_store
from tests.faults import harness
from tests.ledger.graphs import PERSON, SCHEMA, add_people, draft, moved, publish_move
from tests.ledger.places import let_leases_run_out


def run_killed(function: Callable[..., object], uri: str, *args: Any, at: str, hit: int = 1) -> None:
    """Run `function(uri, *args)` in a child that is killed at a failpoint, and let the leases that it held run out."""
    process = harness.run_killed(function, uri, *args, at=at, hit=hit)
    let_leases_run_out(uri, process)


def make_graph(uri: str) -> str:
    """Make a graph; whether it was made."""
    try:
        create_store(uri, SCHEMA)
    except BadRequest:
        return "refused"
    return "made"


def open_graph(uri: str) -> None:
    """Open for writing, which migrates, recovers and completes the log."""
    open_store(uri)


def add_ada(uri: str, branch: str) -> None:
    """One person on a branch."""
    add_people(open_store(uri), "ada", branch=branch)


def create_branch(uri: str, name: str) -> None:
    """Make a branch."""
    branches.create_branch(open_store(uri), name)


def delete_branch(uri: str, name: str) -> None:
    """Delete a branch."""
    branches.delete_branch(open_store(uri), name)


def create_branches(uri: str, count: int) -> list[int]:
    """Make the branches `n/0`, `n/1` ..., whose names others want too; which were got."""
    store = open_store(uri)
    got = []
    for number in range(count):
        try:
            branches.create_branch(store, f"n/{number}")
            got.append(number)
        except Conflict:
            pass
    return got


def publish_rounds(uri: str, rounds: int) -> list[int]:
    """Publish the next version of a table in each round, against others who want the same; which rounds were won."""
    store = open_store(uri)
    won = []
    for version in range(1, rounds + 1):
        base = store.snapshot()
        while base.pin(PERSON).version < version:
            time.sleep(0.005)
            base = store.snapshot()
        pin = base.pin(PERSON)
        if pin.version > version:
            continue
        try:
            publish(store, base.branch, Publication(draft(base), updates=(moved(pin),)), expected={PERSON: pin})
            won.append(version)
        except TableMoved:
            pass
    return won


def publish_moves(uri: str, branch: str, count: int) -> None:
    """Publish on a branch, again and again."""
    store = open_store(uri)
    for _ in range(count):
        publish_move(store, branch=branch)


def die_holding_the_schema_lock(uri: str) -> None:
    """Die in the middle of a schema apply."""
    with hold_schema_lock(open_store(uri), "op-dead"):
        os.kill(os.getpid(), signal.SIGKILL)


def killed_with_the_schema_lock(uri: str) -> None:
    """A child that dies in the middle of a schema apply."""
    child = harness.start_child(die_holding_the_schema_lock, uri)
    assert harness.join(child) == -signal.SIGKILL
    assert child.pid is not None
    let_leases_run_out(uri, child.pid)
