"""Constraints that a schema apply adds, checked against the rows that are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.errors import ValidationFailed, Violation
from omnigraph.ledger.store import GraphStore
from omnigraph.ledger.values import Snapshot
from omnigraph.schema.catalog import Cardinality, Catalog, Check, GraphType, Range, column_title, property_column
from omnigraph.schema.migrate import MigrationPlan
from omnigraph.schema.migration_steps import AddConstraint, Key, Unique
from omnigraph.storage.values import TableVersion
from omnigraph.write.schema_facts import pinned
from omnigraph.write.validate import messages
from omnigraph.write.validate.collector import Kind, ViolationCollector
from omnigraph.write.validate.values import Finding, find_failed_checks, find_out_of_range

_CODES: Mapping[str, str] = {
    Kind.UNIQUE: "OG-AC-101",
    Kind.RANGE: "OG-AC-102",
    Kind.CHECK: "OG-AC-103",
    Kind.CARDINALITY: "OG-AC-104",
}


def check_constraints(
    store: GraphStore, base: Snapshot, accepted: Catalog, desired: Catalog, planned: MigrationPlan
) -> None:
    """`ValidationFailed` with every row that a new constraint would break: counted, and the first few named."""
    before = {type_.id: type_ for type_ in accepted.types()}
    violations = ViolationCollector()
    for step in planned.steps:
        if isinstance(step, AddConstraint) and step.needs_check:
            old = before[step.type_id]
            table = pinned(base.pin(old.table_key))
            _check(store, table, _Names(old, desired.table(step.table_key)), step, violations)
    if violations:
        raise _refused(violations)


def _refused(violations: ViolationCollector) -> ValidationFailed:
    """Which rules the rows break, by code, how many rows do, and the first few of them by name."""
    counts = violations.counts
    codes = [_CODES[kind] for kind in counts]
    found = ", ".join(f"{count} {kind} [{_CODES[kind]}]" for kind, count in counts.items())
    lines = [f"schema apply: the data that is there breaks rules of the new schema, nothing was changed: {found}"]
    for violation in violations.violations:
        row = f" {messages.show(violation.row_id)}" if violation.row_id is not None else ""
        lines.append(f"  {violation.table_key}{row}: {violation.message}")
    error = ValidationFailed("\n".join(lines), violations.violations, counts)
    error.details["codes"] = codes
    return error


class _Names:
    """Columns of a table by the columns that its properties have in the desired schema."""

    def __init__(self, old: GraphType, new: GraphType | None) -> None:
        assert new is not None
        before = {p.id: p.column for p in old.properties}
        self._before = {p.column: before[p.id] for p in new.properties if p.id in before}
        self.defaults = {p.column: p.default for p in new.properties if p.id not in before}
        """What rows have in properties that are added now."""

    def column(self, name: str) -> str:
        return self._before.get(name, name)


def _check(
    store: GraphStore, table: TableVersion, names: _Names, step: AddConstraint, violations: ViolationCollector
) -> None:
    constraint = step.constraint
    if isinstance(constraint, Range | Check):
        column = names.column(property_column(constraint.property))
        for batch in store.tables.scan(table, columns=["id", column]):
            values = pa.chunked_array([batch.column(column)])
            for finding in _value_findings(constraint, values):
                _add(violations, step.table_key, batch.column("id"), finding)
    elif isinstance(constraint, Unique | Key):
        _check_unique(store, table, names, constraint.properties, step.table_key, violations)
    elif isinstance(constraint, Cardinality):
        _check_cardinality(store, table, constraint, step.table_key, violations)


def _value_findings(constraint: Range | Check, values: pa.ChunkedArray) -> Iterator[Finding]:
    if isinstance(constraint, Range):
        yield from find_out_of_range(constraint, values)
    else:
        yield from find_failed_checks(constraint, values)


def _add(violations: ViolationCollector, table_key: str, ids: pa.Array, finding: Finding) -> None:
    violations.add_rows(
        finding.kind,
        table_key,
        finding.rows,
        lambda row: Violation(
            finding.kind, table_key, finding.message(row), row_id=ids[row].as_py(), property=finding.property
        ),
        len(finding.rows),
    )


def _check_unique(
    store: GraphStore,
    table: TableVersion,
    names: _Names,
    properties: Sequence[str],
    table_key: str,
    violations: ViolationCollector,
) -> None:
    """Rows that share a tuple; a tuple with a null in it is exempt, and every row shares a default that is added."""
    columns = [names.column(name) for name in properties if name not in names.defaults]
    # No column is called so: a property's begins with two underscores only where its name is one of our own columns.
    listed = "".join(f", {_quoted(column)}" for column in columns)
    present = " and ".join(f"{_quoted(column)} is not null" for column in columns) or "true"
    grouped = f"group by {listed[2:]}" if columns else ""
    query = (
        f"select min(id) as __first, max(id) as __last, count(*) as __count{listed} from rows where {present} "
        f"{grouped} having count(*) > 1 order by __first"
    )
    for row in _relational(store, table, ["id", *columns], query):
        values = [names.defaults[name] if name in names.defaults else row[names.column(name)] for name in properties]
        titles = tuple(map(column_title, properties))
        message = messages.not_unique(titles, values, row["__first"])
        violation = Violation(Kind.UNIQUE, table_key, message, row_id=row["__last"], property=", ".join(titles))
        violations.add_many(Kind.UNIQUE, table_key, row["__count"] - 1, [violation])


def _check_cardinality(
    store: GraphStore, table: TableVersion, rule: Cardinality, table_key: str, violations: ViolationCollector
) -> None:
    upper = f" or count(*) > {rule.max}" if rule.max is not None else ""
    query = f"select src, count(*) as n from rows group by src having count(*) < {rule.min}{upper} order by src"
    for row in _relational(store, table, ["src"], query):
        message = messages.cardinality(rule, row["src"], row["n"])
        violations.add(Violation(Kind.CARDINALITY, table_key, message, row_id=None))


def _relational(store: GraphStore, table: TableVersion, columns: Sequence[str], query: str) -> list[dict[str, Any]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("rows", store.tables.scan(table, columns=list(dict.fromkeys(columns))))
        found: list[dict[str, Any]] = connection.sql(query).to_arrow_table().to_pylist()
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
