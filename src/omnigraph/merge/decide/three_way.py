"""Three versions of one table, row by row: what the target takes from the source, and what collides.

Only rows that the source changed since the base are looked at, so the cost follows the change. The rule for a row: the
same on both sides is nothing to do; unchanged on the target is taken from the source; anything else is a conflict,
unless its fields are told apart (`fields.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot, TablePin
from omnigraph.merge.changes import TypeCount
from omnigraph.merge.compare.candidates import CANDIDATES, collect_candidates
from omnigraph.merge.compare.images import blob_columns
from omnigraph.merge.compare.located import Located, Uncompared, collect_by_lineage, located_rows, only_inserted
from omnigraph.merge.compare.relational import RowEngine, row_engine
from omnigraph.merge.compare.row_differences import Side, add_images, changes_sql, struct_sql
from omnigraph.merge.compare.schema_view import TableView, views_of
from omnigraph.merge.decide.answers import Settled, settle, with_uncompared
from omnigraph.merge.decide.bases import Unknown, VirtualBase, same_row
from omnigraph.merge.decide.conflicts import MergeConflict, Resolution, Resolutions
from omnigraph.merge.decide.fields import MIXED, RowRule, decide_collided
from omnigraph.merge.placement import COMPARING, IN_PROCESS, Placement, tables_only
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.values import TableVersion
from omnigraph.write.validate.key_changes import one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True)
class TableMerge:
    """What the merge does to one table of the target.

    `take` are ids whose source row is written, `delete` ids that go, `given` answers that a caller supplied as a row.
    `mixed` are rows that keep what the target has but for some columns of the source (`MIXED`); a row that was given
    lies over such a row where there is one.
    `decided_by_hand` says that single rows were answered, so the result need not be the source's state of the table.
    `located` says where the rows lie when lineage told. `target` is None for a type that the target does not have yet.
    """

    type: GraphType
    source: TablePin
    target: TablePin | None
    counts: TypeCount
    take: pa.Array
    delete: pa.Array
    given: dict[str, dict[str, Any]]
    mixed: pa.Table
    decided_by_hand: bool
    conflicts: tuple[MergeConflict, ...] = ()
    located: Located | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written."""
        return not (len(self.take) or len(self.delete) or self.given or self.mixed.num_rows)

    @property
    def written_mixed(self) -> pa.Table:
        """The mixed rows that are written as they are, without anything given."""
        if not self.given:
            return self.mixed
        return self.mixed.filter(pc.invert(pc.is_in(self.mixed["id"], value_set=pa.array(self.given, pa.utf8()))))


def merge_table(
    store: GraphStore,
    type_: GraphType,
    bases: Sequence[Snapshot],
    source: Snapshot,
    target: Snapshot,
    resolutions: Resolutions,
    placement: Placement = IN_PROCESS,
    *,
    every_row: bool = False,
) -> TableMerge | None:
    """The merge of one table; None when the source did not touch it since the base and no answer is about it.

    `every_row` compares all rows: a column that comes back has values in rows that no lineage says were touched.
    """
    key = type_.table_key
    source_pin, target_pin = source.tables[key], target.tables[key]
    answers = resolutions.of_table(key)
    base_pins = [base.tables.get(key) for base in bases]
    if not answers and _untouched(base_pins, source_pin, target_pin):
        # Nothing is opened for a table that the source did not touch: most of a large schema.
        return None
    with row_engine() as engine:
        rule = RowRule(resolutions.granularity, resolutions.strategy)
        found = _found(store, engine, type_, bases, source_pin, target_pin, placement, answers, rule, every_row)
        if found is None and not answers:
            return None
        settled = settle(store, type_, source_pin, target_pin, found or Found(), resolutions)
        located = None
        if found is not None and found.uncompared is not None and not answers:
            mixed = one_array(settled.mixed["id"])
            located = located_rows(engine, type_, settled.take, settled.delete, mixed, found.uncompared)
            settled = with_uncompared(settled, found.uncompared)
    return _table_merge(type_, source_pin, target_pin, settled, bool(answers), located)


