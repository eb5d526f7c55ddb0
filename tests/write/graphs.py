"""What the tests of writes share: a schema with every kind of rule, and short ways to make, fill and read graphs."""

from __future__ import annotations

from typing import Any

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate

SCHEMA = """
node Person {
    slug: String @key
    name: String?
    age: I32?
    status: enum(active, retired)?
    mail: String? @unique
    @unique(name, age)
    @range(age, 0..150)
    @check(slug, "[a-z0-9-]+")
}

node Company {
    name: String @key
    size: I64? @index
    rank: F64?
    born: Date?
    seen: DateTime?
    listed: Bool @default(false)
    tags: [String]?
    shape: Vector(2)?
    logo: Blob?
}

node Note {
    text: String
}

edge Knows: Person -> Person {
    since: Date?
    strength: I32?
}

edge WorksAt: Person -> Company @card(0..1) {
    since: Date?
    @unique(src, dst)
}

edge Rates: Person -> Company {
    stars: I32
    @key(src, dst)
}

edge Owns: Company -> Company @card(2..3)
"""


def rows(store: GraphStore, table_key: str, branch: str = "main") -> list[dict[str, Any]]:
    """The published rows of a table, by id."""
    pin = store.snapshot(branch=branch).pin(table_key)
    found = store.tables.scan_table(table_of(pin), blobs="bytes").to_pylist()
    assert len(found) == pin.row_count, "the pin's row count is wrong"
    return sorted(found, key=lambda row: row["id"])


def ids(store: GraphStore, table_key: str, branch: str = "main") -> list[str]:
    """The ids of a table."""
    return [row["id"] for row in rows(store, table_key, branch)]


def person(slug: str, **values: Any) -> dict[str, Any]:
    """A record of a person."""
    return {"type": "Person", "data": {"slug": slug, **values}}


def company(name: str, **values: Any) -> dict[str, Any]:
    """A record of a company."""
    return {"type": "Company", "data": {"name": name, **values}}


def edge(type_: str, source: str, target: str, **values: Any) -> dict[str, Any]:
    """A record of an edge."""
    record: dict[str, Any] = {"edge": type_, "from": source, "to": target}
    return {**record, "data": values} if values else record


def fill(store: GraphStore, *records: dict[str, Any], mode: str = "append", branch: str = "main") -> Any:
    """Load records."""
    return load(store, list(records), mode=mode, branch=branch)


def run(store: GraphStore, body: str, branch: str = "main", **params: Any) -> Any:
    """Run the statements of a mutation; parameters are declared by their Python type."""
    declared = ", ".join(f"${name}: {_TYPES[type(value)]}" for name, value in params.items())
    head = f"query q({declared})" if declared else "query q()"
    return mutate(store, f"{head} {{ {body} }}", params=params, branch=branch)


_TYPES = {str: "String", int: "I32", float: "F64", bool: "Bool"}
