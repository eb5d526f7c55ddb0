"""A write that also changes the schema, registers, renames and drops tables: all of it or nothing, `_schema.pg` too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.ledger.commit.attempts import WriteSession, run_write
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.layout import physical_schema
from omnigraph.ledger.schema_store import CURRENT_SOURCE
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import Snapshot, TablePin, WriterKind
from omnigraph.schema.compiler.compile import compile_schema
from tests.faults.harness import run_killed
from tests.faults.invariants import check_history, check_pins_are_heads, observe
from tests.faults.writers import COMPANY, KNOWS, PERSON, SCHEMA, new_graph, people_write, put_people

NEW_SCHEMA = """
node Human {
    slug: String @key
    age: I32?
}

node Place {
    slug: String @key
}

edge Knows: Human -> Human {
    @key(src, dst)
}
"""


def change_schema(uri: str) -> None:
    """Person becomes Human and gets a row, Company goes, Place comes with a row."""
    store = open_store(uri)
    catalog = compile_schema(NEW_SCHEMA)
    digest = store.schemas.put(NEW_SCHEMA, catalog)
    place = next(found for found in catalog.types() if found.name == "Place")
    made = store.tables.create("nodes/place-1", physical_schema(place))

    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
        pin = base.pin(PERSON)
        human = replace(people_write(session, pin, {"bob": 1}), table_key="node:Human")
        companies = store.tables.scan_table(table_of(base.pin(PERSON)), columns=["id", "slug"])
        staged = session.keep(store.tables.stage_append(made, companies))
        new = TableWrite("node:Place", "place-1", "nodes/place-1", None, made, 3, commits=(staged,))
        return replace(
            session.intent(WriterKind.SCHEMA_APPLY, base, [human, new], reads=[KNOWS]),
            renamed=((PERSON, "node:Human"),),
            tombstones=(COMPANY,),
            schema_digest=digest,
        )

    run_write(store, "main", prepare, holds_schema_lock=True)


def is_changed(store: GraphStore) -> bool:
    """Whether the graph is as after the change; fails when it is neither as before nor as after."""
    snapshot = store.snapshot()
    source = store.objects.get(CURRENT_SOURCE)[0].decode()
    if snapshot.tables.keys() == {PERSON, COMPANY, KNOWS}:
        assert source == store.schemas.get(snapshot.schema_digest)[0] == SCHEMA
        return False
    assert snapshot.tables.keys() == {"node:Human", "node:Place", KNOWS}
    assert source == store.schemas.get(snapshot.schema_digest)[0] == NEW_SCHEMA
    assert snapshot.pin("node:Human").row_count == 4
    assert snapshot.pin("node:Place").row_count == 3
    return True


@pytest.mark.parametrize(
    ("failpoint", "hit", "changed"),
    [
        ("write.sidecar_put", 1, False),
        ("write.table_committed", 1, False),
        ("write.table_committed", 2, True),
        ("publish.before", 1, True),
        ("publish.after", 1, True),
        ("write.published", 1, True),
        ("sidecar.delete", 1, True),
    ],
)
def test_a_killed_schema_change(failpoint: str, hit: int, changed: bool, tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    before = observe(new_graph(uri))
    run_killed(change_schema, uri, at=failpoint, hit=hit)
    store = open_store(uri)
    assert is_changed(store) == changed
    if not changed:
        assert observe(store) == before
        put_people(store, {"zoe": 1})
    check_pins_are_heads(store)
    check_history(store)
    assert store.sidecars.list() == []
    assert len(store.audit.list()) == 1


def test_unharmed(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    store = new_graph(uri)
    human = store.snapshot().pin(PERSON)
    change_schema(uri)
    assert is_changed(store)
    assert store.audit.list() == []
    now = store.snapshot().pin("node:Human")
    assert now == TablePin("node:Human", human.type_id, human.location, None, human.version + 1, 4, human.owner)
