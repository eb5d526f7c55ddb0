"""Indexes of published tables that cannot be read, for `verify`: no answer is wrong without them, but all are slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import BranchRef, Snapshot
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


def unreadable_indexes(store: GraphStore, states: list[tuple[BranchRef, Snapshot]]) -> Iterator[tuple[str, str, str]]:
    """The branch, the table and what is wrong, once for each index and the first branch that shows it."""
    seen: set[TableVersion] = set()
    for branch, snapshot in states:
        for key, pin in snapshot.tables.items():
            table = table_of(pin)
            if table in seen or not pin.row_count:
                continue
            seen.add(table)
            try:
                damaged = store.tables.damaged_indexes(table)
            except OmniGraphError:
                continue  # The table cannot be read at all, which is told of it anyway.
            mend = f"`omnigraph index --branch {branch.name}` builds it anew"
            if pin.owner != branch.incarnation:
                mend = f"the branch has the table from its source: after a write to it {mend}"
            yield from ((branch.name, key, f"{why}. Reads do without it; {mend}") for why in damaged.values())
