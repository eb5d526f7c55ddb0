"""The merged result as a graph: what its rules refuse becomes a conflict with the three versions of the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot
from omnigraph.merge.compare.images import digest_rows
from omnigraph.merge.decide.conflicts import ConflictKind, MergeConflict
from omnigraph.schema.catalog import Catalog
from omnigraph.write.graph_change import RowChanges, validate_graph_change
from omnigraph.write.validate.collector import Kind

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

_KINDS: Mapping[str, ConflictKind] = {
    Kind.MISSING_ENDPOINT: ConflictKind.ORPHAN_EDGE,
    Kind.DANGLING_EDGE: ConflictKind.ORPHAN_EDGE,
    Kind.UNIQUE: ConflictKind.UNIQUE_VIOLATION,
    Kind.DUPLICATE_ID: ConflictKind.UNIQUE_VIOLATION,
    Kind.CARDINALITY: ConflictKind.CARDINALITY_VIOLATION,
}


def graph_conflicts(
    store: GraphStore,
    bases: Sequence[Snapshot],
    source: Snapshot,
    target: Snapshot,
    changes: Mapping[str, RowChanges],
) -> tuple[tuple[MergeConflict, ...], frozenset[str]]:
    """Every rule that the merged graph would break, and the tables that were read to find out."""
    violations, reads = validate_graph_change(store, target, changes, every_violation=True)
    if not violations:
        return (), reads
    catalog = store.catalog(target.schema_digest)
    versions = _Versions(store, catalog, bases, source, target, violations.violations)
    return tuple(versions.conflict(violation) for violation in violations.violations), reads


class _Versions:
    """The three versions of the rows that violations name, read once per table."""

    def __init__(
        self,
        store: GraphStore,
        catalog: Catalog,
        bases: Sequence[Snapshot],
        source: Snapshot,
        target: Snapshot,
        violations: Sequence[Violation],
    ) -> None:
        self._rows: dict[str, list[dict[str, dict[str, Any]]]] = {}
        wanted: dict[str, list[str]] = {}
        for violation in violations:
            if violation.row_id is not None:
                wanted.setdefault(violation.table_key, []).append(violation.row_id)
        for key, ids in wanted.items():
            type_ = catalog.table(key)
            assert type_ is not None
            array = pa.array(sorted(set(ids)), pa.utf8())
            states = (bases[0] if bases else None, source, target)
            self._rows[key] = [
                {}
                if state is None or key not in state.tables
                else digest_rows(store, table_of(state.tables[key]), type_, array)
                for state in states
            ]

    def conflict(self, violation: Violation) -> MergeConflict:
        row_id = violation.row_id or ""
        base, source, target = (rows.get(row_id) for rows in self._rows.get(violation.table_key, [{}, {}, {}]))
        kind = _KINDS.get(violation.kind, ConflictKind.VALUE_CONSTRAINT_VIOLATION)
        message = f"{violation.table_key.split(':', 1)[1]}: {violation.message}"
        return MergeConflict(violation.table_key, violation.row_id, kind, message, base, source, target)
