"""Rows of several versions of a table from their lineage: nothing is looked up by id, whatever the table holds.

The versions meet at one place (`lines.py`). A row that was touched on the way from there to a version is read from the
few fragments that the way added; one that was not is as it was at the meeting, and is read there by its row id, which
keeps its meaning along every way. For each version the engine gets a relation of the rows that may differ, with their
row ids in that version.

Blobs cannot be read by row id, and a restore hides what it took back: the caller then compares rows found by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import HistoryGap, NotFound
from omnigraph.merge.compare.candidates import has_restore
from omnigraph.merge.compare.images import image_schema
from omnigraph.merge.compare.lines import Meeting, Stretch, meeting_of
from omnigraph.merge.compare.relational import BATCH_ROWS, RowEngine
from omnigraph.merge.compare.schema_view import reads_as_stored
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.constants import SCAN_SHARE
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.values import TableVersion
from omnigraph.write.validate.key_changes import key_columns, one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

ROW = "_rowid"
ADDRESS = "_rowaddr"
ROWS_PER_TAKE = 65_536

Way: TypeAlias = tuple[Stretch, ...]
_IDS = pa.schema([("id", pa.utf8()), (ROW, pa.uint64())])
LINEAGE_ENDS = (HistoryGap, NotFound, TableNotFound)
"""What reading by lineage meets when a version on the way is gone."""


def lineage_of(store: GraphStore, type_: GraphType, tables: Sequence[TableVersion]) -> Meeting | None:
    """Where versions of a table meet, when their rows can be had from there; None otherwise."""
    if len({table.location for table in tables}) > 1 or not reads_as_stored(store, tables):
        return None
    location = tables[0].location
    same_line = len({table.branch for table in tables}) == 1
    try:
        forks = {} if same_line else {fork.name: fork for fork in store.tables.list_forks(location)}
        meeting = _on_one_line(tables) if same_line else meeting_of(tables, forks)
        if meeting is None or any(has_restore(store, location, stretch) for way in meeting.ways for stretch in way):
            return None
        known = set(store.tables.schema(meeting.table).names)
    except LINEAGE_ENDS:
        return None
    return meeting if known.issuperset(image_schema(type_).names) else None


def _on_one_line(tables: Sequence[TableVersion]) -> Meeting:
    oldest = min(tables, key=lambda table: table.version)
    ways = [
        (Stretch(table.branch, oldest.version, table.version),) if table.version > oldest.version else ()
        for table in tables
    ]
    return Meeting(oldest, tuple(ways))


class LineageRows:
    """Fills the engine with the rows of versions that meet at one place."""

    def __init__(self, store: GraphStore, engine: RowEngine, type_: GraphType, meeting: TableVersion) -> None:
        self._store = store
        self._engine = engine
        self._type = type_
        self._meeting = meeting
        self._schema = image_schema(type_).append(pa.field(ROW, pa.uint64()))
        self._columns = ", ".join(f'"{name}"' for name in self._schema.names)
        self._met_schema = self._schema.append(pa.field(ADDRESS, pa.uint64()))

    def touched(self, table: TableVersion, way: Way, only: str | None = None) -> int:
        """How many rows a way changed (or only `updated`) and deleted. Reads row ids and versions, no values."""
        if not way:
            return 0
        changed = self._store.tables.changed_rows(table, self._meeting, [], only=only)
        deleted = self._deleted(table.location, way)
        return sum(int(batch.num_rows) for reader in (changed, deleted) for batch in reader)

    def add_new(self, name: str, table: TableVersion, way: Way, *, with_created: bool = True) -> None:
        """Make `<name>_new`, the rows touched on a way as they are at its end, and `<name>_touched`.

        The latter are the row ids of rows that the meeting has otherwise.
        """
        self._add_changed(f"{name}_new", name, table, way, self._schema, with_created)

    def add_ids(self, name: str, table: TableVersion, way: Way, *, with_created: bool = True) -> None:
        """Make `<name>_ids`, the ids and row ids of rows touched on a way, and `<name>_touched`."""
        self._add_changed(f"{name}_ids", name, table, way, _IDS, with_created)

    def add_met(self, *names: str) -> None:
        """Make `m`: rows of the meeting that one of these versions touched, with their addresses there."""
        wanted = " union ".join(f"select {ROW} from {name}_touched" for name in names)
        self._engine.execute(f"create temp table met as {wanted}")
        count = self._engine.count("met")
        if count <= SCAN_SHARE * self._store.tables.count(self._meeting) + BATCH_ROWS:
            row_ids = self._engine.column(f"select {ROW} from met order by 1", ROW)
            self._create("m", self._taken(self._meeting, row_ids, self._met_schema), self._met_schema)
            return
        columns = [name for name in self._schema.names if name != ROW]
        scanned = self._store.tables.scan(self._meeting, columns=columns, with_row_id=True, with_row_address=True)
        self._engine.add_stream("m_rows", self._met_schema, (_as(batch, self._met_schema) for batch in scanned))
        self._engine.execute(f"create temp table m as select * from m_rows semi join met using ({ROW})")

    def add_rows(self, name: str) -> None:
        """Make the version itself of its new rows and those that are as they were."""
        self._engine.execute(
            f"create temp view {name} as select {self._columns} from {name}_new union all "
            f"select {self._columns} from m anti join {name}_touched using ({ROW})"
        )

    def add_new_by_ids(self, name: str, table: TableVersion, wanted: str) -> None:
        """Make `<name>_new` of those rows of `<name>_ids` whose id is in a relation."""
        query = f"select {ROW} from {name}_ids semi join {wanted} using (id) order by 1"
        self._create(f"{name}_new", self._taken(table, self._engine.column(query, ROW)))

    def fresh(self, name: str, table: TableVersion, taken_ids: Sequence[str]) -> pa.Table:
        """Rows that are new on the way to a version and whose id nobody else has: no version has to be compared.

        Their key columns, row ids and addresses. Rows whose id is in `m` or one of the relations `taken_ids` go into
        `<name>_new` instead.
        """
        columns = list(key_columns(self._type))
        found = self._store.tables.changed_rows(
            table, self._meeting, columns, only="created", with_row_address=True
        ).read_all()
        self._engine.add_table("created", found)
        known = " union all ".join(f"select id from {relation}" for relation in ("m", *taken_ids))
        query = f"select {ROW} from created where id in ({known}) order by 1"
        again = self._engine.column(query, ROW)
        if not len(again):
            return found
        self._insert(f"{name}_new", self._taken(table, again))
        return found.filter(pc.invert(pc.is_in(found[ROW], value_set=again)))

    def taken_back(self, earlier: str, base: TableVersion, later: str, target: TableVersion) -> pa.Table:
        """Rows that are new on the way to `base`, and that `target`, which comes after it, still has as they were.

        Their ids, row ids and addresses in `target`. No version of them has to be compared: the meeting has no row of
        that id. The other rows that are new go into `<earlier>_new` and `<later>_ids`.
        """
        new = {"only": "created", "with_row_address": True}
        kept = self._store.tables.changed_rows(target, self._meeting, ["id"], **new, touched_until=base.version)
        self._engine.add_table("kept", kept.read_all().select(["id", ROW, ADDRESS]))
        gone = self._engine.table(f"select * from kept anti join m using (id) order by {ROW}")
        self._engine.add_table("taken_back", gone.select(["id", ROW]))
        again = self._store.tables.changed_rows(
            target, self._meeting, ["id"], only="created", touched_after=base.version
        )
        self._insert(f"{later}_ids", (_as(batch, _IDS) for batch in again), _IDS)
        self._engine.execute(f"insert into {later}_ids select id, {ROW} from kept semi join m using (id)")
        created = self._store.tables.changed_rows(base, self._meeting, [], only="created").read_all()
        self._engine.add_table("created", created.select([ROW]))
        query = f"select {ROW} from created anti join taken_back using ({ROW}) order by 1"
        others = self._engine.column(query, ROW)
        if len(others):
            self._insert(f"{earlier}_new", self._taken(base, others))
        return gone

    def unshared(self, table: TableVersion, taken_ids: str) -> pa.Array | None:
        """The ids of rows that are new on the way to a version; None when the relation `taken_ids` has one of them."""
        found = self._store.tables.changed_rows(table, self._meeting, ["id"], only="created").read_all()
        self._engine.add_table("created", found)
        if self._engine.count(f"created semi join {taken_ids} using (id)"):
            return None
        return one_array(found["id"])

    def no_fresh(self) -> pa.Table:
        """What `fresh` gives when there is none."""
        columns = [self._schema.field(name) for name in key_columns(self._type)]
        return pa.schema([*columns, self._schema.field(ROW), pa.field(ADDRESS, pa.uint64())]).empty_table()

    def _add_changed(
        self, relation: str, name: str, table: TableVersion, way: Way, schema: pa.Schema, with_created: bool
    ) -> None:
        self._create(relation, self._changed(table, schema, "updated") if way else iter(()), schema)
        self._engine.execute(f"create temp table {name}_touched as select {ROW} from {relation}")
        if not way:
            return
        row_ids = pa.schema([(ROW, pa.uint64())])
        self._insert(f"{name}_touched", self._deleted(table.location, way), row_ids)
        if with_created:
            self._insert(relation, self._changed(table, schema, "created"), schema)

    def _changed(self, table: TableVersion, schema: pa.Schema, only: str) -> Iterator[pa.RecordBatch]:
        names = [name for name in schema.names if name != ROW]
        for batch in self._store.tables.changed_rows(table, self._meeting, names, only=only):
            yield _as(batch, schema)

    def _deleted(self, location: str, way: Way) -> Iterator[pa.RecordBatch]:
        for stretch in way:
            delta = self._store.tables.delta(location, stretch.line, stretch.begin, stretch.end)
            yield from (batch.select([ROW]) for batch in delta.deleted_row_ids)

    def _taken(
        self, table: TableVersion, row_ids: pa.Array, schema: pa.Schema | None = None
    ) -> Iterator[pa.RecordBatch]:
        wanted = schema or self._schema
        for start in range(0, len(row_ids), ROWS_PER_TAKE):
            rows = self._store.tables.take_rows(table, row_ids.slice(start, ROWS_PER_TAKE), wanted.names)
            for batch in rows.to_batches():
                yield _as(batch, wanted)

    def _create(self, name: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema | None = None) -> None:
        self._engine.add_stream("rows_in", schema or self._schema, batches)
        self._engine.execute(f"create temp table {name} as select * from rows_in")

    def _insert(self, name: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema | None = None) -> None:
        self._engine.add_stream("rows_in", schema or self._schema, batches)
        self._engine.execute(f"insert into {name} select * from rows_in")


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a schema, in its order and types."""
    return batch.select(schema.names).cast(schema)
