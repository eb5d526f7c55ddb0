"""What of a graph's files is in use and what is left over, seen from outside."""

from __future__ import annotations

import json
from pathlib import Path

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore

SCHEMA = "node Person { slug: String @key  note: String? }\nedge Knows: Person -> Person"


def write_people(path: Path, count: int, note: str = "") -> Path:
    """People, each of whom knows the next, as JSON lines."""
    people = [{"type": "Person", "data": {"slug": f"p{n}", "note": f"{n}{note}"}} for n in range(count)]
    edges = [{"edge": "Knows", "from": f"p{n}", "to": f"p{n + 1}"} for n in range(count - 1)]
    path.write_text("".join(json.dumps(record) + "\n" for record in [*people, *edges]))
    return path


def left_over(store: GraphStore) -> list[str]:
    """Files of tables that no version of today's state refers to."""
    written = {
        entry.path.rsplit("/", 1)[1]
        for kind in ("nodes", "edges")
        for entry in store.objects.list(kind)
        if "/data/" in entry.path
    }
    for pin in store.snapshot().tables.values():
        for fragment in store.tables.handles.at(table_of(pin)).get_fragments():
            written -= {file.path for file in fragment.metadata.files}
    return sorted(written)


def counted(store: GraphStore) -> list[int]:
    """How many rows each table has; ids that come twice are an error."""
    found = []
    for pin in store.snapshot().tables.values():
        ids = store.tables.scan_table(table_of(pin), columns=["id"])["id"].to_pylist()
        assert len(ids) == len(set(ids))
        found.append(len(ids))
    return sorted(found)
