"""The data files that one write has made so far, so that it need not make them again when it is prepared again.

A file of rows belongs to no version of its table before it is committed. When a write lost a race, or was prepared
while it waited for its turn, and comes to the same rows on a later version, the same files serve.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from lance.dataset import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.storage.values import StagedWrite, TableVersion

MOST_BYTES = 1_000_000
"""Rows of more bytes than this are written again: to keep and to compare them is no longer little."""


@dataclass(frozen=True, slots=True)
class _Made:
    location: str
    branch: str | None
    fields: tuple[tuple[str, int], ...]
    rows: pa.Table
    fragments: tuple[FragmentMetadata, ...]


class WrittenRows:
    """The files of one write. Used by one thread at a time."""

    def __init__(self) -> None:
        self._made: list[_Made] = []
        self._staged: dict[tuple[str, ...], StagedWrite] = {}

    def find(self, handle: LanceDataset, table: TableVersion, rows: object) -> list[FragmentMetadata] | None:
        """Fragments with exactly these rows, written for this line of a table while it had the same columns."""
        if not isinstance(rows, pa.Table) or not self._made:
            return None
        fields = _fields(handle)
        for made in self._made:
            here = (made.location, made.branch, made.fields) == (table.location, table.branch, fields)
            if here and made.rows.schema.equals(rows.schema) and _content(made.rows) == _content(rows):
                return _copies(made.fragments)
        return None

    def note(self, handle: LanceDataset, table: TableVersion, rows: object, fragments: list[FragmentMetadata]) -> None:
        """Know which rows fragments were written for."""
        if isinstance(rows, pa.Table) and fragments and rows.nbytes <= MOST_BYTES:
            kept = tuple(_copies(fragments))
            self._made.append(_Made(table.location, table.branch, _fields(handle), rows, kept))

    def keep(self, staged: StagedWrite) -> bool:
        """Take charge of the files of a staged write, if they are among those that are known here."""
        known = {file._path for made in self._made for fragment in made.fragments for file in fragment.files}
        names = {path.rpartition("/")[2] for path in staged.new_files if not path.endswith("/")}
        if not names or not names <= known:
            return False
        self._staged[staged.new_files] = staged
        return True

    def committed(self, writes: Iterable[StagedWrite]) -> None:
        """These are the table's by now."""
        for staged in writes:
            self._staged.pop(staged.new_files, None)

    def forget(self) -> None:
        """Somebody else finishes or undoes the write, and needs its files."""
        self._staged.clear()

    def unused(self) -> list[StagedWrite]:
        """What has files that no commit has taken."""
        return list(self._staged.values())


def _fields(handle: LanceDataset) -> tuple[tuple[str, int], ...]:
    return tuple((field.name(), field.id()) for field in handle.lance_schema.fields())


def _content(rows: pa.Table) -> bytes:
    """Rows as bytes: by their values two zeros are equal and two NaN are not."""
    batches = rows.combine_chunks().to_batches()
    return b"".join(batch.serialize().to_pybytes() for batch in batches)


def _copies(fragments: Iterable[FragmentMetadata]) -> list[FragmentMetadata]:
    """Fragments of their own: staging gives them the ids of the rows that they replace."""
    return [copy.copy(fragment) for fragment in fragments]
