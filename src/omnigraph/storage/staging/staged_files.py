"""Which files a staged write made, so that an abandoned one can be cleared away."""

from __future__ import annotations

from collections.abc import Iterable

from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.storage.values import TableVersion


def files_of(table: TableVersion, operation: LanceOperation.BaseOperation) -> tuple[str, ...]:
    """The files of an operation, below the graph's root; a path that ends in `/` is a directory.

    Data files, the directories of blobs beside them, and index segments. Deletion vectors (`vectors_of`) are small, and
    `cleanup` finds them.
    """
    base = line_directory(table)
    paths: list[str] = []
    for fragment in new_fragments_of(operation):
        for file in fragment.files:
            path = str(file.path)
            paths += [f"{base}/data/{path}", f"{base}/data/{path.removesuffix('.lance')}/"]
    if isinstance(operation, LanceOperation.CreateIndex):
        paths += [f"{base}/_indices/{index.uuid}/" for index in operation.new_indices]
    return tuple(paths)


def vectors_of(table: TableVersion, operation: LanceOperation.BaseOperation) -> tuple[str, ...] | None:
    """The deletion vectors that an operation brings in; None for one that adds other files than `files_of` and these.

    To be asked when the operation is staged: the commit lists a fragment that has not changed beside those that have.
    """
    if isinstance(operation, LanceOperation.Append | LanceOperation.Overwrite | LanceOperation.Restore):
        return ()
    if not isinstance(operation, LanceOperation.Update):
        return None
    return tuple(path for fragment in operation.updated_fragments if (path := vector_of(table, fragment)) is not None)


def vector_of(table: TableVersion, fragment: FragmentMetadata) -> str | None:
    """The deletion vector of a fragment, if it has one on its own line."""
    deleted = fragment.deletion_file
    if deleted is None or deleted.base_id is not None:
        return None
    return f"{line_directory(table)}/_deletions/{str(deleted.path(fragment.id)).rsplit('/', 1)[-1]}"


def line_directory(table: TableVersion) -> str:
    """Where one line of a table keeps its files."""
    return f"{table.location}/tree/{table.branch}" if table.branch else table.location


def new_fragments_of(operation: LanceOperation.BaseOperation) -> Iterable[FragmentMetadata]:
    """The fragments that an operation brings in."""
    if isinstance(operation, LanceOperation.Update):
        return list(operation.new_fragments)
    if isinstance(operation, LanceOperation.Append | LanceOperation.Overwrite):
        return list(operation.fragments)
    return ()
