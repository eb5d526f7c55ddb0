"""The schema of a merge: both sides' schemas over their common ancestor's, and what of it the data cannot follow.

Rows are compared only after this: every state is then seen under the merged schema (`schema_view`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.ledger.history.dag import is_ancestor, merge_bases
from omnigraph.ledger.snapshots import get_commit, table_of
from omnigraph.ledger.values import Snapshot
from omnigraph.merge.compare.schema_view import viewed
from omnigraph.merge.decide.conflicts import ConflictKind, MergeConflict
from omnigraph.merge.diff import pair_of, table_changes
from omnigraph.merge.placement import Placement
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.merging.facts import Facts, facts_of
from omnigraph.schema.merging.merge_schemas import merge_schemas, merged_facts
from omnigraph.schema.migration.migrate import DataFacts, MigrationPlan, plan_by_ids
from omnigraph.schema.migration.migration_steps import DropProperty, DropType, WidenProperty
from omnigraph.schema.types import EnumType
from omnigraph.write.schema.schema_facts import inexact_values

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True)
class SchemaMerge:
    """The merged schema, and the states as it sees them.

    `plan` leads from the target's schema to it, `source_plan` from the source's. `raw_target` is the target with its
    own names. `store` reads tables as the merged schema has them. `put_back` are the ids of types whose table goes back
    to the version that the source has.
    """

    catalog: Catalog
    text: str
    digest: str
    plan: MigrationPlan
    source_plan: MigrationPlan
    store: GraphStore
    bases: list[Snapshot]
    source: Snapshot
    target: Snapshot
    raw_bases: list[Snapshot]
    raw_source: Snapshot
    raw_target: Snapshot
    conflicts: tuple[MergeConflict, ...] = ()
    put_back: frozenset[str] = frozenset()


def merged_schema(
    store: GraphStore, bases: Sequence[Snapshot], source: Snapshot, target: Snapshot
) -> SchemaMerge | None:
    """The schema that the merged graph has; None when all states have one and the same."""
    if len({state.schema_digest for state in (*bases, source, target)}) == 1:
        return None
    base = _base_facts(store, tuple(state.head.graph_commit_id for state in bases))
    theirs, ours = store.schemas.get(source.schema_digest), store.schemas.get(target.schema_digest)
    merged = merge_schemas(base, theirs, ours)
    digest = store.schemas.keep(merged.source, merged.catalog)
    view, states = viewed(store, merged.catalog, digest, (*bases, source, target))
    return SchemaMerge(
        merged.catalog,
        merged.source,
        digest,
        plan_by_ids(ours[1], merged.catalog, facts=_rows(target)),
        plan_by_ids(theirs[1], merged.catalog, facts=_rows(source)),
        view,
        states[:-2],
        states[-2],
        states[-1],
        list(bases),
        source,
        target,
        tuple(_conflict(clash.table_key, clash.message) for clash in merged.clashes),
    )


def lost_by_schema(store: GraphStore, merge: SchemaMerge, placement: Placement) -> Iterator[MergeConflict]:
    """What one side's schema cannot keep of the other side's data: a merge loses nothing in silence."""
    target = (merge.plan, merge.raw_target, "target", "source")
    source = (merge.source_plan, merge.raw_source, "source", "target")
    for planned, side, name, other in (target, source):
        for refusal in planned.refusals:
            if refusal.type_id in merge.put_back or refusal.entity in narrowed_enums(store, merge, side):
                continue
            yield _conflict(refusal.table_key, f"the {name} cannot follow the schema of the {other}: {refusal.reason}")
        for step in planned.steps:
            if isinstance(step, DropType | DropProperty):
                yield from _lost_in_drop(store, merge, side, step, name, other, placement)
            elif isinstance(step, WidenProperty) and step.needs_check:
                yield from _inexact(store, merge, side, step, name)


def narrowed_enums(store: GraphStore, merge: SchemaMerge, side: Snapshot) -> dict[str, str]:
    """The enums that get fewer values than a side has, as `Type.property`, with the ids of their types.

    That is a rule like any other, which the rows of that side keep to or break.
    """
    before = {type_.id: type_ for type_ in store.catalog(side.schema_digest).types()}
    found = {}
    for type_ in merge.catalog.types():
        old = {p.id: p.type for p in before[type_.id].properties} if type_.id in before else {}
        for p in type_.properties:
            kept, known = p.type, old.get(p.id)
            if isinstance(kept, EnumType) and isinstance(known, EnumType) and not {*kept.values} >= {*known.values}:
                found[f"{type_.name}.{p.name}"] = type_.id
    return found


def _lost_in_drop(
    store: GraphStore,
    merge: SchemaMerge,
    side: Snapshot,
    step: DropType | DropProperty,
    name: str,
    other: str,
    placement: Placement,
) -> Iterator[MergeConflict]:
    base = merge.raw_bases[0] if merge.raw_bases else None
    pins = {pin.type_id: pin for pin in side.tables.values()}
    before = {pin.type_id: pin for pin in base.tables.values()} if base is not None else {}
    if base is None or step.type_id not in before or step.type_id not in pins:
        return
    pair = pair_of(store, base, side, before[step.type_id], pins[step.type_id])
    if pair.left.table == pair.right.table:
        return
    column = _column(pair.right.type, step.property_id) if isinstance(step, DropProperty) else None
    count = sum(_set_rows(batch, column) for batch in table_changes(store, pair, placement))
    if count:
        what = f"`{pair.right.type.name}" + (f".{step.property}`" if isinstance(step, DropProperty) else "`")
        rows = "1 row" if count == 1 else f"{count} rows"
        yield _conflict(
            step.table_key,
            f"{what} is dropped on the {other}, and {rows} of the {name} got values in it since: apply the drop there "
            "too, or take it back",
        )


def _set_rows(batch: pa.RecordBatch, column: str | None) -> int:
    """How many rows of a change got a value (of a column) that they had not before."""
    found = 0
    for row in batch.to_pylist():
        old, new = row["before"], row["after"]
        if new is None:
            continue
        if column is None or (new.get(column) is not None and (old is None or old.get(column) != new[column])):
            found += 1
    return found


def _column(type_: GraphType, property_id: str) -> str:
    return next(p.column for p in type_.properties if p.id == property_id)


def _inexact(
    store: GraphStore, merge: SchemaMerge, side: Snapshot, step: WidenProperty, name: str
) -> Iterator[MergeConflict]:
    for pin in side.tables.values():
        type_ = store.catalog(side.schema_digest).table(pin.table_key)
        if pin.type_id != step.type_id or type_ is None:
            continue
        count = inexact_values(store, table_of(pin), _column(type_, step.property_id))
        if count:
            rows = "1 row" if count == 1 else f"{count} rows"
            message = f"`{type_.name}.{step.property}`: {rows} of the {name} cannot be written exactly as {step.type}"
            yield _conflict(step.table_key, message)


def _rows(state: Snapshot) -> DataFacts:
    return DataFacts({pin.type_id: pin.row_count for pin in state.tables.values()})


def _conflict(table_key: str, message: str) -> MergeConflict:
    return MergeConflict(table_key, None, ConflictKind.SCHEMA_CONFLICT, message)


def _base_facts(store: GraphStore, commits: tuple[str, ...]) -> Facts:
    """What the common ancestors say; several of them are merged over their own common ancestors, as deep as needed."""
    if not commits:
        return {}
    graph = store.commits.graph()
    current: dict[Any, Any] = facts_of(store.catalog(get_commit(store, commits[0]).schema_digest))
    for position in range(1, len(commits)):
        other = facts_of(store.catalog(get_commit(store, commits[position]).schema_digest))
        found = dict.fromkeys(b for one in commits[:position] for b in merge_bases(graph, one, commits[position]))
        best = tuple(b for b in found if not any(o != b and is_ancestor(graph, b, o) for o in found))
        current, _ = merged_facts(_base_facts(store, best), other, current)
    return current
