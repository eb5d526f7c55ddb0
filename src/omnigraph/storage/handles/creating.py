"""New tables, and what is newest of existing ones."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from lance.dataset import LanceDataset
from lance.fragment import write_fragments

from omnigraph.errors import Conflict, StorageKind
from omnigraph.failpoints import declare, failpoint
from omnigraph.storage.constants import FILE_FORMAT, ROWS_PER_FILE
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import TableExists, TableNotFound
from omnigraph.storage.staging.row_streams import Rows, row_stream
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
    uri = handles.uri(location, None)
    failpoint("storage.create.before")
    handles.called("commit", location)
    try:
        with row_stream("creating a table at", location, rows if rows is not None else [], schema) as stream:
            # Not `lance.write_dataset`: of two that create at once it would let the later one overwrite the earlier.
            transaction = write_fragments(
                stream,
                uri,
                mode="create",
                return_transaction=True,
                data_storage_version=FILE_FORMAT,
                max_rows_per_file=ROWS_PER_FILE,
                storage_options=handles.storage_options,
                session=handles.sessions.of(location),
            )
            transaction.transaction_properties = dict(properties or {})
            made = LanceDataset.commit(
                uri,
                transaction,
                max_retries=0,
                enable_stable_row_ids=True,
                enable_v2_manifest_paths=True,
                storage_options=handles.storage_options,
            )
    except (Conflict, TableNotFound) as error:
        # Lance looks for the version before the first when somebody else's first version came between.
        if isinstance(error, Conflict) or exists(handles, location):
            raise TableExists(f"there is a table at {location} already", StorageKind.PRECONDITION) from error
        raise
    if made.version != 1:
        raise TableExists(
            f"another writer created {location} at the same time, and this one landed on top of it as version "
            f"{made.version}",
            StorageKind.PRECONDITION,
            landed_version=int(made.version),
        )
    failpoint("storage.create.after")
    version = TableVersion(location, None, 1)
    handles.remember(version, made)
    return version


def head(handles: Handles, location: str, branch: str | None) -> TableVersion:
    """The newest version of one line, looked up afresh."""
    known = handles.known_newest(location, branch)
    return TableVersion(
        clean_path(location), branch, known if known is not None else int(handles.newest(location, branch).version)
    )


def exists(handles: Handles, location: str) -> bool:
    """Whether there is a table."""
    try:
        handles.newest(location, None)
    except TableNotFound:
        return False
    return True
