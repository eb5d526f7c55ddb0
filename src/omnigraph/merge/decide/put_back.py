"""Tables that are put back as they were: what taking back a schema change does to those that nobody touched since.

Their columns are those of that time again, values included, and no row is written. That also undoes what no migration
can, a wider type, or a drop of a property that every row must have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.ledger.layout import physical_schema
from omnigraph.ledger.manifest.publish import place
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot, TablePin
from omnigraph.merge.compare.schema_view import pin_of, reads_as_stored
from omnigraph.merge.decide.conflicts import Resolutions

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.merge.decide.schema_merge import SchemaMerge


def put_back_types(store: GraphStore, merge: SchemaMerge, answers: Resolutions) -> frozenset[str]:
    """The ids of types whose table goes back to the source's version of it, which lies before the target's.

    The target has it as the base has, on a line of its own, and with other columns than the merged schema.
    """
    found = set()
    for type_ in merge.catalog.types():
        states = (*merge.raw_bases, merge.raw_source, merge.raw_target)
        pins = [_pin(state, type_.id) for state in states]
        _, stored = pin_of(store, merge.raw_target, type_)
        if len(pins) != 3 or stored is None or answers.of_table(type_.table_key):
            continue
        base, source, target = pins
        if source is None or target is None or place(base) != place(target):
            continue
        own = target.owner == merge.raw_target.branch.incarnation
        one_line = (source.location, source.lance_branch) == (target.location, target.lance_branch)
        if not own or not one_line or source.version >= target.version:
            continue
        same_columns = physical_schema(stored) == physical_schema(type_)
        if not same_columns and reads_as_stored(merge.store, [table_of(source)]):
            found.add(type_.id)
    return frozenset(found)


def _pin(state: Snapshot, type_id: str) -> TablePin | None:
    return next((pin for pin in state.tables.values() if pin.type_id == type_id), None)
