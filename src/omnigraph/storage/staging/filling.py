"""New columns with values, beside the data that is there: only the new columns are written.

Each fragment gets one more data file with the new columns, and a `Merge` transaction makes them part of the table. The
same transaction can rename and drop other columns, so that a change of a table's columns is always one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from lance.dataset import LanceOperation

from omnigraph.errors import BadRequest
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.staging.lance_schemas import changed_schema
from omnigraph.storage.staging.staging import staged
from omnigraph.storage.values import StagedWrite, TableVersion

Fill = Callable[[pa.RecordBatch], pa.RecordBatch]


def stage_filled_columns(
    handles: Handles,
    table: TableVersion,
    fill: Fill,
    *,
    read: Sequence[str],
    add: Sequence[pa.Field] = (),
    rename: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    nullable: Mapping[str, bool] | None = None,
) -> StagedWrite:
    """Stage the columns that `fill` computes from each batch of the `read` columns, with other changes of columns.

    `add`, `rename`, `drop` and `nullable` are as in `columns.stage_columns`; `drop` may name a column that is read.
    """
    handle = handles.at(table)
    fragments = []
    schema = None
    with lance_errors("filling new columns of", table):
        for fragment in handle.get_fragments():
            metadata, schema = fragment.merge_columns(fill, columns=list(read))
            fragments.append(metadata)
        if schema is None:
            raise BadRequest(f"{table} has no rows: there is nothing to fill")
        highest = max(int(handle.max_field_id), *(file_id for f in fragments for d in f.files for file_id in d.fields))
        schema = changed_schema(schema, highest, add=add, rename=rename, drop=drop, nullable=nullable)
    rows = sum(fragment.num_rows for fragment in fragments)
    return staged(table, LanceOperation.Merge(fragments, schema), rows_updated=rows)
