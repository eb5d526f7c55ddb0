"""Forged graphs of the internal schema versions 1, 2 and 3, as older programs left them.

`__manifest` has a `table` row per table and a growing history of `table_version` rows; graph branches are Lance
branches of it under their public names, and forks of tables have the branch's name too; the schema is `_schema.pg`
alone.
"""

from __future__ import annotations

import lance
import pyarrow as pa

from omnigraph.ledger.manifest.stamp import STAMP_KEY
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import Root, parse_root
from tests.ledger.graphs import SCHEMA

PERSON_AT, KNOWS_AT = "nodes/person-4711", "edges/knows-4712"
_COMMIT_IDS = ("01H0000000000000000000000A", "01H0000000000000000000000B", "01H0000000000000000000000C")
_PEOPLE = pa.schema(
    [pa.field("id", pa.string(), False), pa.field("name", pa.string(), False), pa.field("age", pa.int32())]
)
_KNOWS = pa.schema([pa.field(name, pa.string(), False) for name in ("id", "src", "dst")])


def forge(path: str, stamp: int, *, with_log: bool = True) -> list[str]:
    """A graph with ada, bob and cyd on main and dee on `review/1`, which was made before cyd; its commit ids."""
    root = parse_root(path)
    open_objects(root).put("_schema.pg", SCHEMA.encode())
    people = _create(root, PERSON_AT, _PEOPLE)
    _create(root, KNOWS_AT, _KNOWS)
    people = _add(people, "ada")
    people = _add(people, "bob")
    rows = _rows(
        _row("node:Person", "table", location=PERSON_AT),
        _row("edge:Knows", "table", location=KNOWS_AT),
        _version("node:Person", 2, 1),
        _version("edge:Knows", 1, 0),
        stamp=stamp,
    )
    manifest = _write(root, "__manifest", rows)
    manifest = _publish(manifest, _version("node:Person", 3, 2))
    review = manifest.create_branch("review/1", (None, 2), storage_options=root.storage_options())
    fork = people.create_branch("review/1", (None, 3), storage_options=root.storage_options())
    _add(fork, "dee")
    _publish(review, _version("node:Person", 4, 3, "review/1"))
    _add(people, "cyd")
    _publish(manifest, _version("node:Person", 4, 3))
    _publish(open_manifest(path), _row("node:Gone", "table", location="nodes/gone"))
    main = _publish(open_manifest(path), _version("node:Gone", 1, 0))
    _publish(main, _row("node:Gone", "table_tombstone", version=1))
    if stamp < 3:
        _leave_runs(root)
    if with_log:
        _log(root)
    return list(_COMMIT_IDS)


def open_manifest(path: str) -> lance.LanceDataset:
    """The main line of a graph's manifest, as Lance has it."""
    root = parse_root(path)
    return lance.dataset(root.child("__manifest"), storage_options=root.storage_options())


def _create(root: Root, location: str, schema: pa.Schema) -> lance.LanceDataset:
    return _write(root, location, schema.empty_table())


def _write(root: Root, location: str, rows: pa.Table) -> lance.LanceDataset:
    return lance.write_dataset(
        rows,
        root.child(location),
        enable_stable_row_ids=True,
        data_storage_version="2.2",
        storage_options=root.storage_options(),
    )


def _add(table: lance.LanceDataset, name: str) -> lance.LanceDataset:
    rows = pa.table({"id": [name], "name": [name], "age": pa.array([None], pa.int32())}, schema=_PEOPLE)
    return lance.write_dataset(rows, table, mode="append")


def _publish(manifest: lance.LanceDataset, *rows: dict) -> lance.LanceDataset:
    return lance.write_dataset(_rows(*rows).cast(manifest.schema), manifest, mode="append")


def _row(key: str, kind: str, *, location: str | None = None, version: int | None = None) -> dict:
    return {
        "object_id": f"{key}${kind}${version or 0}",
        "object_type": kind,
        "location": location,
        "table_key": key,
        "table_version": version,
    }


def _version(key: str, version: int, rows: int, branch: str | None = None) -> dict:
    row = _row(key, "table_version", version=version)
    return {**row, "object_id": f"{key}${branch}${version}", "table_branch": branch, "row_count": rows}


def _rows(*rows: dict, stamp: int = 1) -> pa.Table:
    primary_key = {"lance-schema:unenforced-primary-key": "true"} if stamp > 1 else None
    schema = pa.schema(
        [
            pa.field("object_id", pa.string(), nullable=False, metadata=primary_key),
            pa.field("object_type", pa.string(), nullable=False),
            pa.field("location", pa.string()),
            pa.field("metadata", pa.string()),
            pa.field("base_objects", pa.string()),
            pa.field("table_key", pa.string()),
            pa.field("table_version", pa.int64()),
            pa.field("table_branch", pa.string()),
            pa.field("row_count", pa.int64()),
        ],
        metadata={STAMP_KEY: str(stamp)} if stamp > 1 else None,
    )
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def _leave_runs(root: Root) -> None:
    options = root.storage_options()
    run = open_manifest(root.uri).create_branch("__run__01", (None, 2), storage_options=options)
    run.create_branch("__run__02", ("__run__01", 2), storage_options=options)
    for name in ("_graph_runs.lance", "_graph_run_actors.lance"):
        _write(root, name, pa.table({"run": ["01"]}))


def _log(root: Root) -> None:
    rows = [
        (_COMMIT_IDS[0], None, 2, None, "act-ada", 1_000_000),
        (_COMMIT_IDS[1], "review/1", 3, _COMMIT_IDS[0], "act-dee", 2_000_000),
        (_COMMIT_IDS[2], None, 3, _COMMIT_IDS[0], "act-cyd", 3_000_000),
    ]
    names = ("graph_commit_id", "manifest_branch", "manifest_version", "parent_commit_id", "actor_id", "created_at")
    table = pa.Table.from_pylist([dict(zip(names, row)) for row in rows])
    nothing = pa.nulls(len(rows), pa.string())
    _write(root, "_graph_commits.lance", table.append_column("merged_parent_commit_id", nothing))
