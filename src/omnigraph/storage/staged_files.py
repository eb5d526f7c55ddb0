"""Which files a staged write made, so that an abandoned one can be cleared away."""

from __future__ import annotations

from collections.abc import Iterable

from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.storage.values import TableVersion


def files_of(table: TableVersion, operation: LanceOperation.BaseOperation) -> tuple[str, ...]:
    """The data files (and the directories of blobs beside them) of an operation's new fragments, below the root.

    Deletion vectors are named by Lance and not told; `cleanup` finds them, they are small.
    """
    base = f"{table.location}/tree/{table.branch}" if table.branch else table.location
    paths: list[str] = []
    for fragment in new_fragments_of(operation):
        for file in fragment.files:
            path = str(file.path)
            paths.append(f"{base}/data/{path}")
            paths.append(f"{base}/data/{path.removesuffix('.lance')}/")
    return tuple(paths)


def new_fragments_of(operation: LanceOperation.BaseOperation) -> Iterable[FragmentMetadata]:
    """The fragments that an operation brings in."""
    if isinstance(operation, LanceOperation.Update):
        return list(operation.new_fragments)
    if isinstance(operation, LanceOperation.Append | LanceOperation.Overwrite):
        return list(operation.fragments)
    return ()
