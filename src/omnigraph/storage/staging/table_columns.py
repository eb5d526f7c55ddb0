"""Changes of a table's columns, staged like any other write and tagged when committed.

Adding an all-null column, renaming, dropping and changing nullability touch no data file: they are one `Project`
transaction with a new schema. Lance makes that transaction conflict with every concurrent change of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from lance.dataset import LanceOperation

from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.staging.lance_schemas import changed_schema
from omnigraph.storage.staging.staging import staged
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
