"""The rows of `__manifest`, and the values they stand for.

One current row per table and one `graph_head` row on each line. The commit is inside the head row, so it is atomic with
the publish that it describes. A stream of loads has a row too, with the last of its batches: it is published together
with what the batch brought, and nothing but the next batch changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.ledger.manifest.stamp import CURRENT, STAMP_KEY, WRITER, WRITER_KEY
from omnigraph.ledger.values import CommitOperation, GraphCommit, StreamBatch, TablePin, WriterKind

MANIFEST = "__manifest"
HEAD_ID = "graph_head"
KEY_COLUMN = "object_id"
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}

TABLE_VERSION = "table_version"
TABLE_TOMBSTONE = "table_tombstone"
STREAM = "stream"

Row = dict[str, Any]

_OF_A_TABLE = ("table_key", "location", "table_version", "row_count")
"""Columns without a value in other rows, which the row of a table has. In a damaged file a column may be lost."""

SCHEMA = pa.schema(
    [
        pa.field(KEY_COLUMN, pa.string(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.string()),
        pa.field("table_key", pa.string()),
        pa.field("table_version", pa.int64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.int64()),
    ],
    metadata={STAMP_KEY: str(CURRENT), WRITER_KEY: WRITER},
)

PLACES = pa.schema([SCHEMA.field(KEY_COLUMN), pa.field("_rowid", pa.uint64()), pa.field("_rowaddr", pa.uint64())])
"""Rows that were read carry these beside their columns, so that a publish need not look for what it rewrites."""


def table_row(pin: TablePin, *, tombstone: bool = False) -> Row:
    """The one current row of a table. It is keyed by the type's stable id, so a renamed table keeps its row."""
    return {
        KEY_COLUMN: f"table:{pin.type_id}",
        "object_type": TABLE_TOMBSTONE if tombstone else TABLE_VERSION,
        "location": pin.location,
        "metadata": orjson.dumps({"owner": pin.owner}).decode(),
        "base_objects": None,
        "table_key": pin.table_key,
        "table_version": pin.version,
        "table_branch": pin.lance_branch,
        "row_count": pin.row_count,
    }


def head_row(commit: GraphCommit, files: Mapping[str, str] | None = None) -> Row:
    """The row that every publish rewrites: its commit, and the checksums of the files that it adds."""
    row: Row = dict.fromkeys(SCHEMA.names)
    row[KEY_COLUMN] = row["object_type"] = HEAD_ID
    row["metadata"] = orjson.dumps(
        {"commit": commit.to_json(), "schema_digest": commit.schema_digest, "files": files or {}}
    ).decode()
    return row


def stream_row(batch: StreamBatch) -> Row:
    """The one row of a stream: the last of its batches that the branch has."""
    row: Row = dict.fromkeys(SCHEMA.names)
    row |= {KEY_COLUMN: f"{STREAM}:{batch.stream}", "object_type": STREAM}
    row["metadata"] = orjson.dumps({"batch": batch.batch}).decode()
    return row


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Rows as Arrow data in the manifest's own schema."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def placed(rows: Iterable[Row]) -> pa.Table:
    """Where rows that were read lie: their key, stable row id and address."""
    return pa.Table.from_pylist([{name: row[name] for name in PLACES.names} for row in rows], schema=PLACES)


def pins_of(rows: Sequence[Row]) -> dict[str, TablePin]:
    """The live tables by key, sorted."""
    pins = [_pin(row) for row in rows if row["object_type"] == TABLE_VERSION]
    return {pin.table_key: pin for pin in sorted(pins, key=lambda pin: pin.table_key)}


def streams_of(rows: Sequence[Row]) -> dict[str, int]:
    """The last batch of each stream."""
    found = [row for row in rows if row["object_type"] == STREAM]
    return {row[KEY_COLUMN].removeprefix(f"{STREAM}:"): _metadata(row)["batch"] for row in found}


def head_of(rows: Sequence[Row], where: object) -> GraphCommit:
    """The commit that made this state."""
    heads = [row for row in rows if row["object_type"] == HEAD_ID]
    if len(heads) != 1:
        raise InternalError(f"{where} has {len(heads)} `{HEAD_ID}` rows and must have one; run `omnigraph verify`")
    return commit_from_json(_metadata(heads[0])["commit"])


def files_of(rows: Sequence[Row]) -> dict[str, str]:
    """The checksums of the files that the publish of this state added; none in graphs from before they were kept."""
    heads = [row for row in rows if row["object_type"] == HEAD_ID]
    return dict(_metadata(heads[0]).get("files") or {}) if heads else {}


def commit_from_json(content: Mapping[str, Any]) -> GraphCommit:
    """The commit that `GraphCommit.to_json` was given."""
    operations = tuple(CommitOperation.from_json(one) for one in content.get("operations", ()))
    return GraphCommit(**{**content, "kind": WriterKind(content["kind"]), "operations": operations})


def _pin(row: Row) -> TablePin:
    for name in _OF_A_TABLE:
        if row[name] is None:
            raise _damaged(row, name)
    return TablePin(
        table_key=row["table_key"],
        type_id=row[KEY_COLUMN].removeprefix("table:"),
        location=row["location"],
        lance_branch=row["table_branch"],
        version=row["table_version"],
        row_count=row["row_count"],
        owner=_metadata(row)["owner"],
    )


def _metadata(row: Row) -> dict[str, Any]:
    try:
        found: dict[str, Any] = orjson.loads(row["metadata"])
    except orjson.JSONDecodeError:
        raise _damaged(row, "metadata") from None
    return found


def _damaged(row: Row, name: str) -> InternalError:
    return InternalError(
        f"the row `{row[KEY_COLUMN]}` of `{MANIFEST}` has no `{name}` that can be read: a file of it is damaged. Put "
        "it back from a copy; `omnigraph verify` tells what else is wrong"
    )
