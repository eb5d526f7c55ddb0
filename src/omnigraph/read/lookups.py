"""Reads that are one look-up by key, and how several of them read their rows at once.

Nothing about what a read means is here: rows that were fetched for several are given to the tables of each, which
answer with them what they would have read themselves.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from omnigraph.query import ir
from omnigraph.read.matching.scan import carried_along, parted
from omnigraph.read.plan.steps import ScanStep
from omnigraph.read.run import Prepared, StoredRead
from omnigraph.read.state.run_state import id_property
from omnigraph.read.state.spaces import identity_of

_CHEAP = ir.Project | ir.Sort | ir.Limit
"""What may stand above the look-up: on one row it costs nothing."""


@dataclass(frozen=True, slots=True)
class RowAsked:
    """The one row that a read looks up."""

    table_key: str
    id: str
    columns: tuple[str, ...]


def row_asked(prepared: Prepared) -> RowAsked | None:
    """What a read looks up, if that is all it does; None when it does more."""
    run, plan = prepared.run, prepared.plan
    if len(plan.stages) != 1 or not all(isinstance(operator, _CHEAP) for operator in plan.upper):
        return None
    match plan.stages[0].block.steps:
        case (ScanStep(var=var, tables=(table_key,), filters=filters),):
            plain, others = parted(run, table_key, filters)
        case _:
            return None
    wanted = identity_of(plain[0]) if len(plain) == 1 and not others else None
    if wanted is None:
        return None
    key = id_property(run.catalog, table_key)
    names = [name for name in carried_along(run, var, table_key) if name not in ("id", key)]
    return RowAsked(table_key, wanted, ("id", *dict.fromkeys(names)))


def fetch_together(reads: Iterable[tuple[StoredRead, RowAsked]]) -> None:
    """Fetch the rows of look-ups that ask the same version of a table for the same columns, each such group at once.

    A table whose ids are in memory is not asked.
    """
    groups: dict[Hashable, list[tuple[StoredRead, RowAsked]]] = {}
    for read, asked in reads:
        if asked.table_key not in read.prepared.run.in_memory:
            groups.setdefault((read.reader.state(asked.table_key), asked.columns), []).append((read, asked))
    for group in groups.values():
        first, one = group[0]
        if len(group) == 1:
            continue
        try:
            rows = first.reader.fetch(one.table_key, [asked.id for _, asked in group], one.columns)
        except Exception:
            # Every read asks for itself then, and tells what is wrong with its own row.
            continue
        for read, asked in group:
            read.reader.know(asked.table_key, asked.id, asked.columns, rows[asked.id])
