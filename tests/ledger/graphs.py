"""What the tests of the ledger share: a schema, writers straight over `publish`, counters."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from ulid import ULID

from omnigraph.ledger.manifest.publish import CommitDraft, Publication, publish
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore
from omnigraph.ledger.values import GraphCommit, Snapshot, TablePin, WriterKind
from omnigraph.storage.values import TableVersion

PERSON, KNOWS = "node:Person", "edge:Knows"
SCHEMA = """
node Person {
    name: String @key
    age: I32?
}

edge Knows: Person -> Person
"""


def draft(base: Snapshot, **changes) -> CommitDraft:
    """A commit on top of a snapshot."""
    values = {
        "graph_commit_id": str(ULID()),
        "parent_commit_id": base.head.graph_commit_id,
        "merged_parent_commit_id": None,
        "actor_id": None,
        "created_at": time.time_ns() // 1000,
        "kind": WriterKind.MUTATION,
        "changes_data": True,
    }
    return CommitDraft(**{**values, **changes})


def moved(pin: TablePin, owner: str | None = None, **changes) -> TablePin:
    """The next version of a pin, without a table that has it: the publisher looks at pins only."""
    values = {name: getattr(pin, name) for name in TablePin.__slots__}
    return TablePin(**{**values, "version": pin.version + 1, "owner": owner or pin.owner, **changes})


def publish_move(store: GraphStore, branch: str = "main", table_key: str = PERSON, **changes) -> GraphCommit:
    """Publish the next version of one table, expecting the pin that was read."""
    base = store.snapshot(branch=branch)
    pin = base.pin(table_key)
    publication = Publication(draft(base, **changes), updates=(moved(pin),))
    return publish(store, base.branch, publication, expected={table_key: pin})


def add_people(store: GraphStore, *names: str, branch: str = "main", actor: str | None = None) -> GraphCommit:
    """Insert people for real: fork if the branch does not own the table, stage, commit, publish."""
    base = store.snapshot(branch=branch)
    pin = base.pin(PERSON)
    line = line_of(store, base, pin)
    rows = [{"id": name, "name": name, "age": None} for name in names]
    staged = store.tables.stage_append(line, pa.Table.from_pylist(rows, schema=store.tables.schema(line)))
    commit = draft(base, actor_id=actor)
    landed = store.tables.commit_staged(staged, commit.graph_commit_id)
    new = moved(
        pin,
        base.branch.incarnation,
        lance_branch=landed.branch,
        version=landed.version,
        row_count=pin.row_count + len(names),
    )
    return publish(store, base.branch, Publication(commit, updates=(new,)), expected={PERSON: pin})


def line_of(store: GraphStore, base: Snapshot, pin: TablePin) -> TableVersion:
    """The line that a branch may write to: its own, or a new fork."""
    if pin.owner == base.branch.incarnation:
        return table_of(pin)
    return store.tables.create_fork(table_of(pin), f"f-{ULID()}")


def people(store: GraphStore, target: str | int | None = None, branch: str = "main") -> list[str]:
    """The ids of the people in a snapshot."""
    snapshot = store.snapshot(target, branch=branch)
    return sorted(store.tables.scan_table(table_of(snapshot.pin(PERSON)), columns=["id"])["id"].to_pylist())


@contextmanager
def counted(store: GraphStore) -> Iterator[Counter[str]]:
    """Count calls of Lance (`open __manifest`, `commit nodes/n1`) and of the object store (`get`, `put` ...)."""
    calls: Counter[str] = Counter()

    def table_call(name: str, location: str) -> None:
        calls[f"{name} {location}"] += 1
        calls[name] += 1

    def object_call(name: str) -> None:
        calls[f"object {name}"] += 1

    store.tables.on_call, store.objects.on_call = table_call, object_call
    try:
        yield calls
    finally:
        store.tables.on_call = store.objects.on_call = None