@dataclass
class Found:
    """The rows that differ: those that are taken from the source, those that go, are put together, and collide.

    `below` says what is put together of colliding rows whose colliding fields the caller gives. By lineage there are
    `uncompared` ones too: new on one side only, so that nothing had to be compared.
    """

    inserted: pa.Array | Sequence[str] = ()
    updated: pa.Array | Sequence[str] = ()
    deleted: pa.Array | Sequence[str] = ()
    mixed: pa.Table = field(default_factory=MIXED.empty_table)
    colliding: Sequence[MergeConflict] = ()
    below: pa.Table = field(default_factory=MIXED.empty_table)
    uncompared: Uncompared | None = None


@dataclass(frozen=True)
class CompareWork:
    """Some rows of one table to be compared, ready to be sent somewhere."""

    uri: str
    type: GraphType
    base: TablePin
    source: TablePin
    target: TablePin
    ids: pa.Array
    rule: RowRule
    views: Mapping[TableVersion, TableView] = field(default_factory=dict)


def compare_part(work: CompareWork) -> Found:
    """Compare the rows of one part over one base. Runs in any process."""
    with row_engine() as engine:
        engine.add_table(CANDIDATES, pa.table({"id": work.ids}))
        _collect(
            tables_only(work.uri, work.views), engine, work.type, [work.base], work.source, work.target, CANDIDATES
        )
        return _by_one_base(engine, work.type, work.rule)


def _joined(parts: Sequence[Found]) -> Found:
    def ids(name: str) -> pa.Array:
        return pa.concat_arrays([pa.array([], pa.utf8()), *(pa.array(getattr(p, name), pa.utf8()) for p in parts)])

    colliding = sorted((c for part in parts for c in part.colliding), key=lambda c: c.row_id or "")
    mixed, below = (
        pa.concat_tables([MIXED.empty_table(), *tables]) for tables in zip(*((p.mixed, p.below) for p in parts))
    )
    return Found(ids("inserted"), ids("updated"), ids("deleted"), mixed, colliding, below)


def _table_merge(
    type_: GraphType, source: TablePin, target: TablePin, settled: Settled, by_hand: bool, located: Located | None
) -> TableMerge:
    counts = TypeCount(type_.table_key, settled.inserts, settled.updates, len(settled.delete))
    return TableMerge(
        type_,
        source,
        target,
        counts,
        settled.take,
        settled.delete,
        settled.given,
        settled.mixed,
        by_hand,
        tuple(settled.conflicts),
        located,
    )


def _same(left: TablePin | None, right: TablePin | None) -> bool:
    return (
        left is not None
        and right is not None
        and (left.location, left.lance_branch, left.version) == (right.location, right.lance_branch, right.version)
    )


def _found(
    store: GraphStore,
    engine: RowEngine,
    type_: GraphType,
    bases: Sequence[Snapshot],
    source: TablePin,
    target: TablePin,
    placement: Placement,
    answers: Mapping[str, Resolution],
    rule: RowRule,
    every_row: bool,
) -> Found | None:
    base_pins = [base.tables.get(type_.table_key) for base in bases]
    if _untouched(base_pins, source, target):
        return None
    only = base_pins[0] if len(base_pins) == 1 else None
    if only is not None and not answers and not every_row:
        versions = table_of(only), table_of(source), table_of(target)
        uncompared = collect_by_lineage(store, engine, type_, *versions, placement)
        if uncompared is not None:
            return replace(_by_one_base(engine, type_, rule), uncompared=uncompared)
        inserted = only_inserted(store, engine, type_, *versions) if blob_columns(type_) else None
        if inserted is not None:
            return Found(inserted=inserted)
    wanted = "" if every_row else _candidates(store, engine, base_pins, source)
    if wanted is None:
        return None
    if len(bases) == 1 and wanted and placement.spreads(engine.count(wanted)) and base_pins[0] is not None:
        ids = engine.ids(f"select id from {wanted} order by id")
        parts = placement.parts(ids)
        sides = base_pins[0], source, target
        views = views_of(store, sides)
        work = [CompareWork(store.uri, type_, *sides, part, rule, views) for part in parts]
        return _joined(placement.run(compare_part, work, COMPARING))
    _collect(store, engine, type_, base_pins, source, target, wanted or None)
    if len(bases) > 1:
        return _by_virtual_base(store, engine, type_, bases, rule)
    return _by_one_base(engine, type_, rule)


