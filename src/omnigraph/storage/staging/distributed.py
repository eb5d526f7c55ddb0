"""Writing a table's fragments in other processes: plain functions over plain values that pickle.

A worker gets a `WriteTarget` and hands back JSON; the driver makes one staged write of it (`stage_fragments`). Import
this module inside the worker's function: Lance must not be loaded before a process forks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata
from lance.fragment import write_fragments as lance_write_fragments

from omnigraph.storage.constants import FILE_FORMAT, ROWS_PER_FILE
from omnigraph.storage.handles.base_paths import open_line
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.staging.row_streams import row_stream
from omnigraph.storage.staging.staging import all_field_ids, delete_addresses, staged, with_row_ids
from omnigraph.storage.values import StagedWrite, TableVersion


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """One line of a table as a worker sees it."""

    uri: str
    version: int
    storage_options: dict[str, str] | None = None
    branch: str | None = None


def write_target(handles: Handles, table: TableVersion) -> WriteTarget:
    """The address of a table for workers."""
    return WriteTarget(handles.uri(table.location, table.branch), table.version, handles.storage_options, table.branch)


def write_fragments(
    target: WriteTarget | str,
    batches: Iterable[pa.RecordBatch] | pa.Table,
    schema: pa.Schema,
    row_ids: Sequence[int] = (),
    *,
    overwrite: bool = False,
) -> list[str]:
    """Write rows as fragments that the table does not refer to yet; their descriptions as JSON.

    `row_ids` are the stable row ids that the first rows had before: rows that are updated keep theirs. With
    `overwrite` the schema need not be the table's own.
    """
    place = WriteTarget(target, 0) if isinstance(target, str) else target
    with row_stream("writing fragments of", place.uri, batches, schema) as stream:
        written = lance_write_fragments(
            stream,
            place.uri,
            mode="overwrite" if overwrite else "append",
            data_storage_version=FILE_FORMAT,
            max_rows_per_file=ROWS_PER_FILE,
            storage_options=place.storage_options,
        )
    kept = with_row_ids([fragment for fragment in written if fragment.physical_rows], row_ids)
    return [json.dumps(fragment.to_json()) for fragment in kept]


def delete_rows(target: WriteTarget, addresses: Sequence[int] | pa.Array) -> tuple[list[str], list[int]]:
    """Mark rows as deleted by row address: the changed fragments as JSON and the ids of those that became empty."""
    with lance_errors("opening", target.uri):
        handle = open_line(target.uri, target.branch, target.version, target.storage_options)
    array = addresses if isinstance(addresses, pa.Array) else pa.array(addresses, pa.uint64())
    thinner, emptied = delete_addresses(handle, TableVersion(target.uri, None, target.version), array)
    return [json.dumps(fragment.to_json()) for fragment in thinner], emptied


def stage_fragments(
    handles: Handles,
    table: TableVersion,
    new_fragments: Sequence[str],
    *,
    updated_fragments: Sequence[str] = (),
    removed_fragment_ids: Sequence[int] = (),
    rows_updated: int = 0,
    rows_deleted: int = 0,
    overwrite: bool = False,
) -> StagedWrite:
    """What workers wrote, as one staged write. `rows_updated` of the new rows replace old ones.

    With `overwrite` the new fragments become the whole content of the table, in its present schema.
    """
    handle = handles.at(table)
    added = [FragmentMetadata.from_json(text) for text in new_fragments]
    rows = sum(fragment.physical_rows for fragment in added)
    if overwrite:
        operation: LanceOperation.BaseOperation = LanceOperation.Overwrite(handle.lance_schema, added)
        return staged(table, operation, rows_added=rows, rows_deleted=handle.count_rows())
    operation = LanceOperation.Update(
        removed_fragment_ids=list(removed_fragment_ids),
        updated_fragments=[FragmentMetadata.from_json(text) for text in updated_fragments],
        new_fragments=added,
        update_mode="rewrite_rows",
        fields_for_preserving_frag_bitmap=all_field_ids(handle),
    )
    return staged(
        table, operation, rows_added=rows - rows_updated, rows_updated=rows_updated, rows_deleted=rows_deleted
    )
