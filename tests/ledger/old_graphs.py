"""Forged graphs of the internal schema versions 1, 2 and 3, as the original program left them.

`__manifest` has a `table` row per table and a growing history of `table_version` rows; graph branches are Lance
branches of it under their public names, and forks of tables have the branch's name too; the schema is `_schema.pg`
alone. `_graph_commits.lance` has one Lance branch per graph branch and no actors: those are in a dataset of their own,
as are recoveries. A write in flight has a sidecar that names tables by path, and its commits carry no tag.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import lance
import pyarrow as pa

from omnigraph.ledger.manifest.stamp import STAMP_KEY
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import Root, parse_root
from tests.ledger.graphs import SCHEMA

PERSON_AT, KNOWS_AT = "nodes/person-4711", "edges/knows-4712"
OPERATION = "01M7HG7SDST2HZP8K8PJ912K1T"
DELETED_COMMIT = "01H00000000000000000000DEL"
OUTCOMES = '[{"table_key": "node:Person", "from_version": 5, "to_version": 4}]'
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
            pa.field("base_objects", pa.list_(pa.string())),
            pa.field("table_key", pa.string(), nullable=False),
            pa.field("table_version", pa.uint64()),
            pa.field("table_branch", pa.string()),
            pa.field("row_count", pa.uint64()),
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
    first, on_review, on_main = _COMMIT_IDS
    main = _write(root, "_graph_commits.lance", _commits((first, None, 2, None, None, 1_000_000)))
    review = main.create_branch("review/1", (None, 1), storage_options=root.storage_options())
    lance.write_dataset(_commits((on_review, "review/1", 3, first, None, 2_000_000)), review, mode="append")
    # The branch that was merged is gone, and its commits with it.
    lance.write_dataset(_commits((on_main, None, 3, first, DELETED_COMMIT, 3_000_000)), main, mode="append")
    actors = [(first, "act-ada", 1_000_000), (on_review, "act-dee", 2_000_000), (on_main, "act-cyd", 3_000_000)]
    _write(root, "_graph_commit_actors.lance", _timed(actors, ("graph_commit_id", "actor_id", "created_at")))


def _commits(*rows: tuple) -> pa.Table:
    names = ("graph_commit_id", "manifest_branch", "manifest_version", "parent_commit_id", "merged_parent_commit_id")
    table = _timed(rows, (*names, "created_at"))
    types = {"manifest_version": pa.uint64()}
    return table.cast(pa.schema([pa.field(n, types.get(n) or _text_or_time(n)) for n in (*names, "created_at")]))


def _text_or_time(name: str) -> pa.DataType:
    return pa.timestamp("us") if name == "created_at" else pa.string()


def _timed(rows: Sequence[tuple], names: Sequence[str]) -> pa.Table:
    columns = {name: list(values) for name, values in zip(names, zip(*rows))}
    return pa.table({**columns, "created_at": pa.array(columns["created_at"], pa.timestamp("us"))})


def leave_recovery(path: str) -> None:
    """A recovery that the original program did and wrote down."""
    row = (_COMMIT_IDS[2], "RolledBack", "act-kill", "01H00000000000000000000REC", "Load", OUTCOMES, 4_000_000)
    names = ("graph_commit_id", "recovery_kind", "recovery_for_actor", "operation_id", "sidecar_writer_kind")
    rows = _timed([row], (*names, "per_table_outcomes_json", "created_at"))
    _write(parse_root(path), "_graph_commit_recoveries.lance", rows)


def leave_schema_lock(path: str) -> None:
    """The lock of a schema change whose maker is gone."""
    open_manifest(path).create_branch("__schema_apply_lock__", storage_options=parse_root(path).storage_options())


def leave_write(
    path: str, *, branch: str | None = None, people: int = 0, edges: int = 0, published: bool = False
) -> str:
    """A load of gus and hal, and an edge between them, whose writer died when these tables had moved; its id."""
    root = parse_root(path)
    line = f"/tree/{branch}" if branch else ""
    tables = [_planned(root, key, place, line) for key, place in (("node:Person", PERSON_AT), ("edge:Knows", KNOWS_AT))]
    if branch is not None:
        # The first edge on this branch: its line is made by the write itself.
        knows = lance.dataset(root.child(KNOWS_AT), storage_options=root.storage_options())
        knows.create_branch(branch, (None, 1), storage_options=root.storage_options())
    for _ in range(people):
        at = root.child(f"{PERSON_AT}{line}")
        _add(lance.dataset(at, storage_options=root.storage_options()), "gus")
    for _ in range(edges):
        rows = pa.table({"id": ["k"], "src": ["gus"], "dst": ["ada"]}, schema=_KNOWS)
        at = root.child(f"{KNOWS_AT}{line}")
        lance.write_dataset(rows, lance.dataset(at, storage_options=root.storage_options()), mode="append")
    if published:
        _publish(open_manifest(path), _version("node:Person", 5, 4), _version("edge:Knows", 2, 1))
    sidecar = {
        "schema_version": 1,
        "operation_id": OPERATION,
        "started_at": "1794810045881852",
        "branch": branch,
        "actor_id": "act-kill",
        "writer_kind": "Load",
        "tables": tables,
    }
    open_objects(root).put(f"__recovery/{OPERATION}.json", json.dumps(sidecar).encode())
    return OPERATION


def _planned(root: Root, key: str, place: str, line: str) -> dict:
    try:
        at = lance.dataset(root.child(f"{place}{line}"), storage_options=root.storage_options()).version
    except ValueError:
        at = lance.dataset(root.child(place), storage_options=root.storage_options()).version
    return {"table_key": key, "table_path": f"g.omni/{place}", "expected_version": at, "post_commit_pin": at + 1}
