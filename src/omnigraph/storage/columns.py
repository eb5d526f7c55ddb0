"""Changes of a table's columns and of its own metadata, staged like any other write and tagged when committed.

Adding an all-null column, renaming, dropping and changing nullability touch no data file: they are one `Project`
transaction with a new schema. Lance makes that transaction conflict with every concurrent change of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from lance.dataset import LanceOperation

from omnigraph.errors import BadRequest
from omnigraph.storage.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_schemas import changed_schema
from omnigraph.storage.staging import staged
from omnigraph.storage.values import StagedWrite, TableVersion


def stage_columns(
    handles: Handles,
    table: TableVersion,
    *,
    add: Sequence[pa.Field] = (),
    rename: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    nullable: Mapping[str, bool] | None = None,
) -> StagedWrite:
    """Stage new nullable columns, renames, drops and changes of nullability, all in one transaction.

    The names in `rename`, `drop` and `nullable` are those before the change. That no null is left in a column that
    becomes required is for the caller to check.
    """
    handle = handles.at(table)
    with lance_errors("changing the columns of", table):
        schema = changed_schema(
            handle.lance_schema, int(handle.max_field_id), add=add, rename=rename, drop=drop, nullable=nullable
        )
    return staged(table, LanceOperation.Project(schema))


def stage_metadata(
    handles: Handles,
    table: TableVersion,
    updates: Mapping[str, str | None] | None = None,
    *,
    fields: Mapping[str, Mapping[str, str | None]] | None = None,
) -> StagedWrite:
    """Stage changes of the table's key-value metadata and of single columns' metadata; None removes a key."""
    handle = handles.at(table)
    ids = {field.name(): field.id() for field in handle.lance_schema.fields()}
    unknown = [name for name in fields or {} if name not in ids]
    if unknown:
        raise BadRequest(f"{table} has no column `{unknown[0]}`; it has {', '.join(ids)}")
    operation = LanceOperation.UpdateConfig(
        table_metadata_updates=LanceOperation.UpdateMap(dict(updates)) if updates else None,
        field_metadata_updates={
            ids[name]: LanceOperation.UpdateMap(dict(changes)) for name, changes in (fields or {}).items()
        }
        or None,
    )
    return staged(table, operation)
