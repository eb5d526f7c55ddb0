"""What the tests of maintenance share: a small schema, short ways to write, and a look at everything a state holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from omnigraph import failpoints
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore
from omnigraph.ledger.values import GraphCommit, Snapshot
from omnigraph.write.load.load import load
from tests.ledger.graphs import KNOWS, PERSON, SCHEMA

__all__ = ["KNOWS", "PERSON", "SCHEMA"]

Content = dict[str, list[tuple[Any, ...]]]


def put(store: GraphStore, branch: str = "main", /, **people: int) -> GraphCommit:
    """Write people with their ages as one commit."""
    rows = [{"type": "Person", "data": {"name": name, "age": age}} for name, age in people.items()]
    return load(store, rows, mode="merge", branch=branch).commit


def knows(store: GraphStore, source: str, target: str, branch: str = "main") -> GraphCommit:
    """Write an edge."""
    return load(store, [{"edge": "Knows", "from": source, "to": target}], mode="append", branch=branch).commit


def content(store: GraphStore, snapshot: Snapshot) -> Content:
    """Every row of every table of a state, read for real."""
    found: Content = {}
    for key, pin in sorted(snapshot.tables.items()):
        rows = store.tables.scan_table(table_of(pin)).to_pylist()
        assert len(rows) == pin.row_count
        found[key] = sorted(tuple(str(value) for value in row.values()) for row in rows)
    return found


def people(store: GraphStore, target: str | None = None, branch: str = "main") -> dict[str, int]:
    """The ages of the people of a state, by name."""
    pin = store.snapshot(target, branch=branch).pin(PERSON)
    return {row["name"]: row["age"] for row in store.tables.scan_table(table_of(pin)).to_pylist()}


def files(store: GraphStore, prefix: str = "") -> list[str]:
    """The paths of all objects below a prefix."""
    return [entry.path for entry in store.objects.list(prefix)]


def interrupted(at: str, gate: Path, work: Callable[[], object], meanwhile: Callable[[], object]) -> None:
    """Run `work` in a thread, pause it at a failpoint, do something else, and let it go on to its end."""
    with ThreadPoolExecutor(1) as pool, failpoints.active(at, f"pause:{gate}"):
        running = pool.submit(work)
        deadline = time.monotonic() + 90
        while not Path(f"{gate}.reached").exists():
            assert not running.done(), running.result()
            assert time.monotonic() < deadline, f"{at} was never reached"
            time.sleep(0.01)
        try:
            meanwhile()
        finally:
            gate.touch()
        running.result(timeout=60)
