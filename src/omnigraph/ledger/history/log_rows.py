"""The rows of the commit log `_graph_commits.lance`, and the commits they stand for."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.errors import StorageError, StorageKind
from omnigraph.ledger.manifest.pins import CHECKPOINT_EVERY, Pins, encode_pins
from omnigraph.ledger.values import CommitOperation, GraphCommit, WriterKind

LOG = "_graph_commits.lance"
ID = "graph_commit_id"

SCHEMA = pa.schema(
    [
        pa.field(ID, pa.string(), nullable=False),
        pa.field("manifest_branch", pa.string()),
        pa.field("manifest_version", pa.int64(), nullable=False),
        pa.field("parent_commit_id", pa.string()),
        pa.field("merged_parent_commit_id", pa.string()),
        pa.field("actor_id", pa.string()),
        pa.field("created_at", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("changes_data", pa.bool_(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("incarnation", pa.string(), nullable=False),
        pa.field("schema_digest", pa.string(), nullable=False),
        # How many first parents away the last whole set of pins is; null when the pins are not known.
        pa.field("pins_depth", pa.int32()),
        pa.field("pins", pa.binary()),
        # The mutations of a combined commit; null for any other.
        pa.field("operations", pa.binary()),
        # What a revert, a restore or a cherry-pick is about; null for any other commit.
        pa.field("about", pa.string()),
    ]
)
COMMIT_COLUMNS = tuple(name for name in SCHEMA.names if name != "pins")


class LogDamaged(StorageError):
    """The log cannot be read: files of it are damaged or gone. It is derived, and can be rebuilt."""


def log_damaged(why: object) -> LogDamaged:
    """The error for a log that cannot be read."""
    return LogDamaged(
        f"the commit log {LOG} is damaged or gone ({why}). Branches can be read all the same; `omnigraph repair "
        "--confirm` rebuilds it from the manifest",
        StorageKind.PERMANENT,
        path=LOG,
    )


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A commit on its way into the log: with the pins of its snapshot and those of its first parent, when known, and
    the checksums of the files that it added."""

    commit: GraphCommit
    pins: Pins | None
    parent_pins: Pins | None = None
    files: Mapping[str, str] | None = None


def row_of(entry: LogEntry, parent_depth: int | None) -> dict[str, Any]:
    """The row of a commit. `parent_depth` is that of its first parent's row, None when that is not known."""
    row = {**entry.commit.to_json(), "pins_depth": None, "pins": None}
    row["operations"] = zlib.compress(orjson.dumps(row["operations"])) if entry.commit.operations else None
    if entry.pins is None:
        return row
    relative = entry.parent_pins is not None and parent_depth is not None and parent_depth + 1 < CHECKPOINT_EVERY
    row["pins"] = encode_pins(entry.pins, entry.parent_pins if relative else None, entry.files)
    row["pins_depth"] = parent_depth + 1 if relative and parent_depth is not None else 0
    return row


def commit_of_row(row: Mapping[str, Any]) -> GraphCommit:
    """The commit of a row that was read whole."""
    values = {name: row[name] for name in COMMIT_COLUMNS if name != "pins_depth"}
    return _commit(values)


class LoggedCommits:
    """The commits of a scanned part of the log, by position. Each is built when it is asked for: most never are."""

    def __init__(self, table: pa.Table) -> None:
        # Through numpy: ten thousand rows come out of Arrow several times as fast as by `to_pylist`.
        columns = {name: table[name].to_numpy().tolist() for name in COMMIT_COLUMNS if name != "pins_depth"}
        self.ids: Sequence[str] = columns[ID]
        self.first_parents: Sequence[str | None] = columns["parent_commit_id"]
        self.merged_parents: Sequence[str | None] = columns["merged_parent_commit_id"]
        self.depths: Sequence[int | None] = table["pins_depth"].to_pylist()
        self._columns = columns

    def commit(self, position: int) -> GraphCommit:
        """The commit at that position."""
        values = {name: column[position] for name, column in self._columns.items()}
        try:
            return _commit(values)
        except (ValueError, TypeError, KeyError, zlib.error) as cause:
            raise log_damaged(cause) from cause


def in_todays_columns(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows of a log, with nulls for columns that it does not have yet."""
    for name in columns:
        if name not in table.column_names:
            table = table.append_column(SCHEMA.field(name), pa.nulls(table.num_rows, SCHEMA.field(name).type))
    return table.select(list(columns))


def _commit(values: Mapping[str, Any]) -> GraphCommit:
    return GraphCommit(
        **{**values, "kind": WriterKind(values["kind"]), "operations": _operations(values["operations"])}
    )


def _operations(data: bytes | None) -> tuple[CommitOperation, ...]:
    return tuple(CommitOperation.from_json(one) for one in orjson.loads(zlib.decompress(data))) if data else ()
