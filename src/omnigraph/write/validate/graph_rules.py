"""Rules that hold across rows, checked on the state after a write: uniqueness, ends, cardinality, nothing dangling.

One function checks a change of any kind (mutation, load, merge, schema change) on top of any committed state. What it
needs of that state it looks up by value; the rules themselves are functions on Arrow columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.schema.catalog import Cardinality, Catalog, EdgeType, GraphType, column_title
from omnigraph.schema.types import EnumType, Scalar, ScalarType
from omnigraph.write.validate import messages
from omnigraph.write.validate.collector import Kind, ViolationCollector
from omnigraph.write.validate.duplicates import Positions, match_tuples, repeats
from omnigraph.write.validate.key_changes import Committed, GraphChange, TableChange, distinct, one_array
from omnigraph.write.validate.partitions import Parts, parts_for
from omnigraph.write.validate.zeros import with_both_zeros

ENDS = ("src", "dst")

WORTH_A_THREAD = 100_000
"""Rows from which on both ends are looked up at the same time: Arrow works outside of Python's lock."""


def check_change(catalog: Catalog, change: GraphChange, committed: Committed, violations: ViolationCollector) -> None:
    """Report every cross-row rule that the state after the change breaks."""
    for table_key in sorted(change, key=_nodes_first):
        type_, table = catalog.table(table_key), change[table_key]
        if type_ is None:
            continue
        for unique in type_.uniques:
            if table.may_change(unique):
                check_unique(type_, unique, table, committed, violations)
        if isinstance(type_, EdgeType):
            if table.may_change(("src", "dst")):
                check_endpoints(type_, table, change, committed, violations)
            if type_.card != Cardinality():
                check_cardinality(type_, table, committed, violations)
    check_dangling(catalog, change, committed, violations)


def check_duplicate_ids(type_: GraphType, table: TableChange, violations: ViolationCollector) -> None:
    """Report rows whose id an earlier row of the same write has."""
    later, _ = repeats([table.ids])
    _report(
        violations,
        type_,
        table,
        Kind.DUPLICATE_ID,
        later,
        lambda row: messages.duplicate_id(table.ids[row].as_py()),
        "id",
    )


def check_existing_ids(
    type_: GraphType, table: TableChange, committed: Committed, violations: ViolationCollector
) -> None:
    """Report rows whose id is committed already, for a write that may only add."""
    if not committed.count(type_.table_key):
        return
    found = committed.rows_with(type_.table_key, "id", distinct(table.ids), ["id"])["id"]
    if not len(found):
        return
    existing = np.flatnonzero(pc.is_in(table.ids, value_set=one_array(found)).to_numpy())
    _report(
        violations,
        type_,
        table,
        Kind.EXISTING_ID,
        existing,
        lambda row: messages.existing_id(table.ids[row].as_py()),
        "id",
    )


def check_unique(
    type_: GraphType,
    unique: Sequence[str],
    table: TableChange,
    committed: Committed,
    violations: ViolationCollector,
) -> None:
    """Report rows that share a tuple with another row of the write, or with a committed row that stays."""
    columns = [table.keys[name] for name in unique]
    titles = tuple(map(column_title, unique))

    def message(other: Callable[[int], str | None]) -> Callable[[int], str]:
        return lambda row: messages.not_unique(titles, [column[row].as_py() for column in columns], other(row))

    later, first = repeats(columns)
    shown = 4 * violations.kept_per_kind
    first_of = dict(zip(later[:shown].tolist(), first[:shown].tolist()))
    own = message(lambda row: table.ids[first_of[row]].as_py() if row in first_of else None)
    _report(violations, type_, table, Kind.UNIQUE, later, own, titles[0])
    if table.replaces_all or not committed.count(type_.table_key):
        return
    lookup = best_lookup(type_, unique)
    values = with_both_zeros(distinct(table.keys[lookup]))
    candidates = committed.rows_with(type_.table_key, lookup, values, ["id", *unique])
    candidates = table.surviving(candidates)
    if not candidates.num_rows:
        return
    taken, owner = match_tuples(columns, [candidates[name] for name in unique])
    owner_of = dict(zip(taken.tolist(), owner.tolist()))
    theirs = message(lambda row: candidates["id"][owner_of[row]].as_py())
    _report(violations, type_, table, Kind.UNIQUE, np.setdiff1d(taken, later), theirs, titles[0])


