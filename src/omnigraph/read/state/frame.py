"""The rows of a running query: for each variable an array of integer codes, for each computed column an Arrow array."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.read.codes.arrays import Codes, Mask, bytes_taken

NULL = -1
"""The code of no entity."""


@dataclass(frozen=True, slots=True)
class EntityCodes:
    """A computed column that holds entities (a group key `$x`), of these tables."""

    tables: tuple[str, ...]
    codes: Codes


ComputedColumn: TypeAlias = "Any | EntityCodes"
"""An Arrow array, or entities."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Bindings: for each variable the codes of its entities, `NULL` where an `optional` found nothing.

    Computed columns are aliases of an earlier stage, scores, aggregates, and paths under the names of their variables.
    """

    length: int
    bindings: dict[str, Codes] = field(default_factory=dict)
    columns: dict[str, ComputedColumn] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        computed = sum(
            column.codes.nbytes if isinstance(column, EntityCodes) else bytes_taken(column)
            for column in self.columns.values()
        )
        return sum(codes.nbytes for codes in self.bindings.values()) + computed

    def take(self, rows: Codes) -> Frame:
        """The rows at these places, in this order."""
        at = pa.array(rows) if self.columns else None
        columns: dict[str, ComputedColumn] = {
            name: EntityCodes(column.tables, column.codes[rows]) if isinstance(column, EntityCodes) else column.take(at)
            for name, column in self.columns.items()
        }
        return Frame(len(rows), {var: codes[rows] for var, codes in self.bindings.items()}, columns)

    def keep(self, mask: Mask) -> Frame:
        """The rows for which the mask is true."""
        if bool(mask.all()):
            return self
        return self.take(mask.nonzero()[0])

    def slice(self, start: int, stop: int) -> Frame:
        """A stretch of the rows."""
        columns: dict[str, ComputedColumn] = {
            name: EntityCodes(column.tables, column.codes[start:stop])
            if isinstance(column, EntityCodes)
            else column.slice(start, stop - start)
            for name, column in self.columns.items()
        }
        bindings = {var: codes[start:stop] for var, codes in self.bindings.items()}
        return Frame(stop - start, bindings, columns)

    def append(self, other: Frame) -> Frame:
        """These rows, then those of a frame with the same variables and columns."""
        bindings = {var: np.concatenate([codes, other.bindings[var]]) for var, codes in self.bindings.items()}
        columns = {name: _appended(column, other.columns[name]) for name, column in self.columns.items()}
        return Frame(self.length + other.length, bindings, columns)

    def joined(self, other: Frame) -> Frame:
        """These variables and columns beside those of a frame with as many rows."""
        return Frame(self.length, {**self.bindings, **other.bindings}, {**self.columns, **other.columns})

    def only(self, variables: Iterable[str], columns: Iterable[str] = ()) -> Frame:
        """With just these variables and columns. A path is a column under the name of its variable."""
        names = tuple(variables)
        kept = {name: self.columns[name] for name in (*columns, *(n for n in names if n not in self.bindings))}
        return Frame(self.length, {n: self.bindings[n] for n in names if n in self.bindings}, kept)

    def bind(self, var: str, codes: Codes) -> Frame:
        """With one more variable."""
        return Frame(self.length, {**self.bindings, var: codes}, self.columns)

    def compute(self, name: str, column: ComputedColumn) -> Frame:
        """With one more computed column."""
        return Frame(self.length, self.bindings, {**self.columns, name: column})


def _appended(one: Any, two: Any) -> ComputedColumn:
    if isinstance(one, EntityCodes) and isinstance(two, EntityCodes):
        return EntityCodes(one.tables, np.concatenate([one.codes, two.codes]))
    return pa.concat_arrays([one, two if two.type == one.type else two.cast(one.type)])


UNIT = Frame(1)
"""One row that binds nothing."""
