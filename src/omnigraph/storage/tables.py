"""The tables of one graph: every read and every staged write, in one place.

`TableStore` holds the handles and hands over; each idea lives in its own module beside this one. There is no call that
writes and commits in one go, except `create`, which makes a table that nobody can know of yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage import blobs, committing, creating, forks, reading, staging
from omnigraph.storage.constants import HANDLE_CACHE_SIZE
from omnigraph.storage.filters import Filter
from omnigraph.storage.handles import Handles, Hook
from omnigraph.storage.staging import Rows
from omnigraph.storage.uri import Root
from omnigraph.storage.values import ForkInfo, FragmentInfo, StagedWrite, TableVersion

Ids: TypeAlias = Sequence[str] | pa.Array | pa.ChunkedArray


class TableStore:
    """The tables below a graph's root. Safe to share between threads; opening it reads nothing."""

    def __init__(self, root: Root, *, cache_size: int = HANDLE_CACHE_SIZE) -> None:
        self.root = root
        self.handles = Handles(root, cache_size)

    @property
    def on_call(self) -> Hook | None:
        """Called with (`open` | `commit` | `fork`, location) for each such call to Lance; tests count with it."""
        return self.handles.on_call

    @on_call.setter
    def on_call(self, hook: Hook | None) -> None:
        self.handles.on_call = hook

    def create(
        self,
        location: str,
        schema: pa.Schema,
        *,
        rows: Rows | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableVersion:
        """A new table, empty or with rows; see `creating.create`."""
        return creating.create(self.handles, location, schema, rows, properties)

    def head(self, location: str, branch: str | None = None) -> TableVersion:
        """The newest version of one line, looked up afresh."""
        return creating.head(self.handles, location, branch)

    def exists(self, location: str) -> bool:
        """Whether there is a table."""
        return creating.exists(self.handles, location)

    def schema(self, table: TableVersion) -> pa.Schema:
        """The table's Arrow schema."""
        return reading.schema(self.handles, table)

    def metadata(self, table: TableVersion) -> dict[str, str]:
        """The table's own key-value metadata."""
        return reading.metadata(self.handles, table)

    def count(self, table: TableVersion, filter: Filter | pc.Expression | None = None) -> int:
        """How many rows there are, or match."""
        return reading.count(self.handles, table, filter)

    def scan(self, table: TableVersion, **options: Any) -> pa.RecordBatchReader:
        """Stream rows; the options are those of `reading.scan`."""
        return reading.scan(self.handles, table, **options)

    def scan_table(self, table: TableVersion, **options: Any) -> pa.Table:
        """The rows of `scan`, all at once."""
        return reading.scan(self.handles, table, **options).read_all()

    def take_ids(self, table: TableVersion, ids: Ids, columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
        """Rows by id, in no particular order; see `reading.take_ids`."""
        return reading.take_ids(self.handles, table, ids, columns, **options)

    def take_rows(
        self, table: TableVersion, row_ids: Sequence[int] | pa.Array, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Rows by stable row id, with `_rowid`, in the order asked for."""
        return reading.take_rows(self.handles, table, row_ids, columns)

    def fragments(self, table: TableVersion) -> list[FragmentInfo]:
        """The fragments of a version."""
        return reading.fragments(self.handles, table)

    def blob_size(self, table: TableVersion, row_id: int, column: str) -> int | None:
        """The size of a blob, None when null."""
        return blobs.blob_size(self.handles, table, row_id, column)

    def read_blob(
        self, table: TableVersion, row_id: int, column: str, start: int = 0, end: int | None = None
    ) -> bytes | None:
        """Part of a blob; None when null."""
        return blobs.read_blob(self.handles, table, row_id, column, start, end)

    def stage_append(self, table: TableVersion, rows: Rows) -> StagedWrite:
        """Stage new rows."""
        return staging.stage_append(self.handles, table, rows)

    def stage_upsert(self, table: TableVersion, rows: pa.Table, *, key: str = reading.ID_COLUMN) -> StagedWrite:
        """Stage whole rows by id."""
        return staging.stage_upsert(self.handles, table, rows, key=key)

    def stage_delete(self, table: TableVersion, ids: Ids, *, key: str = reading.ID_COLUMN) -> StagedWrite:
        """Stage the removal of rows by id."""
        return staging.stage_delete(self.handles, table, ids, key=key)

    def stage_change(
        self, table: TableVersion, upserts: pa.Table | None, delete_ids: Ids | None, *, key: str = reading.ID_COLUMN
    ) -> StagedWrite:
        """Stage upserts and deletes as one transaction."""
        return staging.stage_change(self.handles, table, upserts, delete_ids, key=key)

    def stage_overwrite(self, table: TableVersion, rows: Rows, schema: pa.Schema | None = None) -> StagedWrite:
        """Stage the replacement of the whole content."""
        return staging.stage_overwrite(self.handles, table, rows, schema)

    def commit_staged(
        self, write: StagedWrite, operation_id: str, *, extra_properties: Mapping[str, str] | None = None
    ) -> TableVersion:
        """Move HEAD to exactly the next version, or raise `Conflict`; see `committing`."""
        return committing.commit_staged(self.handles, write, operation_id, extra_properties)

    def restore(self, target: TableVersion, expected_head: int, operation_id: str) -> TableVersion:
        """A new version with the content of an old one, right after `expected_head`."""
        return committing.restore(self.handles, target, expected_head, operation_id)

    def create_fork(self, table: TableVersion, name: str) -> TableVersion:
        """A new line that starts at this version."""
        return forks.create_fork(self.handles, table, name)

    def delete_fork(self, location: str, name: str) -> bool:
        """Remove a line; False when there was none."""
        return forks.delete_fork(self.handles, location, name)

    def list_forks(self, location: str) -> list[ForkInfo]:
        """The lines of a table beside its main one."""
        return forks.list_forks(self.handles, location)