def check_endpoints(
    type_: EdgeType, table: TableChange, change: GraphChange, committed: Committed, violations: ViolationCollector
) -> None:
    """Report edges with an end that does not exist after the write."""
    if table.keys.num_rows < WORTH_A_THREAD:
        for end in ENDS:
            check_end(type_, end, table, change, committed, violations)
        return

    def one_end(end: str) -> ViolationCollector:
        own = ViolationCollector(violations.kept_per_kind)
        check_end(type_, end, table, change, committed, own)
        return own

    with ThreadPoolExecutor(len(ENDS)) as pool:
        for found in pool.map(one_end, ENDS):
            violations.merge(found)


def check_end(
    type_: EdgeType,
    end: str,
    table: TableChange,
    change: GraphChange,
    committed: Committed,
    violations: ViolationCollector,
) -> None:
    """Report edges whose `src` (or `dst`) does not exist after the write; no other column of theirs is looked at."""
    node = type_.source if end == "src" else type_.target
    column = table.keys[end]
    missing = missing_nodes(f"node:{node}", column, change, committed)
    if len(missing):
        rows = np.flatnonzero(pc.is_in(column, value_set=missing).to_numpy())
        _report(
            violations,
            type_,
            table,
            Kind.MISSING_ENDPOINT,
            rows,
            lambda row: messages.missing_endpoint(_RECORD_NAME[end], node, column[row].as_py()),
            end,
        )


_RECORD_NAME = {"src": "from", "dst": "to"}


def missing_nodes(
    table_key: str, ids: pa.ChunkedArray | pa.Array, change: GraphChange, committed: Committed
) -> pa.Array:
    """Of these node ids the ones that do not exist after the write, each once."""
    nodes = change.get(table_key)
    if nodes is None and committed.count(table_key):
        return committed.unknown_ids(table_key, ids)
    missing = _not_among(ids, nodes.ids) if nodes is not None and nodes.keys.num_rows else distinct(ids)
    if not len(missing) or (nodes is not None and nodes.replaces_all) or not committed.count(table_key):
        return missing
    found = one_array(committed.rows_with(table_key, "id", missing, ["id"])["id"])
    if nodes is not None and len(nodes.deleted):
        found = found.filter(pc.invert(pc.is_in(found, value_set=nodes.deleted)))
    return missing.filter(pc.invert(pc.is_in(missing, value_set=found)))


def _not_among(values: pa.ChunkedArray | pa.Array, known: pa.ChunkedArray) -> pa.Array:
    """The values that are not known, each once; part by part when they are many."""
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    # A few known values are one hash table that all values stream through; else both sides are cut to size.
    parts = parts_for(max(len(values), len(known))) if parts_for(len(known)) > 1 else 1
    value_parts, known_parts = Parts(values, parts), Parts(known, parts)
    found: list[pa.Array] = []
    for part in range(parts):
        own = value_parts.values(values, part)
        unknown = pc.invert(pc.is_in(own, value_set=one_array(known_parts.values(known, part))))
        found.append(distinct(own.filter(unknown)) if pc.any(unknown).as_py() else pa.array([], values.type))
    return pa.concat_arrays(found)


def check_cardinality(
    type_: EdgeType, table: TableChange, committed: Committed, violations: ViolationCollector
) -> None:
    """Report sources with more edges of the type than allowed, or, if they have any, with fewer."""
    sources = _touched_sources(type_, table, committed)
    if not len(sources):
        return
    staying = pa.array([], pa.string())
    if not table.replaces_all and committed.count(type_.table_key):
        rows = committed.rows_with(type_.table_key, "src", sources, ["id", "src"])
        staying = one_array(table.surviving(rows)["src"])
    added = one_array(table.keys["src"]) if table.keys.num_rows else staying.slice(0, 0)
    counts = pc.value_counts(pa.concat_arrays([staying, added.filter(pc.is_in(added, value_set=sources))]))
    broken = broken_cardinality(type_.card, counts)
    first_row = _first_rows(table, broken.field("values"))
    for source, count in sorted(zip(broken.field("values").to_pylist(), broken.field("counts").to_pylist())):
        row = first_row.get(source)
        place = table.place(row) if row is not None else None
        violations.add(
            Violation(
                Kind.CARDINALITY.value,
                type_.table_key,
                messages.cardinality(type_.card, source, count),
                row_id=table.ids[row].as_py() if row is not None else None,
                property="src",
                source=place.source if place else None,
                record=place.record if place else None,
            )
        )


