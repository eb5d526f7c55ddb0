"""A minimal writer straight over the commit protocol: real staged upserts and appends, no mutation language.

It writes people and who knows whom, so every write touches two tables, one of which refers to the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.ledger.values import GraphCommit, Snapshot, TablePin, WriterKind

SCHEMA = """
node Person {
    slug: String @key
    age: I32?
}

node Company {
    slug: String @key
}

edge Knows: Person -> Person {
    @key(src, dst)
}
"""

PERSON, COMPANY, KNOWS = "node:Person", "node:Company", "edge:Knows"


def new_graph(uri: str) -> GraphStore:
    """A graph with three people on main."""
    store = create_store(uri, SCHEMA, actor="act-setup")
    put_people(store, {"ada": 36, "grace": 40, "alan": 41})
    return store


def put_people(
    store: GraphStore,
    ages: dict[str, int],
    branch: str = "main",
    *,
    actor: str | None = "act-ada",
    kind: WriterKind = WriterKind.MUTATION,
    retry: RetryPolicy = RetryPolicy.PREPARE_AGAIN,
    if_commit: str | None = None,
) -> GraphCommit:
    """Insert or update people: one table."""

    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
        return session.intent(kind, base, [people_write(session, base.pin(PERSON), ages)])

    commit = run_write(store, branch, prepare, actor=actor, retry=retry, if_commit=if_commit)
    assert commit is not None
    return commit


def put_friends(
    store: GraphStore, ages: dict[str, int], friends: Sequence[tuple[str, str]], branch: str = "main"
) -> GraphCommit:
    """Insert people and edges between them: two tables in one commit, and a third one is read."""

    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
        writes = [
            people_write(session, base.pin(PERSON), ages),
            edges_write(session, base.pin(KNOWS), friends),
        ]
        return session.intent(WriterKind.LOAD, base, writes, reads=[COMPANY])

    commit = run_write(store, branch, prepare, actor="act-ada", retry=RetryPolicy.PREPARE_AGAIN)
    assert commit is not None
    return commit


def put_company(store: GraphStore, name: str, branch: str = "main") -> GraphCommit:
    """Insert a company: a table that nothing else touches."""

    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
        line = session.line(base.pin(COMPANY))
        rows = _table([{"id": name, "slug": name}], store.tables.schema(line))
        write = session.table_write(base.pin(COMPANY), store.tables.stage_upsert(line, rows))
        return session.intent(WriterKind.MUTATION, base, [write])

    commit = run_write(store, branch, prepare, actor="act-ada", retry=RetryPolicy.PREPARE_AGAIN)
    assert commit is not None
    return commit


def people_write(session: WriteSession, pin: TablePin, ages: dict[str, int]) -> TableWrite:
    """Stage people by id."""
    line = session.line(pin)
    schema = session.store.tables.schema(line)
    rows = [{"id": slug, "slug": slug, "age": age} for slug, age in ages.items()]
    return session.table_write(pin, session.store.tables.stage_upsert(line, _table(rows, schema)))


def edges_write(session: WriteSession, pin: TablePin, friends: Sequence[tuple[str, str]]) -> TableWrite:
    """Stage edges by id."""
    line = session.line(pin)
    schema = session.store.tables.schema(line)
    rows = [{"id": f"{src}-{dst}", "src": src, "dst": dst} for src, dst in friends]
    return session.table_write(pin, session.store.tables.stage_upsert(line, _table(rows, schema)))


def content(store: GraphStore, branch: str = "main") -> dict[str, list[tuple[object, ...]]]:
    """Everything a branch shows, table by table, sorted."""
    snapshot = store.snapshot(branch=branch)
    found: dict[str, list[tuple[object, ...]]] = {}
    for key, pin in snapshot.tables.items():
        rows = store.tables.scan_table(table_of(pin)).to_pylist()
        found[key] = sorted(tuple(row.values()) for row in rows)
    return found


def _table(rows: Sequence[dict[str, object]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)
