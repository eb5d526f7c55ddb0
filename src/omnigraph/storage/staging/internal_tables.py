"""Staged writes that only the graph's own bookkeeping tables need.

The commit log rewrites its last small fragment instead of adding one per commit (one fragment per commit makes Lance's
metadata grow with the square of the history), and the manifest carries a stamp in its schema's metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance.dataset import LanceOperation

from omnigraph.errors import BadRequest
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.staging.row_streams import Rows
from omnigraph.storage.staging.staging import staged, write_once
from omnigraph.storage.staging.written_rows import WrittenRows
from omnigraph.storage.values import StagedWrite, TableVersion


def stage_replace_fragments(
    handles: Handles,
    table: TableVersion,
    fragment_ids: Sequence[int],
    rows: Rows,
    *,
    written: WrittenRows | None = None,
) -> StagedWrite:
    """Stage `rows` in the place of whole fragments; they come last in the order of the table. Row ids are new.

    `written` are the files that the caller has already."""
    handle = handles.at(table)
    fragments = write_once(handle, table, rows, written)
    counts = {fragment.fragment_id: fragment.metadata.num_rows for fragment in handle.get_fragments()}
    missing = [number for number in fragment_ids if number not in counts]
    if missing:
        raise BadRequest(f"{table} has no fragment {missing[0]}")
    operation = LanceOperation.Update(
        removed_fragment_ids=list(fragment_ids), new_fragments=fragments, update_mode="rewrite_rows"
    )
    return staged(
        table,
        operation,
        rows_added=sum(fragment.physical_rows for fragment in fragments),
        rows_deleted=sum(counts[number] for number in fragment_ids),
    )


def stage_schema_metadata(
    handles: Handles,
    table: TableVersion,
    metadata: Mapping[str, str],
    field_metadata: Mapping[str, Mapping[str, str]] | None = None,
) -> StagedWrite:
    """Stage new entries in the metadata of the schema and, by column name, of its fields. No row changes."""
    handle = handles.at(table)
    field_ids = {field.name(): field.id() for field in handle.lance_schema.fields()}
    of_fields = {
        field_ids[name]: LanceOperation.UpdateMap(dict(entries), False)
        for name, entries in (field_metadata or {}).items()
    }
    operation = LanceOperation.UpdateConfig(
        schema_metadata_updates=LanceOperation.UpdateMap(dict(metadata), False),
        field_metadata_updates=of_fields or None,
    )
    return staged(table, operation)
