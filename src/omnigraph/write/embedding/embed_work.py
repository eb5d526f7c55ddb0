"""The rows of a table that want vectors, and their vectors on the shelf. The same in process and in a Spark task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.choices import EmbedMode
from omnigraph.embed.due import Due, due
from omnigraph.embed.text_vectors import TextVectors
from omnigraph.failpoints import declare, failpoint
from omnigraph.schema.catalog import GraphType, Property
from omnigraph.schema.types import VectorType
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from omnigraph.write.embedding.shelf import VectorShelf
from omnigraph.write.rows.row_columns import identity_columns
from omnigraph.write.validate.key_changes import one_array

declare("embed.kept", "Some more vectors are on the shelf; the graph is as it was")

ROWS_AT_ONCE = 4096
"""Rows of a table that are looked at together."""

KEPT_TEXTS, KEPT_SECONDS = 4096, 2.0
"""Vectors are put on the shelf when they are so many, or when the last were put so many seconds ago."""


@dataclass(frozen=True, slots=True)
class Target:
    """An `@embed` property and the model that makes its vectors (None: nobody was asked for it)."""

    vector: Property
    text: str
    model: str | None

    @property
    def dim(self) -> int:
        """How many numbers its vectors have."""
        assert isinstance(self.vector.type, VectorType)
        return self.vector.type.dim


@dataclass(frozen=True, slots=True)
class TableWork:
    """The properties of one table that are to be embedded."""

    type: GraphType
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class DueRows:
    """Rows of one batch of a table with what each property of the work wants of them."""

    rows: pa.Table
    wanted: tuple[Due, ...]

    def texts(self, target: Target, number: int) -> tuple[pa.Array, list[str]]:
        """The ids and texts of the rows that want a vector of the target with this number."""
        chosen = pa.array(np.flatnonzero(self.wanted[number].make))
        texts: list[str] = self.rows[target.text].take(chosen).to_pylist()
        return one_array(self.rows["id"].take(chosen)), texts


def due_rows(
    tables: TableStore,
    table: TableVersion,
    work: TableWork,
    mode: EmbedMode,
    fragments: Sequence[int] | None = None,
) -> Iterator[DueRows]:
    """The rows of a table, or of some of its fragments, a batch at a time, as far as they want anything."""
    columns = [*identity_columns(work.type)]
    for target in work.targets:
        columns += [target.text, target.vector.column]
    for batch in tables.scan(table, columns=list(dict.fromkeys(columns)), fragments=fragments, batch_size=ROWS_AT_ONCE):
        rows = pa.Table.from_batches([batch])
        yield DueRows(rows, tuple(_due(rows, target, mode) for target in work.targets))


def _due(rows: pa.Table, target: Target, mode: EmbedMode) -> Due:
    return due(one_array(rows[target.text]), one_array(rows[target.vector.column]), mode, target.model)


Told = Callable[[int], None]
"""Hears how many rows more have their vector."""


class ShelfFiller:
    """Makes vectors of texts and puts them on a shelf; what was made is put there even when the next text fails."""

    def __init__(self, shelf: VectorShelf, vectors: TextVectors, declared: str | None, told: Told) -> None:
        self._shelf = shelf
        self._vectors = vectors
        self._declared = declared
        self._told = told
        self._at_once = vectors.settings.batch * vectors.settings.parallel
        self._asked: dict[bytes, tuple[str, str]] = {}
        self._made: dict[bytes, np.ndarray[Any, np.dtype[np.float32]]] = {}
        self._last_put = time.monotonic()

    def add(self, shown: str, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Take texts of rows; those whose vector is on the shelf are done."""
        for id_, text in zip(ids, texts, strict=True):
            key = self._shelf.key(text)
            if key in self._asked or key in self._made or self._shelf.has(key):
                self._told(1)
                continue
            self._asked[key] = (text, f"{shown} `{id_}`")
            if len(self._asked) >= self._at_once:
                self._ask()

    def finish(self) -> None:
        """Make and keep what is left."""
        self._ask()
        self.keep()

    def keep(self) -> None:
        """Put on the shelf what was made."""
        if self._made:
            self._shelf.put(list(self._made), np.stack(list(self._made.values())))
            self._made = {}
            failpoint("embed.kept")
        self._last_put = time.monotonic()

    def _ask(self) -> None:
        if not self._asked:
            return
        asked, self._asked = self._asked, {}
        names = [name for _, name in asked.values()]
        made = self._vectors.make(
            [text for text, _ in asked.values()], dim=self._shelf.dim, model=self._declared, named=names.__getitem__
        )
        self._made.update(zip(asked, made, strict=True))
        self._told(len(asked))
        if len(self._made) >= KEPT_TEXTS or time.monotonic() - self._last_put >= KEPT_SECONDS:
            self.keep()


def fill_shelf(
    batches: Iterator[DueRows],
    work: TableWork,
    shelves: Sequence[VectorShelf],
    vectors: TextVectors,
    told: Told,
) -> None:
    """Make the vectors that some rows want and the shelves (one for each target) do not have."""
    fillers = [
        ShelfFiller(shelf, vectors, target.vector.embed.model if target.vector.embed else None, told)
        for shelf, target in zip(shelves, work.targets, strict=True)
    ]
    try:
        for batch in batches:
            for number, (target, filler) in enumerate(zip(work.targets, fillers, strict=True)):
                if batch.wanted[number].make.any():
                    ids, texts = batch.texts(target, number)
                    filler.add(shown(work.type, target), ids.to_pylist(), texts)
        for filler in fillers:
            filler.finish()
    finally:
        for filler in fillers:
            filler.keep()


def shown(type_: GraphType, target: Target) -> str:
    """The text of a target as messages name it."""
    assert target.vector.embed is not None
    return f"`{target.vector.embed.source}` of {type_.name}"
