"""Graphs on disk in different physical states with the same rows: more fragments, indexes, deletions, compaction."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from omnigraph.ledger.values import TablePin
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion
from tests.read.graphs import CATALOG, Database

INDEXES = {
    "node:Person": (
        ("id", IndexKind.BTREE),
        ("age", IndexKind.BTREE),
        ("bio", IndexKind.TEXT),
        ("bio", IndexKind.BTREE),
    ),
    "node:Team": (("id", IndexKind.BTREE),),
    "edge:Knows": (("id", IndexKind.BTREE), ("src", IndexKind.BTREE), ("dst", IndexKind.BTREE)),
    "edge:MemberOf": (("src", IndexKind.BTREE), ("dst", IndexKind.BTREE)),
    "edge:PartOf": (("src", IndexKind.BTREE),),
}


class StoredGraph:
    """Tables of a database on disk, moved from one physical state to the next."""

    def __init__(self, path: Path) -> None:
        self.tables = TableStore(parse_root(str(path)))
        self.heads: dict[str, TableVersion] = {}
        self._counts: dict[str, int] = {}

    def write(self, database: Database) -> None:
        """All rows in two fragments, with a row in between that is deleted again."""
        for key, rows in database.items():
            schema = table_schema(CATALOG.table(key))
            half = (len(rows) + 1) // 2
            head = self.tables.create(
                key.replace(":", "/"), schema, rows=pa.Table.from_pylist(rows[:half], schema=schema)
            )
            doomed = [{**row, "id": f"gone{at}"} for at, row in enumerate(rows[:1])]
            for part in (doomed, rows[half:]):
                if part:
                    table = pa.Table.from_pylist(part, schema=schema)
                    head = self.tables.commit_staged(self.tables.stage_append(head, table), "test")
            if doomed:
                staged = self.tables.stage_delete(head, [row["id"] for row in doomed])
                head = self.tables.commit_staged(staged, "test")
            self.heads[key], self._counts[key] = head, len(rows)

    def index(self) -> None:
        """Build every index over what is there now."""
        for key, columns in INDEXES.items():
            for column, kind in columns:
                staged = self.tables.stage_index(self.heads[key], column, kind) if self._counts[key] else None
                if staged is not None:
                    self.heads[key] = self.tables.commit_staged(staged, "test")

    def compact(self) -> None:
        """Put the fragments of every table together."""
        for key, head in self.heads.items():
            staged = self.tables.stage_compaction(head)
            if staged is not None:
                self.heads[key] = self.tables.commit_compaction(staged)

    def upsert(self, key: str, rows: list[dict]) -> None:
        """Write rows again: they move to a fragment that no index covers."""
        if rows:
            table = pa.Table.from_pylist(rows, schema=table_schema(CATALOG.table(key)))
            self.heads[key] = self.tables.commit_staged(self.tables.stage_upsert(self.heads[key], table), "test")

    def pins(self) -> dict[str, TablePin]:
        """What a snapshot would pin."""
        return {
            key: TablePin(key, key, head.location, head.branch, head.version, self._counts[key], "main")
            for key, head in self.heads.items()
        }