def _untouched(bases: Sequence[TablePin | None], source: TablePin, target: TablePin) -> bool:
    """Whether the source brings nothing: it is where the target is, or where every base is."""
    return _same(source, target) or bool(bases and all(_same(pin, source) for pin in bases))


def _by_one_base(engine: RowEngine, type_: GraphType, rule: RowRule) -> Found:
    clean = "t is not distinct from b"
    return Found(
        engine.ids(f"select id from differing where {clean} and s is not null and t is null"),
        engine.ids(f"select id from differing where {clean} and s is not null and t is not null"),
        engine.ids(f"select id from differing where {clean} and s is null"),
        *decide_collided(engine, type_, f"select id, b, s, t from differing where not ({clean})", rule),
    )


def _candidates(store: GraphStore, engine: RowEngine, bases: Sequence[TablePin | None], source: TablePin) -> str | None:
    """The relation of ids to look at; an empty text for all rows, None when there is nothing to look at."""
    pairs = [(table_of(base), table_of(source)) for base in bases if base is not None]
    if not pairs or len(pairs) < len(bases):
        return ""
    found = collect_candidates(store, engine, pairs)
    if found == 0:
        return None
    return "" if found is None else CANDIDATES


def _collect(
    store: GraphStore,
    engine: RowEngine,
    type_: GraphType,
    bases: Sequence[TablePin | None],
    source: TablePin,
    target: TablePin,
    wanted: str | None,
) -> None:
    """Make `differing`: rows that the source changed since the (first) base and that the target has otherwise."""
    base = bases[0] if bases else None
    add_images(store, engine, "l", Side(table_of(base) if base else None, type_), wanted)
    add_images(store, engine, "r", Side(table_of(source), type_), wanted)
    # With several bases any row that one of them holds differently may matter: keep all candidates.
    changed = _all_sql(type_) if len(bases) > 1 else changes_sql(Side(None, type_), Side(None, type_))
    engine.execute(f"create temp table changed as {changed}")
    if len(bases) == 1 and _same(base, target):
        engine.execute("create temp view differing as select id, before as b, after as s, before as t from changed")
        return
    add_images(store, engine, "t", Side(table_of(target), type_), "changed")
    engine.execute(
        "create temp table differing as select * from (select c.id, c.before as b, c.after as s, "
        f"case when t.id is not null then {struct_sql('t', type_)} end as t "
        "from changed as c left join t on t.id = c.id) where s is distinct from t"
    )


def _all_sql(type_: GraphType) -> str:
    return (
        "select coalesce(l.id, r.id) as id, "
        f"case when l.id is not null then {struct_sql('l', type_)} end as before, "
        f"case when r.id is not null then {struct_sql('r', type_)} end as after "
        "from l full outer join r on l.id = r.id"
    )


def _by_virtual_base(
    store: GraphStore, engine: RowEngine, type_: GraphType, bases: Sequence[Snapshot], rule: RowRule
) -> Found:
    virtual = VirtualBase(store, type_, bases, engine.ids("select id from differing"))
    inserted: list[str] = []
    updated: list[str] = []
    deleted: list[str] = []
    collided: list[dict[str, Any]] = []
    unknown: dict[str, dict[str, Any] | None] = {}
    differing = engine.table("select id, b, s, t from differing order by id")
    for row in differing.to_pylist():
        base = virtual.row(row["id"])
        if isinstance(base, Unknown):
            unknown[row["id"]] = row["b"]
            collided.append({**row, "b": None})
        elif same_row(base, row["s"]):
            continue
        elif same_row(base, row["t"]):
            taken = inserted if row["t"] is None else updated
            (deleted if row["s"] is None else taken).append(row["id"])
        else:
            collided.append({**row, "b": base})
    engine.add_table("collided_rows", pa.Table.from_pylist(collided, schema=differing.schema))
    return Found(
        inserted, updated, deleted, *decide_collided(engine, type_, "select * from collided_rows", rule, unknown)
    )
