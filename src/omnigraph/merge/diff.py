"""The difference between any two states of a graph, streamed: nodes before edges, then type name, then id.

Manifests are compared first, so tables with the same version are never opened. Within a table the rows that can differ
are found from lineage and compared one by one; a rewrite that changed no value is no change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import BadRequest, HistoryGap
from omnigraph.ledger.snapshots import find_type, table_of
from omnigraph.ledger.values import Snapshot, TablePin
from omnigraph.merge.changes import EntityChange, FieldPair, Op, TypeCount
from omnigraph.merge.compare.candidates import CANDIDATES, collect_candidates
from omnigraph.merge.compare.relational import row_engine
from omnigraph.merge.compare.row_differences import (
    Side,
    as_wide_as,
    changed_by_lineage,
    changes_sql,
    exact_changes,
    matched_fields,
)
from omnigraph.merge.placement import COMPARING, IN_PROCESS, Placement, tables_only
from omnigraph.merge.schema_history import dropped_properties, with_first_defaults
from omnigraph.merge.shown_row import shown_row
from omnigraph.notebook import html_table
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.entities import hidden_properties
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


PARTS_PER_WAVE = 16


@dataclass(frozen=True, slots=True)
class DiffFilter:
    """What of a difference to show; empty means everything. `kinds` are node and edge, `types` are names of types.

    A type goes by any name that it has in the states that are compared. `type_ids` are the stable ids behind `types`,
    where a longer history than two states was looked at.
    """

    kinds: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    ops: frozenset[str] = frozenset()
    type_ids: frozenset[str] | None = None

    @classmethod
    def of(
        cls, kinds: Collection[str] | None, types: Collection[str] | None, ops: Collection[str] | None
    ) -> DiffFilter:
        """A filter from what a caller gave; unknown kinds and operations are refused."""
        for value in kinds or ():
            if value not in ("node", "edge"):
                raise BadRequest(f"`{value}` is no kind of entity: use node or edge")
        for value in ops or ():
            if value not in tuple(Op):
                raise BadRequest(f"`{value}` is no operation of a difference: use insert, update or delete")
        return cls(frozenset(kinds or ()), frozenset(types or ()), frozenset(ops or ()))


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """The difference between two states: iterate for the changes, as often as needed; nothing is kept."""

    store: GraphStore
    left: Snapshot
    right: Snapshot
    only: DiffFilter
    placement: Placement = IN_PROCESS

    def __iter__(self) -> Iterator[EntityChange]:
        return diff(self.store, self.left, self.right, self.only, self.placement)

    def summary(self) -> tuple[TypeCount, ...]:
        """How many entities of each type differ, by operation."""
        return summary(self.store, self.left, self.right, self.only, self.placement)

    def __repr__(self) -> str:
        left, right = (f"{s.branch.name} at {s.head.graph_commit_id}" for s in (self.left, self.right))
        return f"<Diff from {left} to {right}: iterate for the changes, summary() for the counts>"

    def _repr_html_(self) -> str:
        rows = [(count.table_key, count.inserts, count.updates, count.deletes) for count in self.summary()]
        return html_table(("table", "inserts", "updates", "deletes"), rows, repr(self).partition(":")[0].strip("<"))


@dataclass(frozen=True, slots=True)
class TablePair:
    """One table as it stands in two states; a side is None where the table does not exist."""

    type: GraphType
    left: Side
    right: Side
    fields: tuple[FieldPair, ...] | None = None


def diff(
    store: GraphStore,
    left: Snapshot,
    right: Snapshot,
    only: DiffFilter | None = None,
    placement: Placement = IN_PROCESS,
) -> Iterator[EntityChange]:
    """The entities that differ between two states, streamed."""
    wanted = only or DiffFilter()
    for pair in changed_tables(store, left, right, wanted):
        for batch in _readable(store, pair, left, right, placement):
            for row in batch.to_pylist():
                change = _change(pair, row)
                if not wanted.ops or change.op in wanted.ops:
                    yield change


def summary(
    store: GraphStore,
    left: Snapshot,
    right: Snapshot,
    only: DiffFilter | None = None,
    placement: Placement = IN_PROCESS,
) -> tuple[TypeCount, ...]:
    """How many entities of each type differ, by operation. No row is turned into a Python value."""
    import pyarrow.compute as pc

    wanted = only or DiffFilter()
    found: dict[str, TypeCount] = {}
    for pair in changed_tables(store, left, right, wanted):
        counts = dict.fromkeys(Op, 0)
        for batch in _readable(store, pair, left, right, placement):
            for entry in pc.value_counts(batch.column("op")).to_pylist():
                counts[Op(entry["values"])] += entry["counts"]
        shown = {op: count if not wanted.ops or op in wanted.ops else 0 for op, count in counts.items()}
        if any(shown.values()):
            key = pair.type.table_key
            known = found.get(key, TypeCount(key))
            found[key] = TypeCount(
                key,
                known.inserts + shown[Op.INSERT],
                known.updates + shown[Op.UPDATE],
                known.deletes + shown[Op.DELETE],
            )
    return tuple(found.values())


def changed_tables(
    store: GraphStore, left: Snapshot, right: Snapshot, only: DiffFilter | None = None
) -> Iterator[TablePair]:
    """The tables whose published versions differ, matched by their stable ids: nodes before edges, then by name."""
    wanted = only or DiffFilter()
    before, after = store.catalog(left.schema_digest), store.catalog(right.schema_digest)
    type_ids = wanted.type_ids if wanted.type_ids is not None else find_type_ids(wanted.types, [after, before])
    left_pins = {pin.type_id: pin for pin in left.tables.values()}
    right_pins = {pin.type_id: pin for pin in right.tables.values()}
    pairs = []
    for type_id in left_pins.keys() | right_pins.keys():
        old, new = left_pins.get(type_id), right_pins.get(type_id)
        if old is not None and new is not None and _same_version(old, new):
            continue
        pairs.append(pair_of(store, left, right, old, new))
    # Of two types of one name the older comes first: its rows go before those of the newer one come.
    for pair in sorted(pairs, key=lambda pair: (pair.type.kind == "edge", pair.type.name, int(pair.type.id[1:]))):
        if wanted.kinds and pair.type.kind not in wanted.kinds:
            continue
        if not wanted.types or pair.type.id in type_ids:
            yield pair


def find_type_ids(names: Collection[str], catalogs: Sequence[Catalog]) -> frozenset[str]:
    """The stable ids of the types of these names in any of the schemas. `NotFound` for a name that none of them has."""
    found: set[str] = set()
    for name in names:
        types = [type_ for catalog in catalogs for type_ in (catalog.node(name), catalog.edge(name)) if type_]
        found.update(type_.id for type_ in types or [find_type(catalogs[0], name)])
    return frozenset(found)


def table_changes(store: GraphStore, pair: TablePair, placement: Placement = IN_PROCESS) -> Iterator[pa.RecordBatch]:
    """The rows of one table that differ: batches of `id`, `op`, `before` and `after`, by id."""
    left, right = pair.left.table, pair.right.table
    with row_engine() as engine:
        wanted = None
        if left is not None and right is not None:
            if changed_by_lineage(store, engine, pair.left, pair.right, placement):
                yield from engine.batches(f"{changes_sql(pair.left, pair.right)} order by id")
                return
            found = collect_candidates(store, engine, [(left, right)])
            if found == 0:
                return
            if found is not None and placement.spreads(found):
                yield from _in_waves(store, pair, engine.ids(f"select id from {CANDIDATES} order by id"), placement)
                return
            wanted = CANDIDATES if found is not None else None
        yield from exact_changes(store, engine, pair.left, pair.right, wanted)


@dataclass(frozen=True)
class DiffWork:
    """Some rows of one table to be compared in two states, ready to be sent somewhere."""

    uri: str
    left: Side
    right: Side
    ids: pa.Array


def diff_part(work: DiffWork) -> list[pa.RecordBatch]:
    """The rows of one part that differ. Runs in any process."""
    with row_engine() as engine:
        engine.add_table(CANDIDATES, pa.table({"id": work.ids}))
        return list(exact_changes(tables_only(work.uri), engine, work.left, work.right, CANDIDATES))


def _in_waves(store: GraphStore, pair: TablePair, ids: pa.Array, placement: Placement) -> Iterator[pa.RecordBatch]:
    """A few parts at a time, in the order of ids: what is in memory here is one wave, whatever the difference."""
    parts = placement.parts(ids)
    for start in range(0, len(parts), PARTS_PER_WAVE):
        work = [DiffWork(store.uri, pair.left, pair.right, part) for part in parts[start : start + PARTS_PER_WAVE]]
        for batches in placement.run(diff_part, work, COMPARING):
            yield from batches


def _readable(
    store: GraphStore, pair: TablePair, left: Snapshot, right: Snapshot, placement: Placement
) -> Iterator[pa.RecordBatch]:
    """The changes of a table, or a gap that names the commit whose state is gone."""
    try:
        yield from table_changes(store, pair, placement)
    except TableNotFound as error:
        for side, snapshot in ((pair.left, left), (pair.right, right)):
            if side.table is not None and not is_there(store, side.table):
                raise HistoryGap(
                    f"the version of {side.type.table_key} at commit {snapshot.head.graph_commit_id} has been removed "
                    "by cleanup, so what differs cannot be told",
                    graph_commit_id=snapshot.head.graph_commit_id,
                ) from error
        raise


def is_there(store: GraphStore, table: TableVersion) -> bool:
    """Whether a version of a table can be read."""
    try:
        store.tables.count(table)
    except TableNotFound:
        return False
    return True


def _same_version(old: TablePin, new: TablePin) -> bool:
    return (old.location, old.lance_branch, old.version) == (new.location, new.lance_branch, new.version)


def pair_of(
    store: GraphStore, before: Snapshot, after: Snapshot, old: TablePin | None, new: TablePin | None
) -> TablePair:
    """One table in two states. Numbers that are wider in one of them are compared, and shown, in that width."""
    old_type = store.catalog(before.schema_digest).table(old.table_key) if old else None
    new_type = store.catalog(after.schema_digest).table(new.table_key) if new else None
    gone_before: frozenset[str] = frozenset()
    gone_after: frozenset[str] = frozenset()
    if old_type is not None and new_type is not None:
        gone_before = dropped_properties(store, before, old_type, new_type)
        gone_after = dropped_properties(store, after, new_type, old_type)
        old_type, new_type = (
            with_first_defaults(store, old_type, new_type),
            with_first_defaults(store, new_type, old_type),
        )
    shown = new_type or old_type
    assert shown is not None
    left_type, right_type = as_wide_as(old_type or shown, new_type), as_wide_as(new_type or shown, old_type)
    left = Side(table_of(old) if old else None, left_type, gone_before, old_type)
    right = Side(table_of(new) if new else None, right_type, gone_after, new_type)
    return TablePair(right_type, left, right, matched_fields(left, right))


def _change(pair: TablePair, row: dict[str, Any]) -> EntityChange:
    old, new, type_ = row["before"], row["after"], pair.type
    shown = new or old
    endpoints = (shown["src"], shown["dst"]) if type_.kind == "edge" else None
    before, after = shown_row(pair.left.type, old), shown_row(pair.right.type, new)
    hidden = hidden_properties(pair.left.type) | hidden_properties(pair.right.type)
    op = Op(row["op"])
    return EntityChange(type_.kind, type_.name, row["id"], op, before, after, endpoints, pair.fields, hidden)
