"""Data files whose path is a plain text.

A data file of Lance makes a class each time somebody asks for its path, so that an old way of asking goes on working,
and a commit asks four times. Such a class is garbage that only the collector finds. It made nearly all of what one-row
writes leave to the collector, and so brought on its full rounds, in which every writer stands still for 60 ms.
"""

from __future__ import annotations

from collections.abc import Iterable

from lance.fragment import DataFile, FragmentMetadata


class _PlainPath(DataFile):  # type: ignore[misc]  # Lance's classes are untyped
    @property
    def path(self) -> str:
        return str(self._path)


def with_plain_paths(fragments: Iterable[FragmentMetadata]) -> None:
    """Have the files of fragments tell their paths as they are. To be asked of our own descriptions only."""
    for fragment in fragments:
        for file in fragment.files:
            file.__class__ = _PlainPath
