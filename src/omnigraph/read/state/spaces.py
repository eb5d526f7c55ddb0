"""Where the entities of one table are during a query: what a code stands for, and how to get at its columns.

Three forms with one face. `SortedSpace`: all ids of a node table are known and codes are ranks. `EdgeRowSpace`:
codes are rows of an edge table whose adjacency is in memory. `GrowingSpace`: only what the query has met is known,
for small look-ups in tables that are not worth reading as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import ir
from omnigraph.query.typing import variables_of
from omnigraph.read.codes.arrays import Codes, are_few, codes_of, combined
from omnigraph.read.codes.ids import GrowingIds, NodeIds, text_ranks
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import TableReader
from omnigraph.read.tables.values import holds, properties_of

SMALL_TABLE = 20_000
"""Columns of tables up to so many rows are read as a whole."""
WHOLE_COLUMN_SHARE = 16
"""A column is read as a whole when one row in so many is wanted."""
ORDER = "@order"
"""The key under which the ranks of ids are kept."""
TAKE = 1000.0
"""Rough microseconds of one look-up of a few rows, …"""
TAKE_ROW = 2.0
"""… for each row of it, …"""
READ_VALUE = 0.05
"""… and for each value of a whole column."""


class Space(Protocol):
    """The entities of one table."""

    def size(self) -> int:
        """Codes are below this."""
        ...

    def encode(self, ids: pa.Array) -> Codes:
        """Codes of ids that exist in the table."""
        ...

    def ids(self, codes: Codes) -> pa.Array:
        """The ids behind codes."""
        ...

    def order(self, codes: Codes) -> Codes:
        """Integers that sort as the ids do."""
        ...

    def columns(self, codes: Codes, names: Sequence[str]) -> list[pa.Array]:
        """Values of several properties, aligned with the codes."""
        ...

    def prefetch(self, codes: Codes, names: Sequence[str]) -> None:
        """Properties that will be asked for one by one are better read together now."""
        ...

    def scan(self, predicate: ir.Expr | None, carried: Sequence[str]) -> Codes:
        """The entities for which the predicate holds. `carried` properties will be asked for next."""
        ...

    def bind(self, rows: pa.Table, carried: Sequence[str]) -> Codes:
        """The entities of rows that were found another way, each once. `carried` properties came with their `id`."""
        ...

    def rows(self, codes: Codes) -> Codes | None:
        """The rows of the codes in the table's own order, when they are known."""
        ...


class _Rows:
    """Columns of a table by row number: from memory when they are there or worth having there, else by look-up."""

    def __init__(self, reader: TableReader, caches: ReadCaches, table_key: str) -> None:
        self.reader = reader
        self.caches = caches
        self.table_key = table_key
        self.row_count = reader.row_count(table_key)
        self._taken: tuple[Codes, dict[str, pa.Array]] = (np.empty(0, dtype=np.int64), {})

    def prefetch(self, rows: Codes, names: Sequence[str]) -> None:
        """Take several columns of the same rows at once, for the calls that follow."""
        self._taken = (rows, {})
        values = self.columns(rows, names)
        self._taken = (rows, dict(zip(names, values, strict=True)))

    def columns(self, rows: Codes, names: Sequence[str]) -> list[pa.Array]:
        """Values of several columns, aligned with the rows."""
        before, taken = self._taken
        if taken and all(name in taken for name in names) and np.array_equal(before, rows):
            return [taken[name] for name in names]
        state = self.reader.state(self.table_key)
        found = {name: column for name in names if (column := self.caches.cached_column(state, name)) is not None}
        missing = [name for name in dict.fromkeys(names) if name not in found]
        if missing:
            kept = [name for name in missing if self._worth_keeping(name, len(rows))]
            found.update({name: self.caches.column(self.reader, self.table_key, name) for name in kept})
            missing = [name for name in missing if name not in kept]
        at = pa.array(rows)
        values = {name: column.take(at) for name, column in found.items()}
        if missing:
            distinct, inverse = np.unique(rows, return_inverse=True)
            table = self.reader.take(self.table_key, distinct, missing)
            back = pa.array(inverse)
            values.update({name: combined(table.column(name)).take(back) for name in missing})
        return [values[name] for name in names]

    def _worth_keeping(self, name: str, wanted: int) -> bool:
        """Whether a column is read as a whole: much of it is wanted now, or look-ups have cost as much already."""
        if not self.caches.has_room_for(self.reader, self.table_key, name):
            return False
        if self.row_count <= SMALL_TABLE or wanted * WHOLE_COLUMN_SHARE >= self.row_count:
            return True
        key = (self.reader.state(self.table_key), name)
        self.caches.spend(key, TAKE + TAKE_ROW * wanted)
        return self.caches.spent[key] >= READ_VALUE * self.row_count

    def better_asked(self, predicate: ir.Expr) -> bool:
        """Whether the table answers a predicate by an index, or has columns in it that are too large to keep."""
        names = sorted(properties_of(predicate, variable_of(predicate)))
        state = self.reader.state(self.table_key)
        if all(self.caches.cached_column(state, name) is not None for name in names):
            return False
        if self.row_count > SMALL_TABLE and any(self.reader.is_indexed(self.table_key, name) for name in names):
            return True
        return not all(self.caches.has_room_for(self.reader, self.table_key, name) for name in names)

    def matching(self, predicate: ir.Expr, var: str) -> Codes:
        """Rows for which the predicate holds, evaluated on columns in memory."""
        columns = {
            name: self.caches.column(self.reader, self.table_key, name)
            for name in sorted(properties_of(predicate, var))
        }
        mask = holds(predicate, self.row_count, columns.__getitem__)
        return np.flatnonzero(mask.to_numpy(zero_copy_only=False)).astype(np.int64)


