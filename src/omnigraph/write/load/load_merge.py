"""Loads with mode merge: rows go into those with the same id, property by property that the record mentions.

Which records belong to one row is known only when the input has been read, so rows wait in a spool. Then some pieces at
a time are matched against the committed table: matches are written anew under their stable row ids, and marked as
deleted where they were; the others are added; rows that would stay what they are, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.commit.intents import TableWrite
from omnigraph.ledger.values import Snapshot
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.types import Scalar, ScalarType, VectorType
from omnigraph.storage.staging.distributed import delete_rows, write_fragments
from omnigraph.write.load.edge_matching import assign_edge_ids
from omnigraph.write.load.load_attempt import LoadAttempt
from omnigraph.write.load.load_keys import KeyCollector
from omnigraph.write.load.mapped_tables import MappedTables
from omnigraph.write.load.rows_spool import RowsSpool
from omnigraph.write.rows.fill_vectors import (
    VectorSource,
    check_partial,
    rows_wanting,
    with_stand_ins,
    with_vectors,
)
from omnigraph.write.rows.overlay import changed_rows, collapse, only, overlay
from omnigraph.write.rows.row_columns import empty_rows, working_schema
from omnigraph.write.rows.row_ids import with_ids
from omnigraph.write.rows.rows import Rows, concat_rows
from omnigraph.write.stage_tables import storable
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.duplicates import repeats
from omnigraph.write.validate.graph_rules import check_change
from omnigraph.write.validate.key_changes import TableChange, distinct, no_ids, one_array
from omnigraph.write.validate.value_rules import check_missing

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


MATCHED_BYTES = 96 << 20
"""Pieces that are matched together, with the rows that they change, take about so much memory. Each look-up of rows all
over a large table costs as much as a good part of reading it, so there should not be many of them."""

MATCHED_ROWS = 1_000_000
SAMPLED_ROWS = 1_000


@dataclass
class Written:
    """What was written for one table so far."""

    fragments: list[str] = field(default_factory=list)
    replaced: list[pa.Array] = field(default_factory=list)
    updated: int = 0


class _Waiting:
    """Rows that will be written together: first those that replace others, under the row ids of these."""

    def __init__(self) -> None:
        self.updated: list[pa.Table] = []
        self.row_ids: list[pa.Array] = []
        self.addresses: list[pa.Array] = []
        self.added: list[pa.Table] = []

    def __bool__(self) -> bool:
        return bool(self.updated or self.added)

    def put(self, rows: pa.Table, existing: pa.Table, match: np.ndarray) -> None:
        """Take rows, each of which replaces the existing one at its match, if it is none below zero."""
        old, new = np.flatnonzero(match >= 0), np.flatnonzero(match < 0)
        if len(old):
            partners = pa.array(match[old])
            self.updated.append(rows.take(pa.array(old)))
            self.row_ids.append(one_array(existing["_rowid"]).take(partners))
            self.addresses.append(one_array(existing["_rowaddr"]).take(partners))
        if len(new):
            self.added.append(rows.take(pa.array(new)))


class MergingLoad(LoadAttempt):
    """One attempt at a load with mode merge."""

    def __init__(
        self,
        store: GraphStore,
        snapshot: Snapshot,
        session: WriteSession,
        violations: ViolationCollector,
        directory: Path,
        vectors: VectorSource | None = None,
    ) -> None:
        super().__init__(store, snapshot, session, violations, directory, vectors)
        self._spools: dict[str, RowsSpool] = {}
        self._ids: dict[str, MappedTables] = {}
        self._written: dict[str, Written] = {}

    @property
    def written(self) -> Mapping[str, Written]:
        """What was written per table and has not been staged."""
        return self._written

    def add(self, rows: Rows) -> None:
        """Check rows by themselves and keep them until the input is known."""
        type_ = self._type(rows.table_key)
        if not matched_by_tuple(type_):
            rows = with_ids(type_, rows, self._violations)
        check_partial(type_, rows, self._vectors, self._violations)
        self.add_checked(rows)

    def add_checked(self, rows: Rows) -> None:
        """Keep rows that have been checked by themselves; ids that are still to be made are made now."""
        type_ = self._type(rows.table_key)
        if not type_.key and not matched_by_tuple(type_):
            rows = with_ids(type_, rows, self._violations)
        self._spools.setdefault(rows.table_key, RowsSpool(self._directory)).add(rows)
        columns = ["id", *type_.uniques[0]] if matched_by_tuple(type_) else ["id"]
        if rows.table_key not in self._ids:
            self._ids[rows.table_key] = MappedTables(self._directory)
        self._ids[rows.table_key].add(rows.table.select(list(dict.fromkeys(columns))))

    def given_ids(self) -> dict[str, pa.Array]:
        """The ids that the rows so far have, per table."""
        return {key: distinct(self._given(key)["id"]) for key in self._ids}

    def finish(self) -> dict[str, int]:
        """Match, write and check across rows; the number of rows per table."""
        changes, counts = self.merge_tables()
        check_change(self._catalog, changes, self._committed, self._violations)
        return counts

    def merge_tables(self) -> tuple[dict[str, TableChange], dict[str, int]]:
        """Match and write; the changes that are left to be checked across rows, and the number of rows per table."""
        changes: dict[str, TableChange] = {}
        counts: dict[str, int] = {}
        for table_key in sorted(self._spools):
            changes[table_key], counts[table_key] = self._merge_table(table_key)
        return changes, counts

    def _merge_table(self, table_key: str) -> tuple[TableChange, int]:
        type_ = self._type(table_key)
        given = self._given(table_key)
        ids = given["id"]
        if matched_by_tuple(type_):
            ids = pa.chunked_array([assign_edge_ids(type_, given, self._committed)])
        later, first = repeats([ids])
        repeated = one_array(ids.take(pa.array(np.unique(first)))) if len(first) else no_ids()
        keys = KeyCollector(type_, self._directory)
        known_new, count = True, len(ids) - len(later)
        for together in self._matched_together(type_, self._pieces(table_key, ids, repeated)):
            known_new &= self._merge_pieces(type_, together, keys)
        return keys.change(known_new=known_new), count

    def _given(self, table_key: str) -> pa.Table:
        found = self._ids[table_key].table()
        assert found is not None
        return found

    def _pieces(self, table_key: str, ids: pa.ChunkedArray, repeated: pa.Array) -> Iterator[Rows]:
        """The rows with their ids, one per id: first those that come once, piece by piece, then the others."""
        several: list[Rows] = []
        start = 0
        for rows in self._spools[table_key]:
            own = one_array(ids.slice(start, rows.count))
            start += rows.count
            usable = pc.is_valid(own)
            rows = rows.with_table(rows.table.set_column(0, rows.table.schema.field(0), own))
            comes_again = pc.is_in(own, value_set=repeated) if len(repeated) else pa.repeat(pa.scalar(False), len(own))
            if len(repeated) and pc.any(comes_again).as_py():
                several.append(rows.take(pc.indices_nonzero(comes_again)))
            once = pc.and_(usable, pc.invert(comes_again))
            yield rows if pc.all(once).as_py() else rows.take(pc.indices_nonzero(once))
        if several:
            yield from _collapsed(self._type(table_key), several)

    def _matched_together(self, type_: GraphType, pieces: Iterator[Rows]) -> Iterator[list[Rows]]:
        """Pieces in groups that are as large as memory allows; how large their rows are, some of the first tell."""
        together: list[Rows] = []
        most = 0
        for rows in pieces:
            if together and not most:
                some = together[0].take(pa.array(range(min(together[0].count, SAMPLED_ROWS)), pa.int64()))
                most = _rows_together(type_, some, self._existing(type_, [some]))
            if together and sum(part.count for part in together) + rows.count > most:
                yield together
                together = []
            together.append(rows)
        if together:
            yield together

    def _merge_pieces(self, type_: GraphType, pieces: list[Rows], keys: KeyCollector) -> bool:
        """Merge rows into the table; whether all of them are new."""
        existing = self._existing(type_, pieces)
        waiting = _Waiting()
        for rows, own in zip(pieces, _shared_out(existing, pieces), strict=True):
            merged, match = overlay(type_, own, rows)
            merged = self._with_vectors(type_, merged, rows, match)
            changed = changed_rows(merged.table, own, match)
            merged, match = only(merged, changed), match[changed]
            keys.add(merged)
            if not self._violations and merged.count:
                waiting.put(merged.table, own, match)
        if not self._violations and waiting:
            self._write(type_, waiting)
        return not existing.num_rows

    def _with_vectors(self, type_: GraphType, merged: Rows, given: Rows, match: np.ndarray) -> Rows:
        """Report what is missing; when nothing is, rows whose text or vector is given, or that are new, get theirs."""

        def is_set(column: str) -> np.ndarray | None:
            mask = given.mentioned.get(column)
            return None if mask is None else mask.to_numpy(zero_copy_only=False) | (match < 0)

        wanting = rows_wanting(type_, merged.table, is_set)
        vectors = self._vectors() if wanting else None
        if vectors is None:
            check_missing(type_, merged, given.mentioned, self._violations)
            return merged
        standing_in = merged.with_table(with_stand_ins(type_, merged.table, wanting))
        check_missing(type_, standing_in, given.mentioned, self._violations)
        return merged if self._violations else merged.with_table(with_vectors(type_, merged.table, wanting, vectors))

    def _existing(self, type_: GraphType, pieces: list[Rows]) -> pa.Table:
        """The committed rows with the ids of these."""
        ids = pa.concat_arrays([one_array(rows.table["id"]) for rows in pieces])
        if not len(ids) or not self._committed.count(type_.table_key):
            return empty_rows(type_)
        names = working_schema(type_).names
        return self._committed.rows_with(type_.table_key, "id", ids, names, with_row_address=True)

    def _write(self, type_: GraphType, waiting: _Waiting) -> None:
        written = self._written.setdefault(type_.table_key, Written())
        line = self._session.line(self._snapshot.pin(type_.table_key))
        table = storable(self._store, line, pa.concat_tables([*waiting.updated, *waiting.added]))
        row_ids: list[int] = []
        if waiting.updated:
            row_ids = pa.concat_arrays(waiting.row_ids).to_pylist()
            written.replaced += waiting.addresses
            written.updated += len(row_ids)
        target, schema = self._store.tables.write_target(line), self._store.tables.schema(line)
        written.fragments += write_fragments(target, table, schema, row_ids)

    def stage(self) -> list[TableWrite]:
        """The staged writes of the tables that change."""
        writes = []
        for table_key, written in sorted(self._written.items()):
            pin = self._snapshot.pin(table_key)
            line = self._session.line(pin)
            thinner: list[str] = []
            emptied: list[int] = []
            if written.replaced:
                addresses = pa.concat_arrays(written.replaced)
                thinner, emptied = delete_rows(self._store.tables.write_target(line), addresses)
            staged = self._store.tables.stage_fragments(
                line,
                written.fragments,
                updated_fragments=thinner,
                removed_fragment_ids=emptied,
                rows_updated=written.updated,
            )
            writes.append(self._session.table_write(pin, staged))
        self._written.clear()
        return writes

    def abandon(self) -> None:
        """Hand over what was written, so that the session removes it."""
        for table_key, written in self._written.items():
            line = self._session.line(self._snapshot.pin(table_key))
            self._session.keep(self._store.tables.stage_fragments(line, written.fragments))


def _shared_out(existing: pa.Table, pieces: list[Rows]) -> list[pa.Table]:
    """The existing rows by the piece that has their id; an id is in one piece only."""
    if len(pieces) == 1 or not existing.num_rows:
        return [existing] * len(pieces)
    existing = existing.combine_chunks()
    ids = pa.concat_arrays([one_array(rows.table["id"]) for rows in pieces])
    places = pc.index_in(one_array(existing["id"]), value_set=ids).to_numpy(zero_copy_only=False)
    owners = np.searchsorted(np.cumsum([rows.count for rows in pieces]), places, side="right")
    return [existing.take(pa.array(np.flatnonzero(owners == number))) for number in range(len(pieces))]


def _rows_together(type_: GraphType, some: Rows, existing: pa.Table) -> int:
    """How many rows can be matched at once, told by some of them and the rows that they are matched with."""
    if any(property_.type == ScalarType(Scalar.BLOB) for property_ in type_.properties):
        return 1  # the sizes of some tell nothing about those of others
    given = some.table.nbytes / max(some.count, 1)
    found = existing.nbytes / existing.num_rows if existing.num_rows else 0.0
    dims = sum(property_.type.dim for property_ in type_.properties if isinstance(property_.type, VectorType))
    return max(1, min(MATCHED_ROWS, int(MATCHED_BYTES / max(given + max(found, 4 * dims), 1))))


def _collapsed(type_: GraphType, parts: list[Rows]) -> Iterator[Rows]:
    """One row per id of rows from one or several sources: the place of a row is that of the last record it is of."""
    joined = concat_rows(parts)
    sources = list(dict.fromkeys(part.source for part in parts))
    source_of = np.repeat([sources.index(part.source) for part in parts], [part.count for part in parts])
    rows = collapse(type_, replace(joined, records=pa.array(np.arange(joined.count))))
    assert rows.records is not None
    last = rows.records.to_numpy()
    for number, source in enumerate(sources):
        own = np.flatnonzero(source_of[last] == number)
        records = None if joined.records is None else joined.records.take(pa.array(last[own]))
        yield replace(rows.take(pa.array(own)), source=source, records=records)


def matched_by_tuple(type_: GraphType) -> bool:
    """Whether rows without an id are matched by their first unique tuple: edges that have no key."""
    return isinstance(type_, EdgeType) and not type_.key and bool(type_.uniques)
