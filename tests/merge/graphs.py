"""What the tests of merge, diff and feed share: a schema, and short ways to fill, change and read graphs."""

from __future__ import annotations

from typing import Any

import omnigraph as og
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore

SCHEMA = """
node Person {
    slug: String @key
    age: I32?
    mail: String? @unique
    weight: F64?
    @range(age, 0..150)
}

node City {
    name: String @key
    map: Blob?
    founded: Date?
    seen: DateTime?
    shape: Vector(2)?
    tags: [String]?
}

edge Knows: Person -> Person {
    since: I32?
}

edge Rates: Person -> City {
    stars: I32?
    @key(src, dst)
}

edge LivesIn: Person -> City @card(0..1) {
    @key(src, dst)
}
"""

PERSON, CITY, KNOWS, RATES, LIVES = "node:Person", "node:City", "edge:Knows", "edge:Rates", "edge:LivesIn"

Row = dict[str, Any]


def store_of(graph: og.Graph) -> GraphStore:
    """The store behind a graph."""
    return graph._store


def person(slug: str, **values: Any) -> Row:
    """A record of a person."""
    return {"type": "Person", "data": {"slug": slug, **values}}


def city(name: str, **values: Any) -> Row:
    """A record of a city."""
    return {"type": "City", "data": {"name": name, **values}}


def knows(id: str, source: str, target: str, **values: Any) -> Row:
    """A record of an edge without a key, under an id of its own."""
    return {"edge": "Knows", "from": source, "to": target, "data": {"id": id, **values}}


def rates(source: str, target: str, **values: Any) -> Row:
    """A record of an edge with a key."""
    return {"edge": "Rates", "from": source, "to": target, "data": values}


def lives(source: str, target: str) -> Row:
    """A record of an edge of which a person has at most one."""
    return {"edge": "LivesIn", "from": source, "to": target}


def put(graph: og.Graph, branch: str, *records: Row) -> None:
    """Insert or update records on a branch, in one commit."""
    if records:
        graph.load(list(records), mode="merge", branch=branch)


def drop(graph: og.Graph, branch: str, type_: str, *keys: str, by: str = "slug") -> None:
    """Delete nodes (with their edges) or edges on a branch, in one commit."""
    if keys:
        names = ", ".join(f'"{key}"' for key in keys)
        graph.mutate(f"query q() {{ delete {type_} where {by} in [{names}] }}", branch=branch)


def rows(graph: og.Graph, table_key: str, at: str = "main") -> dict[str, Row]:
    """The rows of a table by id, blobs as bytes."""
    store = store_of(graph)
    pin = store.snapshot(at).pin(table_key)
    found = store.tables.scan_table(table_of(pin), blobs="bytes").to_pylist()
    assert len(found) == pin.row_count, f"the pin of {table_key} on {at} counts {pin.row_count} rows, not {len(found)}"
    assert len({row["id"] for row in found}) == len(found), f"{table_key} on {at} has an id twice"
    return {row["id"]: row for row in found}


def ages(graph: og.Graph, at: str = "main") -> dict[str, int | None]:
    """The ages of people by their key."""
    return {id: row["age"] for id, row in rows(graph, PERSON, at).items()}


def content(graph: og.Graph, at: str = "main") -> dict[str, dict[str, Row]]:
    """Every row of every table."""
    return {key: rows(graph, key, at) for key in store_of(graph).snapshot(at).tables}


def changed(graph: og.Graph, a: str, b: str, **only: Any) -> list[tuple[str, str, str]]:
    """The changes between two targets as (operation, type, id), in the order in which they come."""
    return [(change.op.value, change.type, change.id) for change in graph.diff(a, b, **only)]