class SortedSpace:
    """A node table whose ids are all in memory, in order."""

    def __init__(self, reader: TableReader, caches: ReadCaches, table_key: str, key: str | None) -> None:
        """`key` is the property whose value is the id, if there is one: it need not be read."""
        self.nodes: NodeIds = caches.node_ids(reader, table_key)
        self._rows = _Rows(reader, caches, table_key)
        self._as_id = {"id", key}

    def size(self) -> int:
        """Codes are below this."""
        return len(self.nodes)

    def encode(self, ids: pa.Array) -> Codes:
        """Codes of ids, -1 for one that is not there."""
        return self.nodes.find(ids)

    def ids(self, codes: Codes) -> pa.Array:
        """The ids behind codes."""
        return self.nodes.ids.take(pa.array(codes))

    def order(self, codes: Codes) -> Codes:
        """Codes are in id order already."""
        return codes

    def columns(self, codes: Codes, names: Sequence[str]) -> list[pa.Array]:
        """Values of several properties."""
        stored = [name for name in names if name not in self._as_id]
        values = dict(zip(stored, self._rows.columns(self.nodes.rows_of(codes), stored), strict=True)) if stored else {}
        return [self.ids(codes) if name in self._as_id else values[name] for name in names]

    def prefetch(self, codes: Codes, names: Sequence[str]) -> None:
        """Read what is not in memory and not worth having there in one go."""
        self._rows.prefetch(self.nodes.rows_of(codes), [name for name in names if name not in self._as_id])

    def scan(self, predicate: ir.Expr | None, carried: Sequence[str]) -> Codes:
        """Codes in order, or those for which the predicate holds."""
        if predicate is None:
            return np.arange(len(self.nodes), dtype=np.int64)
        wanted = identity_of(predicate)
        if wanted is not None:
            codes = self.nodes.find(pa.array([wanted], pa.large_string()))
            return codes[codes >= 0]
        if self._rows.better_asked(predicate):
            table = self._rows.reader.scan(self._rows.table_key, ["id"], predicate)
            return np.sort(self.nodes.find(combined(table.column("id"))))
        return np.sort(self.nodes.codes_of_rows(self._rows.matching(predicate, variable_of(predicate))))

    def bind(self, rows: pa.Table, carried: Sequence[str]) -> Codes:
        """The codes of ids; properties are read when they are asked for."""
        return self.nodes.find(combined(rows.column("id")))

    def rows(self, codes: Codes) -> Codes | None:
        """Rows in the table's own order."""
        return self.nodes.rows_of(codes)


class EdgeRowSpace:
    """An edge table by row number."""

    def __init__(self, reader: TableReader, caches: ReadCaches, table_key: str) -> None:
        self._rows = _Rows(reader, caches, table_key)

    def size(self) -> int:
        """Codes are below this."""
        return self._rows.row_count

    def encode(self, ids: pa.Array) -> Codes:
        """Rows of edge ids."""
        known = self._rows.caches.column(self._rows.reader, self._rows.table_key, "id")
        return codes_of(pc.fill_null(pc.index_in(ids, value_set=known), -1))

    def ids(self, codes: Codes) -> pa.Array:
        """The ids behind codes."""
        return self.columns(codes, ["id"])[0]

    def order(self, codes: Codes) -> Codes:
        """Integers that sort as the ids do. The ranks of a whole table are kept once a good part of them is wanted."""
        rows = self._rows
        key = (rows.reader.state(rows.table_key), ORDER)
        known = rows.caches.codes.peek(key)
        if known is None:
            if len(codes) * WHOLE_COLUMN_SHARE < rows.row_count:
                return text_ranks(self.ids(codes))
            known = rows.caches.codes.get(key, lambda: _ranks(rows.caches.column(rows.reader, rows.table_key, "id")))
        ranks: Codes = known[codes]
        return ranks

    def columns(self, codes: Codes, names: Sequence[str]) -> list[pa.Array]:
        """Values of several properties."""
        return self._rows.columns(codes, names)

    def prefetch(self, codes: Codes, names: Sequence[str]) -> None:
        """Read what is not in memory and not worth having there in one go."""
        self._rows.prefetch(codes, [name for name in names if name != "id"])

    def scan(self, predicate: ir.Expr | None, carried: Sequence[str]) -> Codes:
        """All rows, or those for which the predicate holds."""
        if predicate is None:
            return np.arange(self._rows.row_count, dtype=np.int64)
        return self._rows.matching(predicate, variable_of(predicate))

    def bind(self, rows: pa.Table, carried: Sequence[str]) -> Codes:
        """The codes of ids; properties are read when they are asked for."""
        return self.encode(combined(rows.column("id")))

    def rows(self, codes: Codes) -> Codes | None:
        """Codes are rows."""
        return codes


