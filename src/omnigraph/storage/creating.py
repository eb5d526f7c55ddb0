"""New tables, and what is newest of existing ones."""

from __future__ import annotations

from collections.abc import Mapping

import lance
import pyarrow as pa

from omnigraph.errors import Conflict, StorageKind
from omnigraph.failpoints import declare, failpoint
from omnigraph.storage.constants import FILE_FORMAT, ROWS_PER_FILE
from omnigraph.storage.handles import Handles
from omnigraph.storage.lance_errors import TableExists, TableNotFound, lance_errors
from omnigraph.storage.staging import Rows, as_reader
from omnigraph.storage.uri import clean_path
from omnigraph.storage.values import TableVersion

declare("storage.create.before", "in create, before the first version of a new table is written")
declare("storage.create.after", "in create, after the first version of a new table was written")


def create(
    handles: Handles,
    location: str,
    schema: pa.Schema,
    rows: Rows | None = None,
    properties: Mapping[str, str] | None = None,
) -> TableVersion:
    """A new table with stable row ids, empty or with these rows. `TableExists` when something is there.

    `properties` are kept with the transaction that makes the table, like those of a commit.
    """
    location = clean_path(location)
    failpoint("storage.create.before")
    handles.called("commit", location)
    try:
        with lance_errors("creating a table at", location):
            made = lance.write_dataset(
                as_reader(rows if rows is not None else [], schema),
                handles.uri(location, None),
                mode="create",
                enable_stable_row_ids=True,
                data_storage_version=FILE_FORMAT,
                max_rows_per_file=ROWS_PER_FILE,
                storage_options=handles.storage_options,
                transaction_properties=dict(properties or {}),
                session=handles.session,
            )
    except Conflict as error:
        raise TableExists(f"there is a table at {location} already", StorageKind.PRECONDITION) from error
    failpoint("storage.create.after")
    version = TableVersion(location, None, int(made.version))
    handles.remember(version, made)
    return version


def head(handles: Handles, location: str, branch: str | None) -> TableVersion:
    """The newest version of one line, looked up afresh."""
    return TableVersion(clean_path(location), branch, int(handles.newest(location, branch).version))


def exists(handles: Handles, location: str) -> bool:
    """Whether there is a table."""
    try:
        handles.newest(location, None)
    except TableNotFound:
        return False
    return True
