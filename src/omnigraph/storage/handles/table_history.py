"""What happened to a table: its transactions, its differences, its versions, and their removal.

Lance cannot give every transaction back (one that rewrote an index raises), so what cannot be read is judged by what it
did to the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.errors import BadRequest, HistoryGap, OmniGraphError
from omnigraph.storage.handles.forks import list_forks
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import TableNotFound, lance_errors
from omnigraph.storage.objects.object_errors import first_line
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.staging.staged_files import line_directory
from omnigraph.storage.values import TableDelta, TableVersion, TransactionInfo, VersionInfo

_NEUTRAL = (
    LanceOperation.Rewrite,
    LanceOperation.CreateIndex,
    LanceOperation.UpdateConfig,
    LanceOperation.Clone,
)
CREATED = "_row_created_at_version"
UPDATED = "_row_last_updated_at_version"
UNREADABLE = "Unreadable"
OTHER = "Other"

LISTINGS = 5
"""How often versions are listed while others remove some of them."""


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
    line = TableVersion(location, branch, to_version)
    handle = handles.private(line)
    return [_transaction(handles, handle, line.at(version)) for version in range(after_version + 1, to_version + 1)]


def delta(handles: Handles, location: str, branch: str | None, begin: int, end: int) -> TableDelta:
    """Rows inserted and updated, and row ids deleted, after version `begin` up to `end` of one line.

    Costs what the change costs, not what the table holds. The line's versions must still exist (`HistoryGap`), and
    `begin` may not lie before the start of a fork: compare line by line. Reverts by a restore are not seen as
    updates.
    """
    table = TableVersion(location, branch, end)
    try:
        if _is_from_elsewhere(handles, table) or _is_from_elsewhere(handles, table.at(begin)):
            return _delta_of_handles(handles, table.at(begin), table)
        found = handles.at(table).delta(begin_version=begin, end_version=end)
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
    for look in range(LISTINGS):
        handle = handles.newest(location, branch)
        try:
            with lance_errors("listing the versions of", location):
                found = handle.versions()
            break
        except TableNotFound:
            # One that was listed has been removed before it was read: the next listing lacks it.
            if look == LISTINGS - 1:
                raise
    return [VersionInfo(int(entry["version"]), entry["timestamp"].astimezone(UTC)) for entry in found]


def remove_versions(handles: Handles, location: str, branch: str | None, unwanted: Iterable[int]) -> int:
    """Remove exactly these versions of one line and the files that only they need; the bytes that became free.

    What a fork or a Lance tag refers to stays by itself. The newest version is refused. Lance passes over a version
    whose description cannot be removed, and removes its files all the same: that is made good here, or told.
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
    _remove_hollow(handles, [TableVersion(location, branch, version) for version in wanted])
    return int(removed.bytes_removed)


def _remove_hollow(handles: Handles, versions: Iterable[TableVersion]) -> None:
    """Remove those versions that are still there and have lost files: nobody could read them."""
    objects = open_objects(handles.root)
    lines = {version.manifest_file.rpartition("/")[0] for version in versions}
    there = {entry.path for line in lines for entry in objects.list(line)}
    for version in versions:
        if version.manifest_file not in there:
            continue
        fragments = handles.at(version).get_fragments()
        files = [file for fragment in fragments for file in fragment.metadata.files if file.base_id is None]
        if any(objects.head(f"{line_directory(version)}/data/{file._path}") is None for file in files):
            objects.delete(version.manifest_file)
            handles.forget(version.location, version.branch, frozenset({version.version}))


def _transaction(handles: Handles, handle: LanceDataset, made: TableVersion) -> TransactionInfo:
    version = made.version
    try:
        with lance_errors("reading the transaction of", f"version {version}"):
            found = handle.read_transaction(version)
    except OmniGraphError:
        found = None
    if found is None:
        return TransactionInfo(version, None, UNREADABLE, {}, _rows_changed(handles, made))
    operation = found.operation
    known = type(operation) is not LanceOperation.BaseOperation
    changes = not _is_neutral(operation) if known else _rows_changed(handles, made)
    kind = type(operation).__name__ if known else OTHER
    return TransactionInfo(version, str(found.uuid), kind, dict(found.transaction_properties or {}), changes)


def _is_neutral(operation: LanceOperation.BaseOperation) -> bool:
    if isinstance(operation, LanceOperation.Delete):
        # Lance commits a deletion that found no row, too.
        return not operation.updated_fragments and not operation.deleted_fragment_ids
    return isinstance(operation, _NEUTRAL)


def _rows_changed(handles: Handles, made: TableVersion) -> bool | None:
    try:
        older, newer = handles.at(made.at(made.version - 1)), handles.at(made)
        if older.schema == newer.schema and _pieces(older) == _pieces(newer):
            # A reservation of fragments. To compare the rows would take longer, and a compaction has writers waiting.
            return False
        found = delta(handles, made.location, made.branch, made.version - 1, made.version)
        readers = (found.inserted, found.updated, found.deleted_row_ids)
        return any(batch.num_rows for reader in readers for batch in reader)
    except Exception:
        return None


def _pieces(handle: LanceDataset) -> list[FragmentMetadata]:
    """What the rows of a version are kept in: files, which of their rows are deleted, and the ids of all."""
    return [fragment.metadata for fragment in handle.get_fragments()]


def _is_from_elsewhere(handles: Handles, table: TableVersion) -> bool:
    """Whether Lance would look in the wrong place for a version. Main lines share nothing with any other place."""
    try:
        return table.branch is not None and handles.written_elsewhere(table)
    except TableNotFound:
        return False


def _delta_of_handles(handles: Handles, begin: TableVersion, end: TableVersion) -> TableDelta:
    """The difference from two handles alone. Lance's own opens the older version by itself, and would look for what a
    fork of a moved graph inherited at the place it came from. Costs what the row ids of the table cost."""
    older, newer = handles.at(begin), handles.at(end)
    columns = [*newer.schema.names, CREATED, UPDATED]

    def younger(condition: str) -> pa.RecordBatchReader:
        return _readable(newer.scanner(columns=columns, filter=condition, with_row_id=True).to_reader(), end)

    def row_ids(handle: LanceDataset) -> pa.Array:
        return handle.scanner(columns=[], with_row_id=True).to_table()["_rowid"].combine_chunks()

    before = row_ids(older)
    deleted = before.filter(pc.invert(pc.is_in(before, value_set=row_ids(newer))))
    return TableDelta(
        younger(f"{CREATED} > {begin.version}"),
        younger(f"{UPDATED} > {begin.version} AND {CREATED} <= {begin.version}"),
        pa.table({"_rowid": deleted}).to_reader(),
    )


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