class GrowingSpace:
    """Entities as the query meets them. Columns that came with a scan are kept, others are looked up by id."""

    def __init__(self, reader: TableReader, table_key: str, key: str | None) -> None:
        """`key` is the property whose value is the id, if there is one: it need not be read."""
        self._as_id = {"id", key}
        self._reader = reader
        self._table_key = table_key
        self._known = GrowingIds()
        self._values: dict[str, tuple[Codes, pa.Array]] = {}

    def size(self) -> int:
        """Codes are below this."""
        return len(self._known)

    def encode(self, ids: pa.Array) -> Codes:
        """Codes of ids; new ids get new codes."""
        return self._known.encode(ids)

    def ids(self, codes: Codes) -> pa.Array:
        """The ids behind codes."""
        return self._known.at(codes)

    def order(self, codes: Codes) -> Codes:
        """Integers that sort as the ids do."""
        return self._known.order_of(codes)

    def scan(self, predicate: ir.Expr | None, carried: Sequence[str]) -> Codes:
        """Read the rows that match, with the properties that will be asked for next."""
        names = [name for name in dict.fromkeys(carried) if name not in self._as_id]
        return self.bind(self._reader.scan(self._table_key, ["id", *names], predicate), carried)

    def bind(self, rows: pa.Table, carried: Sequence[str]) -> Codes:
        """The codes of ids, with the properties that were read along."""
        names = [name for name in dict.fromkeys(carried) if name not in self._as_id]
        codes = self._known.encode_distinct(combined(rows.column("id")))
        self.remember(codes, rows, names)
        return codes

    def prefetch(self, codes: Codes, names: Sequence[str]) -> None:
        """Look up what is not known yet."""
        self.columns(codes, names)

    def rows(self, codes: Codes) -> Codes | None:
        """Not known here."""
        return None

    def remember(self, codes: Codes, table: pa.Table, names: Sequence[str]) -> None:
        """Keep columns that were read along with the ids."""
        for name in names:
            self._keep(name, codes, combined(table.column(name)))

    def columns(self, codes: Codes, names: Sequence[str]) -> list[pa.Array]:
        """Values of several properties; what is not known yet is looked up by id, all at once."""
        stored = [name for name in dict.fromkeys(names) if name not in self._as_id]
        unknown = [(name, gaps) for name in stored if len(gaps := self._gaps(name, codes))]
        if unknown:
            wanted = np.unique(np.concatenate([gaps for _, gaps in unknown]))
            missing = [name for name, _ in unknown]
            table = self._reader.lookup(self._table_key, "id", self.ids(wanted), ["id", *missing])
            found = self._known.encode(combined(table.column("id")))
            self.remember(found, table, missing)
        values = {name: self._read(name, codes) for name in stored}
        return [self.ids(codes) if name in self._as_id else values[name] for name in names]

    def _gaps(self, name: str, codes: Codes) -> Codes:
        if name not in self._values:
            return codes
        places = self._values[name][0]
        beyond = codes >= len(places)
        unknown = np.where(beyond, -1, places[np.where(beyond, 0, codes)] if len(places) else -1) < 0
        return codes[unknown]

    def _keep(self, name: str, codes: Codes, values: pa.Array) -> None:
        places, before = self._values.get(name, (np.empty(0, dtype=np.int64), None))
        if len(places) < len(self._known):
            places = np.concatenate([places, np.full(len(self._known) - len(places), -1, dtype=np.int64)])
        start = 0 if before is None else len(before)
        places[codes] = np.arange(start, start + len(codes))
        self._values[name] = (places, values if before is None else pa.concat_arrays([before, values]))

    def _read(self, name: str, codes: Codes) -> pa.Array:
        if name not in self._values:
            return self._reader.scan(self._table_key, [name]).column(name).slice(0, 0).combine_chunks()
        places, values = self._values[name]
        if len(codes) == 1 and are_few(values):
            return values.slice(int(places[codes[0]]), 1)
        return values.take(pa.array(places[codes]))


def _ranks(ids: pa.Array) -> Codes:
    """The rank of each of different ids."""
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[pc.sort_indices(ids).to_numpy()] = np.arange(len(ids))
    return ranks


def variable_of(predicate: ir.Expr) -> str:
    """The one variable that a pushed predicate is about."""
    return next(iter(variables_of(predicate)), ir.THIS)


def identity_of(predicate: ir.Expr) -> str | None:
    """The id that `id = "…"` asks for, when that is the whole predicate."""
    match predicate:
        case ir.Compare(op=ir.CompareOp.EQ, left=ir.Prop(name="id", declared=False), right=ir.Literal(value=str(text))):
            return text
        case ir.Compare(op=ir.CompareOp.EQ, left=ir.Literal(value=str(text)), right=ir.Prop(name="id", declared=False)):
            return text
    return None