def broken_cardinality(card: Cardinality, counts: pa.StructArray) -> pa.StructArray:
    """Of counted sources (values, counts) those that the rule does not allow."""
    numbers = counts.field("counts")
    broken = pc.less(numbers, card.min)
    if card.max is not None:
        broken = pc.or_(broken, pc.greater(numbers, card.max))
    return counts.filter(broken)


def _touched_sources(type_: EdgeType, table: TableChange, committed: Committed) -> pa.Array:
    """The sources whose number of edges can be different after the write."""
    parts = [distinct(table.keys["src"])] if table.may_change(("id", "src")) else []
    moved = [table.deleted] if type_.card.min and len(table.deleted) else []
    if type_.card.min and not table.known_new and table.may_change(("id", "src")):
        moved.append(one_array(table.ids))
    if moved and not table.replaces_all and committed.count(type_.table_key):
        found = committed.rows_with(type_.table_key, "id", pa.concat_arrays(moved), ["id", "src"])
        parts.append(one_array(found["src"]))
    return distinct(pa.concat_arrays(parts)) if parts else pa.array([], pa.string())


def _first_rows(table: TableChange, sources: pa.Array) -> dict[str, int]:
    rows: dict[str, int] = {}
    if len(sources) and table.keys.num_rows:
        hits = np.flatnonzero(pc.is_in(table.keys["src"], value_set=sources).to_numpy())
        for row in hits[::-1]:
            rows[table.keys["src"][int(row)].as_py()] = int(row)
    return rows


def check_dangling(catalog: Catalog, change: GraphChange, committed: Committed, violations: ViolationCollector) -> None:
    """Report committed edges that stay while one of their ends goes."""
    for edge in catalog.edges:
        table = change.get(edge.table_key)
        if table is not None and table.replaces_all:
            continue
        for end, node in (("src", edge.source), ("dst", edge.target)):
            nodes = change.get(f"node:{node}")
            # To ask a table how many rows it has is to lean on it: so only where nodes go.
            if nodes is None or not (nodes.replaces_all or len(nodes.deleted)) or not committed.count(edge.table_key):
                continue
            for rows in _edges_losing_an_end(edge, end, nodes, committed):
                losing = table.surviving(rows) if table is not None else rows
                _report_dangling(edge, end, node, losing, violations)


def _edges_losing_an_end(edge: EdgeType, end: str, nodes: TableChange, committed: Committed) -> Iterable[pa.Table]:
    if not nodes.replaces_all:
        yield committed.rows_with(edge.table_key, end, nodes.deleted, ["id", end])
        return
    staying = one_array(nodes.ids)
    for rows in committed.scan(edge.table_key, ["id", end]):
        yield rows.filter(pc.invert(pc.is_in(rows[end], value_set=staying)))


def _report_dangling(edge: EdgeType, end: str, node: str, rows: pa.Table, violations: ViolationCollector) -> None:
    first = [
        Violation(
            Kind.DANGLING_EDGE.value,
            edge.table_key,
            messages.dangling_edge(_RECORD_NAME[end], node, row[end]),
            row_id=row["id"],
            property=end,
        )
        for row in rows.slice(0, violations.kept_per_kind).to_pylist()
    ]
    violations.add_many(Kind.DANGLING_EDGE.value, edge.table_key, rows.num_rows, first)


def best_lookup(type_: GraphType, unique: Sequence[str]) -> str:
    """The column of a tuple by which few committed rows are found: an end, an indexed one, else the most varied."""

    def rank(name: str) -> tuple[int, int]:
        if name in ("src", "dst") and isinstance(type_, EdgeType):
            return (0, 0)
        property_ = type_.by_column[name]
        varied = not isinstance(property_.type, EnumType) and property_.type != ScalarType(Scalar.BOOL)
        return (1 if property_.indexed and varied else 2 if varied else 3, 0)

    return min(unique, key=rank)


def _report(
    violations: ViolationCollector,
    type_: GraphType,
    table: TableChange,
    kind: Kind,
    rows: Positions,
    message: Callable[[int], str],
    property_: str,
) -> None:
    def describe(row: int) -> Violation:
        place = table.place(row)
        return Violation(
            kind.value,
            type_.table_key,
            message(row),
            row_id=table.ids[row].as_py(),
            property=property_,
            source=place.source,
            record=place.record,
        )

    violations.add_rows(kind, type_.table_key, rows, describe, len(rows))


def _nodes_first(table_key: str) -> tuple[bool, str]:
    return (not table_key.startswith("node:"), table_key)
