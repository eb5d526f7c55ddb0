"""A graph with every type of property, nulls, parallel edges, self-loops and cycles, made from a seed."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.ledger.commit.attempts import WriteSession, run_write
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.ledger.values import Snapshot, WriterKind

SCHEMA = """
node Person {
    slug: String @key
    age: I32?
    score: F64?
    ratio: F32?
    big: U64?
    small: U32?
    total: I64?
    active: Bool?
    born: Date?
    seen: DateTime?
    mood: enum(calm, glad, sad)?
    bio: String? @index
    tags: [String]?
    face: Vector(3)?
}
node City { name: String @key  people: I64? }
edge Knows: Person -> Person { since: Date?  weight: F64? }
edge LivesIn: Person -> City { rent: I32? }
"""

WORDS = ["graph", "lance", "spark", "river", "stone", "Graph", "café", "ice-cream", "night"]


def put_rows(store: GraphStore, rows: dict[str, list[dict[str, Any]]], branch: str = "main") -> None:
    """Add rows to tables as one commit, without any of the load's own machinery."""

    def prepare(snapshot: Snapshot, session: WriteSession) -> WriteIntent:
        writes = []
        for table_key, values in rows.items():
            pin = snapshot.pin(table_key)
            line = session.line(pin)
            table = pa.Table.from_pylist(values, schema=store.tables.schema(table_of(pin)))
            writes.append(session.table_write(pin, store.tables.stage_append(line, table)))
        return session.intent(WriterKind.LOAD, snapshot, writes)

    run_write(store, branch, prepare)


def make_graph(path: Path, seed: int = 11, people: int = 30, edges: int = 70) -> GraphStore:
    """A small random graph, in several fragments per table."""
    store = create_store(str(path), SCHEMA)
    chance = random.Random(seed)
    ids = [f"p{n:02d}" for n in range(people)]
    rows = [person(chance, slug) for slug in ids]
    cities = [{"id": n, "name": n, "people": p} for n, p in (("Oslo", 3), ("Rome", None), ("Łódź", 2**40))]
    put_rows(store, {"node:Person": rows[:10], "node:City": cities})
    put_rows(store, {"node:Person": rows[10:]})
    knows = [
        {
            "id": f"k{n:03d}",
            "src": chance.choice(ids[:-3]),
            "dst": chance.choice(ids[:-3]),
            "since": date(2020, 1, 1) + timedelta(days=chance.randrange(900)) if chance.random() < 0.7 else None,
            "weight": chance.choice([None, 0.1, 0.2, 0.7, 1.5]),
        }
        for n in range(edges)
    ]
    knows += [{"id": f"loop{n}", "src": ids[n], "dst": ids[n], "since": None, "weight": None} for n in (1, 5)]
    lives = [
        {"id": f"l{n:03d}", "src": slug, "dst": chance.choice(cities)["id"], "rent": chance.choice([None, 500, 900])}
        for n, slug in enumerate(ids)
        if chance.random() < 0.8
    ]
    put_rows(store, {"edge:Knows": knows[: edges // 2], "edge:LivesIn": lives})
    put_rows(store, {"edge:Knows": knows[edges // 2 :]})
    return store


def person(chance: random.Random, slug: str) -> dict[str, Any]:
    """One random person, about a quarter of the values missing."""

    def maybe(value: Any) -> Any:
        return value if chance.random() < 0.75 else None

    return {
        "id": slug,
        "slug": slug,
        "age": maybe(chance.randrange(15, 60)),
        "score": maybe(chance.choice([0.1, 0.2, 0.3, -1.5, 0.0, 1e300, 7.25])),
        "ratio": maybe(chance.choice([0.5, 0.99, -2.0])),
        "big": maybe(2**64 - 1 - chance.randrange(4)),
        "small": maybe(2**32 - 1 - chance.randrange(4)),
        "total": maybe(chance.choice([2**53 + 1, -(2**60), 5, 0])),
        "active": maybe(chance.random() < 0.5),
        "born": maybe(date(1990, 1, 1) + timedelta(days=chance.randrange(3000))),
        "seen": maybe(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(10**6), microseconds=7)),
        "mood": maybe(chance.choice(["calm", "glad", "sad"])),
        "bio": maybe(" ".join(chance.choices(WORDS, k=chance.randrange(1, 7)))),
        "tags": maybe(chance.sample(["a", "b", "c", "d"], k=chance.randrange(0, 3))),
        "face": maybe([chance.choice([-1.0, 0.0, 0.5, 2.0]) for _ in range(3)]),
    }
