"""Staged writes: files on disk and the transaction that would make them part of a table, with no effect on its HEAD.

Every change of rows is one `Update` transaction built here: rows that change or go are marked in deletion vectors of
their fragments, the new state of changed rows is written with their old stable row ids (so that their creation is
remembered), and new rows follow. The same shape serves append, upsert, delete and any mix of them, it is what
distributed writers produce too, and the strict commit can guard it (see `committing`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import Transaction
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata, RowIdSequence
from lance.fragment import write_fragments as lance_write_fragments

from omnigraph.errors import BadRequest
from omnigraph.storage.constants import FILE_FORMAT, ID_COLUMN, ROWS_PER_FILE
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.reading.reading import take_ids, unique_ids
from omnigraph.storage.staging.plain_paths import with_plain_paths
from omnigraph.storage.staging.row_streams import Rows, row_stream
from omnigraph.storage.staging.staged_files import files_of, new_fragments_of, vectors_of
from omnigraph.storage.staging.written_rows import WrittenRows
from omnigraph.storage.values import StagedWrite, TableVersion


def stage_append(
    handles: Handles, table: TableVersion, rows: Rows, *, written: WrittenRows | None = None
) -> StagedWrite:
    """Stage new rows. The caller has made sure that their ids are new. `written` are the files that it has already."""
    handle = handles.at(table)
    fragments = write_once(handle, table, rows, written)
    handles.fragment_ids.note(handle, fragments, rows)
    operation = LanceOperation.Update(
        new_fragments=fragments, update_mode="rewrite_rows", fields_for_preserving_frag_bitmap=all_field_ids(handle)
    )
    return staged(table, operation, rows_added=sum(f.physical_rows for f in fragments))


def stage_again(handles: Handles, table: TableVersion, write: StagedWrite) -> StagedWrite:
    """Stage rows that `stage_append` has written once more, on a later version of the same line."""
    operation = LanceOperation.Update(
        new_fragments=list(write.transaction.operation.new_fragments),
        update_mode="rewrite_rows",
        fields_for_preserving_frag_bitmap=all_field_ids(handles.at(table)),
    )
    return staged(table, operation, rows_added=write.rows_added)


def stage_upsert(
    handles: Handles, table: TableVersion, rows: pa.Table, *, key: str = ID_COLUMN, there: pa.Table | None = None
) -> StagedWrite:
    """Stage whole rows by id: those that exist are replaced and keep their row id, the others are added."""
    return stage_change(handles, table, rows, None, key=key, there=there)


def stage_delete(
    handles: Handles, table: TableVersion, ids: Sequence[str] | pa.Array | pa.ChunkedArray, *, key: str = ID_COLUMN
) -> StagedWrite:
    """Stage the removal of rows by id. Ids that are not there are passed over; `is_empty` tells when none was."""
    return stage_change(handles, table, None, ids, key=key)


def stage_change(
    handles: Handles,
    table: TableVersion,
    upserts: pa.Table | None,
    delete_ids: Sequence[str] | pa.Array | pa.ChunkedArray | None,
    *,
    key: str = ID_COLUMN,
    there: pa.Table | None = None,
    written: WrittenRows | None = None,
) -> StagedWrite:
    """Stage upserts and deletes of one table as one transaction. No id may be in both, and none twice.

    `there` is for a caller who has just read this version and knows which of the ids exist and where: their key,
    `_rowid` and `_rowaddr`. Otherwise they are looked up. `written` are the files that the caller has already.
    """
    handle = handles.readable(table)
    upsert_ids = _checked_ids(table, upserts, key)
    doomed = unique_ids(delete_ids) if delete_ids is not None else pa.array([], pa.string())
    if len(doomed) and len(upsert_ids):
        both = doomed.filter(pc.is_in(doomed, value_set=upsert_ids.cast(doomed.type)))
        if len(both):
            raise BadRequest(f"a write to {table} both changes and deletes the row `{both[0].as_py()}`")
    touched = pa.concat_arrays([upsert_ids.cast(pa.string()), doomed.cast(pa.string())])
    if there is None:
        found = take_ids(handles, table, touched, [key], key=key, with_row_id=True, with_row_address=True)
    else:
        found = there.filter(pc.is_in(there[key], value_set=touched.cast(there[key].type)))
    thinner, emptied = delete_addresses(handle, table, found["_rowaddr"])
    new_fragments: list[FragmentMetadata] = []
    updated = 0
    if upserts is not None and upserts.num_rows:
        old_rows = found.filter(pc.is_in(found[key], value_set=upsert_ids.cast(found[key].type)))
        updated = old_rows.num_rows
        ordered, row_ids = _old_rows_first(upserts, upsert_ids, old_rows, key)
        new_fragments = with_row_ids(write_once(handle, table, ordered, written), row_ids)
        handles.fragment_ids.note(handle, new_fragments, ordered)
    operation = LanceOperation.Update(
        removed_fragment_ids=emptied,
        updated_fragments=thinner,
        new_fragments=new_fragments,
        update_mode="rewrite_rows",
        fields_for_preserving_frag_bitmap=all_field_ids(handle),
    )
    return staged(
        table,
        operation,
        rows_added=(upserts.num_rows if upserts is not None else 0) - updated,
        rows_updated=updated,
        rows_deleted=found.num_rows - updated,
    )


def stage_overwrite(handles: Handles, table: TableVersion, rows: Rows, schema: pa.Schema | None = None) -> StagedWrite:
    """Stage the replacement of the whole content, by no rows too. With a `schema` the columns change as well."""
    handle = handles.at(table)
    if schema is None or schema.equals(handle.schema, check_metadata=True):
        written = write_rows(handle, table, rows)
        operation = LanceOperation.Overwrite(handle.lance_schema, written)
    else:
        with row_stream("writing rows of", table, rows, schema) as stream:
            transaction = lance_write_fragments(
                stream,
                handle,
                mode="overwrite",
                return_transaction=True,
                data_storage_version=FILE_FORMAT,
                max_rows_per_file=ROWS_PER_FILE,
            )
        operation = transaction.operation
    added = sum(fragment.physical_rows for fragment in operation.fragments)
    return staged(table, operation, rows_added=added, rows_deleted=handle.count_rows())


def write_rows(handle: LanceDataset, table: TableVersion, rows: Rows) -> list[FragmentMetadata]:
    """Write rows as fragments of a table that refers to them nowhere yet. No rows make no file."""
    with row_stream("writing rows of", table, rows, handle.schema) as stream:
        written: list[FragmentMetadata] = lance_write_fragments(
            stream,
            handle,
            data_storage_version=FILE_FORMAT,
            max_rows_per_file=ROWS_PER_FILE,
        )
    return [fragment for fragment in written if fragment.physical_rows]


def write_once(
    handle: LanceDataset, table: TableVersion, rows: Rows, written: WrittenRows | None
) -> list[FragmentMetadata]:
    """Like `write_rows`, unless the caller has files with these rows already."""
    found = written.find(handle, table, rows) if written is not None else None
    if found is not None:
        return found
    fragments = write_rows(handle, table, rows)
    if written is not None:
        written.note(handle, table, rows, fragments)
    return fragments


def delete_addresses(
    handle: LanceDataset, table: TableVersion, addresses: pa.ChunkedArray | pa.Array
) -> tuple[list[FragmentMetadata], list[int]]:
    """Mark rows as deleted by address: fragments with their new deletion vectors, and the ids of emptied ones."""
    ordered = np.sort(np.asarray(addresses.to_numpy(), dtype=np.uint64))
    fragment_ids, starts = np.unique(ordered >> np.uint64(32), return_index=True)
    thinner: list[FragmentMetadata] = []
    emptied: list[int] = []
    with lance_errors("marking deleted rows of", table):
        for fragment_id, own in zip(fragment_ids.tolist(), np.split(ordered, starts[1:])):
            left = handle.get_fragment(fragment_id).delete_rows((own & np.uint64(0xFFFFFFFF)).tolist())
            if left is None:
                emptied.append(fragment_id)
            else:
                thinner.append(left)
    return thinner, emptied


def stage_restore(handles: Handles, table: TableVersion, version: int) -> StagedWrite:
    """Stage the content, and the columns, of an older version of the line. `TableNotFound` when that is gone.

    Only to be committed inside the commit window with the branch's lease held: Lance accepts a restore while another
    commit is under way, and that commit would vanish.
    """
    handles.private(table.at(version))
    return staged(table, LanceOperation.Restore(version))


def with_row_ids(fragments: list[FragmentMetadata], row_ids: Sequence[int]) -> list[FragmentMetadata]:
    """Give the first rows of freshly written fragments the stable row ids they had before; the rest get new ones."""
    start = 0
    for fragment in fragments:
        own = row_ids[start : start + fragment.physical_rows]
        if len(own):
            fragment.row_id_meta = RowIdSequence(list(own)).to_inline_metadata()
        start += fragment.physical_rows
    return fragments


def staged(
    table: TableVersion,
    operation: LanceOperation.BaseOperation,
    *,
    rows_added: int = 0,
    rows_updated: int = 0,
    rows_deleted: int = 0,
) -> StagedWrite:
    """A staged write around an operation."""
    with_plain_paths(new_fragments_of(operation))
    return StagedWrite(
        table.location,
        table.branch,
        table.version,
        Transaction(table.version, operation),
        rows_added,
        rows_updated,
        rows_deleted,
        files_of(table, operation),
        vectors_of(table, operation),
    )


def all_field_ids(handle: LanceDataset) -> list[int]:
    """Every field id of the table, so that no index takes rewritten rows for covered."""
    pending = list(handle.lance_schema.fields())
    ids: list[int] = []
    while pending:
        field = pending.pop()
        ids.append(field.id())
        pending.extend(field.children())
    return sorted(ids)


def _checked_ids(table: TableVersion, upserts: pa.Table | None, key: str) -> pa.Array:
    if upserts is None:
        return pa.array([], pa.string())
    ids = upserts[key].combine_chunks()
    if ids.null_count:
        raise BadRequest(f"a row for {table} has no `{key}`")
    counts = pc.value_counts(ids)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        raise BadRequest(f"a write to {table} has the row `{repeated.field('values')[0].as_py()}` twice")
    return ids


def _old_rows_first(upserts: pa.Table, ids: pa.Array, old_rows: pa.Table, key: str) -> tuple[pa.Table, list[int]]:
    """The upserts with the rows that exist already in front, and the row ids of those."""
    position = pc.index_in(ids, value_set=old_rows[key].combine_chunks().cast(ids.type))
    existing = position.is_valid()
    ordered = pa.concat_tables([upserts.filter(existing), upserts.filter(pc.invert(existing))])
    return ordered, old_rows["_rowid"].take(position.drop_null()).to_pylist()
