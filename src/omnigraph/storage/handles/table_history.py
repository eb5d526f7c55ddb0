"""What happened to a table: its transactions, its differences, its versions, and their removal.

Lance cannot give every transaction back (one that rewrote an index raises), so what cannot be read is judged by what it
did to the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Any

import pyarrow as pa
from lance.dataset import LanceDataset, LanceOperation

from omnigraph.errors import BadRequest, HistoryGap, OmniGraphError
from omnigraph.storage.handles.forks import list_forks
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.objects.object_errors import first_line
from omnigraph.storage.values import TableDelta, TableVersion, TransactionInfo, VersionInfo

_NEUTRAL = (
    LanceOperation.Rewrite,
    LanceOperation.CreateIndex,
    LanceOperation.UpdateConfig,
    LanceOperation.Clone,
)
UNREADABLE = "Unreadable"
OTHER = "Other"


def transactions(
    handles: Handles, location: str, branch: str | None, after_version: int, to_version: int
) -> list[TransactionInfo]:
    """What made each version after `after_version` up to `to_version`, oldest first.

    A transaction that Lance cannot read has the kind `Unreadable`. Whether it, or one of a kind that is not known here
    (`Other`, such as the reservation of fragments), changed content is found out from the rows; when even that is not
    possible, `changes_content` is None.
    """
    if to_version <= after_version:
        return []
    handle = handles.private(TableVersion(location, branch, to_version))
    return [_transaction(handle, version) for version in range(after_version + 1, to_version + 1)]


def delta(handles: Handles, location: str, branch: str | None, begin: int, end: int) -> TableDelta:
    """Rows inserted and updated, and row ids deleted, after version `begin` up to `end` of one line.

    Costs what the change costs, not what the table holds. The line's versions must still exist (`HistoryGap`), and
    `begin` may not lie before the start of a fork: compare line by line. Reverts by a restore are not seen as
    updates.
    """
    table = TableVersion(location, branch, end)
    try:
        handle = handles.at(table)
        found = handle.delta(begin_version=begin, end_version=end)
        return TableDelta(
            _readable(found.get_inserted_rows(), table),
            _readable(found.get_updated_rows(), table),
            _readable(found.get_deleted_row_ids(), table),
        )
    except OmniGraphError:
        raise
    except Exception as error:
        _refuse_begin_before_fork(handles, table, begin)
        raise HistoryGap(
            f"the difference of {location} between versions {begin} and {end} cannot be told: a version of that range "
            f"has been removed by cleanup ({first_line(error)})"
        ) from error


def versions(handles: Handles, location: str, branch: str | None) -> list[VersionInfo]:
    """The versions of one line that exist, oldest first."""
    handle = handles.newest(location, branch)
    with lance_errors("listing the versions of", location):
        found = handle.versions()
    return [VersionInfo(int(entry["version"]), entry["timestamp"].astimezone(UTC)) for entry in found]


def remove_versions(handles: Handles, location: str, branch: str | None, unwanted: Iterable[int]) -> int:
    """Remove exactly these versions of one line and the files that only they need; the bytes that became free.

    What a fork or a Lance tag refers to stays by itself. The newest version is refused.
    """
    wanted = sorted(set(unwanted))
    newest = handles.newest(location, branch)
    handle = handles.private(TableVersion(location, branch, int(newest.version)))
    if handle.version in wanted:
        raise BadRequest(f"version {handle.version} of {location} is its newest and cannot be removed")
    if not wanted:
        return 0
    with lance_errors("removing old versions of", location):
        removed = handle.cleanup_old_versions(versions=wanted, error_if_tagged_old_versions=False)
    handles.forget(location, branch, frozenset(wanted))
    return int(removed.bytes_removed)


def _transaction(handle: LanceDataset, version: int) -> TransactionInfo:
    try:
        with lance_errors("reading the transaction of", f"version {version}"):
            found = handle.read_transaction(version)
    except OmniGraphError:
        found = None
    if found is None:
        return TransactionInfo(version, None, UNREADABLE, {}, _rows_changed(handle, version))
    operation = found.operation
    known = type(operation) is not LanceOperation.BaseOperation
    changes = not isinstance(operation, _NEUTRAL) if known else _rows_changed(handle, version)
    kind = type(operation).__name__ if known else OTHER
    return TransactionInfo(version, str(found.uuid), kind, dict(found.transaction_properties or {}), changes)


def _rows_changed(handle: LanceDataset, version: int) -> bool | None:
    try:
        found = handle.delta(begin_version=version - 1, end_version=version)
        readers = (found.get_inserted_rows(), found.get_updated_rows(), found.get_deleted_row_ids())
        with lance_errors("comparing", f"version {version}"):
            return any(batch.num_rows for reader in readers for batch in reader)
    except Exception:
        return None


def _readable(reader: Any, table: TableVersion) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(reader.schema, _batches(reader, table))


def _batches(reader: Any, table: TableVersion) -> Iterator[pa.RecordBatch]:
    with lance_errors("comparing versions of", table):
        yield from reader


def _refuse_begin_before_fork(handles: Handles, table: TableVersion, begin: int) -> None:
    if table.branch is None:
        return
    start = next(
        (fork.parent_version for fork in list_forks(handles, table.location) if fork.name == table.branch), None
    )
    if start is not None and begin < start:
        raise BadRequest(
            f"the fork `{table.branch}` of {table.location} starts at version {start}; a difference from version "
            f"{begin} crosses into its parent and has to be made line by line"
        )
