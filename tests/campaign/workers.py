"""What the children of a campaign run: writers of every kind that note what was acknowledged."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.ledger.store import GraphStore, open_store
from tests.faults.failing_files import full_from, plugged
from tests.faults.writers import SCHEMA, put_company, put_friends

KINDS = (
    "friends",
    "branch friends",
    "company",
    "load",
    "mutate",
    "combined",
    "gone",
    "undo",
    "schema",
    "optimize",
    "branches",
    "merge",
    "cleanup",
)
"""What writers do. `gone` inserts and deletes again: what it notes must not be there."""


def write_on(uri: str, kind: str, name: str, journal: str, cause: str | None) -> None:
    """Write again and again, until killed; `cause` makes the disk fail now and then, for a while."""
    chance = random.Random(name)
    store = open_store(uri)
    Path(f"{journal}.{name}").touch()
    for number in range(100_000):
        item = f"{name}-{number}"
        starved = cause is not None and chance.random() < 0.3
        disk = full_from(chance.randrange(1, 60), cause) if starved and cause is not None else None
        with plugged(disk) if disk is not None else contextlib.nullcontext():
            try:
                done = _write(store, kind, item)
            except OmniGraphError as error:
                _note(f"{journal}.errors", f"{type(error).__name__} {error.message[:200]}")
                continue
        if done:
            _note(journal, f"{kind}\t{item}")


def _write(store: GraphStore, kind: str, item: str) -> bool:
    """One operation; whether it is one whose result is looked for afterwards."""
    if kind == "friends":
        put_friends(store, {item: 1}, [("ada", item)])
    elif kind == "branch friends":
        put_friends(store, {item: 1}, [("ada", item)], "review")
    elif kind == "company":
        put_company(store, item)
    elif kind == "load":
        graph = Graph(store)
        records = [{"type": "Person", "data": {"slug": item}}, {"edge": "Knows", "from": "ada", "to": item}]
        graph.load(records, mode="append")
    elif kind in ("mutate", "combined"):
        graph = Graph(store, combine=kind == "combined")
        insert = f'insert Person {{ slug: "{item}", age: 1 }} insert Knows {{ from: "ada", to: "{item}" }}'
        graph.mutate(f"query q() {{ {insert} }}")
        graph.mutate(f'query q() {{ update Person set {{ age: 2 }} where slug = "{item}" }}')
    elif kind == "gone":
        graph = Graph(store)
        graph.mutate(f'query q() {{ insert Company {{ slug: "{item}" }} }}')
        graph.mutate(f'query q() {{ delete Company where slug = "{item}" }}')
    elif kind == "undo":
        Graph(store).revert(put_company(store, item).graph_commit_id)
        return False
    elif kind == "schema":
        graph = Graph(store)
        graph.branch_create(item)
        graph.apply_schema(SCHEMA.replace("age: I32?", "age: I64?\n    mood: String?"), branch=item)
        graph.branch_delete(item)
        return False
    elif kind in ("optimize", "cleanup"):
        graph = Graph(store)
        if kind == "optimize":
            graph.optimize()
        else:
            graph.cleanup(keep_versions=20, confirm=True)
        return False
    elif kind == "branches":
        graph = Graph(store)
        graph.branch_create(item)
        put_company(store, item, item)
        graph.branch_delete(item)
        return False
    else:
        graph = Graph(store)
        graph.branch_create(item)
        put_company(store, item, item)
        graph.merge(item, into="main")
        graph.branch_delete(item)
    return True


def _note(path: str, line: str) -> None:
    """Append a line in one write, so that a death leaves whole lines only."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)
