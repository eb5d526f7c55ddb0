"""Indexes that cannot be read. They are derived: reads do without them, and building them anew mends all."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from omnigraph.errors import StorageError
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.objects.object_errors import first_line, is_passing
from omnigraph.storage.staging.staged_files import line_directory
from omnigraph.storage.values import TableVersion


def damaged_indexes(
    handles: Handles, table: TableVersion, differing: Callable[[str], Iterable[str]] = lambda directory: ()
) -> dict[str, str]:
    """The indexes of a version that cannot be read to their end, each with what is wrong. Reads all of them.

    `differing` tells which files of a directory are not what was published.
    """
    handle = handles.private(table)
    with lance_errors("listing the indexes of", table):
        described = [index for index in handle.describe_indices() if not index.name.startswith("__")]
    found: dict[str, str] = {}
    for index in described:
        places = [f"{line_directory(table)}/_indices/{segment.uuid}/" for segment in index.segments]
        changed = [path for place in places for path in differing(place)]
        if changed:
            found[index.name] = f"the file {changed[0]} of the index `{index.name}` is not what was published"
            continue
        try:
            with lance_errors(f"reading the index `{index.name}` of", table):
                handle.prewarm_index(index.name)
        except StorageError as error:
            if is_passing(error):
                raise
            why = first_line(error.__cause__ or error)
            parts = ", ".join(f"_indices/{segment.uuid}" for segment in index.segments)
            found[index.name] = f"the index `{index.name}` of {table} ({parts}) cannot be read: {why}"
    return found
