"""What a caller answered about rows: conflicts that are settled, and rows that are decided by hand.

An answer is taken for any row, not only for one that both sides changed: that is how an edge that lost its end, or one
edge too many, is dealt with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import TablePin
from omnigraph.merge.compare.images import digest_rows
from omnigraph.merge.compare.located import Uncompared
from omnigraph.merge.decide.bases import same_row
from omnigraph.merge.decide.conflicts import Choice, MergeConflict, Resolution, Resolutions
from omnigraph.merge.decide.fields import MIXED
from omnigraph.schema.catalog import GraphType

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

Ids: TypeAlias = "pa.Array | Sequence[str]"


class Differing(Protocol):
    """Rows that differ, by what the rules say about them."""

    inserted: Ids
    updated: Ids
    deleted: Ids
    mixed: pa.Table
    colliding: Sequence[MergeConflict]
    below: pa.Table


@dataclass
class Settled:
    """What is written to one table, and what is left to be answered."""

    take: pa.Array
    delete: pa.Array
    inserts: int
    updates: int
    mixed: pa.Table = field(default_factory=MIXED.empty_table)
    given: dict[str, dict[str, Any]] = field(default_factory=dict)
    conflicts: list[MergeConflict] = field(default_factory=list)


def settle(
    store: GraphStore,
    type_: GraphType,
    source: TablePin,
    target: TablePin,
    found: Differing,
    resolutions: Resolutions,
) -> Settled:
    """Apply the answers; a colliding row without one stays a conflict."""
    answers = resolutions.of_table(type_.table_key)
    if not answers and not found.colliding:
        return _untouched(found)
    inserted, updated, deleted = (set(_plain(ids)) for ids in (found.inserted, found.updated, found.deleted))
    given: dict[str, dict[str, Any]] = {}
    conflicts: list[MergeConflict] = []
    by_hand: list[tuple[str, Resolution, dict[str, Any] | None, dict[str, Any] | None]] = []
    for conflict in found.colliding:
        assert conflict.row_id is not None
        answered, answer = resolutions.settle(type_.table_key, conflict.row_id)
        if answered:
            by_hand.append((conflict.row_id, answer, conflict.source, conflict.target))
        else:
            conflicts.append(conflict)
    collided = {conflict.row_id for conflict in found.colliding}
    others = pa.array(sorted(answers.keys() - collided), pa.utf8())
    sources = digest_rows(store, table_of(source), type_, others) if len(others) else {}
    targets = digest_rows(store, table_of(target), type_, others) if len(others) else {}
    for id_ in others.to_pylist():
        if id_ not in sources and id_ not in targets and not isinstance(answers[id_], dict):
            raise BadRequest(
                f"a resolution is about {type_.table_key} `{id_}`: neither the source nor the target has it"
            )
    by_hand += [(id_, answers[id_], sources.get(id_), targets.get(id_)) for id_ in others.to_pylist()]
    for id_, answer, theirs, ours in by_hand:
        for ids in (inserted, updated, deleted):
            ids.discard(id_)
        if isinstance(answer, dict):
            given[id_] = answer
            (inserted if ours is None else updated).add(id_)
            continue
        wanted = {Choice.OURS: ours, Choice.THEIRS: theirs, None: None}[answer]
        if same_row(wanted, ours):
            continue
        chosen = deleted if wanted is None else inserted if ours is None else updated
        chosen.add(id_)
    # An answer that is a side stands for the whole row; one that is a row lies over what was put together.
    sides = pa.array([id_ for id_, *_ in by_hand if id_ not in given], pa.utf8())
    given_ids = pa.array(given, pa.utf8())
    kept = found.mixed.filter(pc.invert(pc.is_in(found.mixed["id"], value_set=sides)))
    mixed = pa.concat_tables([kept, found.below.filter(pc.is_in(found.below["id"], value_set=given_ids))])
    again = pc.sum(pc.is_in(mixed["id"], value_set=given_ids)).as_py() or 0
    return Settled(
        pa.array(sorted((inserted | updated) - given.keys()), pa.utf8()),
        pa.array(sorted(deleted), pa.utf8()),
        len(inserted),
        len(updated) + mixed.num_rows - again,
        mixed,
        given,
        conflicts,
    )


def with_uncompared(settled: Settled, rows: Uncompared) -> Settled:
    """The rows that need no comparison are taken, or go, too."""
    take, delete = (
        pa.concat_arrays([ids, *(chunk.cast(pa.utf8()) for chunk in more["id"].chunks)])
        for ids, more in ((settled.take, rows.fresh), (settled.delete, rows.gone))
    )
    return replace(settled, take=take, delete=delete, inserts=settled.inserts + rows.fresh.num_rows)


def _untouched(found: Differing) -> Settled:
    parts = [pa.array(ids, pa.utf8()) for ids in (found.inserted, found.updated)]
    updates = len(parts[1]) + found.mixed.num_rows
    return Settled(pa.concat_arrays(parts), pa.array(found.deleted, pa.utf8()), len(parts[0]), updates, found.mixed)


def _plain(ids: Ids) -> Sequence[str]:
    if isinstance(ids, pa.Array):
        found: list[str] = ids.to_pylist()
        return found
    return ids
