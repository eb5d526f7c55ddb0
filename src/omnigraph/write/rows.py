"""Decoded rows of one type: the form between a source (JSON, frames, statements) and validation.

Every source is turned into this one form, so that each rule of the data is written once. It pickles, so a Spark task
can make it and check it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.write.validate.collector import NOWHERE, Place


@dataclass(frozen=True)
class Rows:
    """Rows of one table, from one source.

    `table` has every column of the physical table, in its order and types; `id` is null where the record gave none.
    `mentioned` says per property which rows named it (a property that is missing here was named by every row): a merge
    keeps the properties that a record does not name. `failed` lists cells that the decoder has already reported, by
    property: they hold null and are not reported again.
    """

    table_key: str
    table: pa.Table
    source: str | None = None
    records: pa.Array | None = None
    mentioned: Mapping[str, pa.Array] = field(default_factory=dict)
    failed: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    def place(self, row: int) -> Place:
        """Where in the input a row came from."""
        if self.records is None:
            return NOWHERE if self.source is None else Place(self.source, None)
        record = self.records[row].as_py()
        return NOWHERE if record is None else Place(self.source, record)

    def with_table(self, table: pa.Table) -> Rows:
        """The same rows with other columns."""
        return replace(self, table=table)

    def take(self, indices: pa.Array) -> Rows:
        """Some of the rows, in the order of `indices`. Reported cells keep their mark."""
        position = {int(old): new for new, old in enumerate(indices.to_pylist())} if self.failed else {}
        return Rows(
            self.table_key,
            self.table.take(indices),
            self.source,
            None if self.records is None else self.records.take(indices),
            {name: pc.take(mask, indices) for name, mask in self.mentioned.items()},
            {name: frozenset(position[row] for row in rows if row in position) for name, rows in self.failed.items()},
        )


def concat_rows(parts: list[Rows]) -> Rows:
    """Rows of one table and one source, one after the other."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    names = {name for part in parts for name in part.mentioned}
    failed: dict[str, frozenset[int]] = {}
    start = 0
    for part in parts:
        for name, rows in part.failed.items():
            failed[name] = failed.get(name, frozenset()) | {row + start for row in rows}
        start += part.count
    return Rows(
        first.table_key,
        pa.concat_tables([part.table for part in parts]),
        first.source,
        None if first.records is None else _concat([part.records for part in parts]),
        {name: _concat([part.mentioned.get(name, _all_true(part.count)) for part in parts]) for name in sorted(names)},
        failed,
    )


def _all_true(count: int) -> pa.Array:
    return pa.repeat(pa.scalar(True), count)


def _concat(arrays: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays([piece for array in arrays for piece in _chunks(array)])


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return list(array.chunks) if isinstance(array, pa.ChunkedArray) else [array]
