"""Records to rows, the slow and obvious way: one record, one value at a time. This is the meaning of a record.

A record is `{"type": T, "data": {…}}` or `{"edge": T, "from": id, "to": id, "data": {…}}`. The order of keys is free,
`data` may be left out, and a property may itself be called `type`. An `id` may stand beside `data` or in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType
from omnigraph.write.decode.json_text import Malformed
from omnigraph.write.decode.source_values import BadValue, WrongDimension, to_id, to_value
from omnigraph.write.rows.row_columns import working_schema
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate import messages
from omnigraph.write.validate.collector import Kind, ViolationCollector

UNTYPED = "record"
"""What a violation names as its table when the record does not say one."""

_NODE_KEYS = frozenset({"type", "id", "data"})
_EDGE_KEYS = frozenset({"edge", "from", "to", "id", "data"})


class RowsBuilder:
    """Collects the values of one type's records, column by column."""

    def __init__(self, type_: GraphType, source: str | None, violations: ViolationCollector) -> None:
        self.type = type_
        self._source = source
        self._violations = violations
        self._columns: dict[str, list[Any]] = {name: [] for name in working_schema(type_).names}
        self._mentioned: dict[str, list[bool]] = {p.name: [] for p in type_.properties}
        self._failed: dict[str, set[int]] = {}
        self._records: list[int] = []

    def add(self, record: int, values: Mapping[str, Any], ends: Mapping[str, Any]) -> None:
        """One row: `values` by property name (and `id`), `ends` of an edge as `src` and `dst`."""
        row = len(self._records)
        self._records.append(record)
        self._columns["id"].append(self._id(record, row, "id", values.get("id")))
        for end, given in ends.items():
            self._columns[end].append(self._end(record, row, end, given))
        for property_ in self.type.properties:
            name = property_.name
            self._mentioned[name].append(name in values)
            try:
                value = to_value(property_.type, values.get(name))
            except BadValue as problem:
                self._report_value(record, row, name, problem, property_.type, values[name])
                value = None
            self._columns[name].append(value)
        for name in values:
            if name != "id" and name not in self.type.by_name:
                self._unknown_property(record, str(name))

    def build(self) -> Rows:
        """The rows so far."""
        schema = working_schema(self.type)
        arrays = [pa.array(self._columns[field.name], field.type) for field in schema]
        return Rows(
            self.type.table_key,
            pa.table(arrays, schema=schema),
            self._source,
            pa.array(self._records, pa.int64()),
            {name: pa.array(mask) for name, mask in self._mentioned.items() if not all(mask)},
            {name: frozenset(rows) for name, rows in self._failed.items()},
        )

    def _id(self, record: int, row: int, name: str, given: Any) -> str | None:
        try:
            return to_id(given)
        except BadValue as problem:
            self._report_value(record, row, name, problem, "text", given)
            return None

    def _end(self, record: int, row: int, end: str, given: Any) -> str | None:
        found = self._id(record, row, end, given)
        if found is None and given is None:
            self._report(record, row, Kind.MISSING_VALUE, end, messages.missing_value(_RECORD_NAME[end]))
        return found

    def _report_value(self, record: int, row: int, name: str, problem: BadValue, expected: Any, value: Any) -> None:
        if isinstance(problem, WrongDimension):
            text = messages.vector_dimension(name, expected.dim, problem.found)
            self._report(record, row, Kind.VECTOR_DIMENSION, name, text)
        else:
            shown = _RECORD_NAME.get(name, name)
            self._report(record, row, Kind.WRONG_TYPE, name, messages.wrong_type(shown, expected, value, problem.why))

    def _report(self, record: int, row: int, kind: Kind, name: str, message: str) -> None:
        self._failed.setdefault(name, set()).add(row)
        self._violations.add(
            Violation(kind.value, self.type.table_key, message, property=name, source=self._source, record=record)
        )

    def _unknown_property(self, record: int, name: str) -> None:
        self._violations.add(
            Violation(
                Kind.UNKNOWN_PROPERTY.value,
                self.type.table_key,
                messages.unknown_property(name, self.type.by_name),
                property=name,
                source=self._source,
                record=record,
            )
        )


_RECORD_NAME = {"src": "from", "dst": "to"}


def decode_records(
    catalog: Catalog, records: Iterable[tuple[int, Any]], source: str | None, violations: ViolationCollector
) -> list[Rows]:
    """Numbered JSON values as rows per type, in the order in which types first come. Bad records are reported."""
    builders: dict[str, RowsBuilder] = {}
    for record, value in records:
        found = _shape(catalog, value, _reporter(violations, source, record))
        if found is None:
            continue
        type_, values, ends = found
        builder = builders.get(type_.table_key)
        if builder is None:
            builder = builders[type_.table_key] = RowsBuilder(type_, source, violations)
        builder.add(record, values, ends)
    return [builder.build() for builder in builders.values()]


def decode_plain_rows(
    type_: GraphType,
    rows: Iterable[tuple[int, Any]],
    source: str | None,
    violations: ViolationCollector,
    *,
    src: str = "src",
    dst: str = "dst",
) -> Rows:
    """Numbered mappings from property to value, all of one type. Edges name their ends `src` and `dst`, or as told."""
    builder = RowsBuilder(type_, source, violations)
    for record, values in rows:
        if not isinstance(values, Mapping):
            _reporter(violations, source, record)(
                Kind.MALFORMED_RECORD,
                type_.table_key,
                f"a row is a mapping from property to value, not {messages.show(values)}",
            )
            continue
        if isinstance(type_, EdgeType):
            ends = {"src": values.get(src), "dst": values.get(dst)}
            builder.add(record, {k: v for k, v in values.items() if k not in (src, dst)}, ends)
        else:
            builder.add(record, values, {})
    return builder.build()


_Report = Callable[[Kind, str, str], None]


def _reporter(violations: ViolationCollector, source: str | None, record: int) -> _Report:
    def report(kind: Kind, table_key: str, message: str) -> None:
        violations.add(Violation(kind.value, table_key, message, source=source, record=record))

    return report


def _shape(
    catalog: Catalog, value: Any, report: _Report
) -> tuple[GraphType, Mapping[str, Any], Mapping[str, Any]] | None:
    """The type, the values and the ends of a record, or None when it is reported as bad."""
    if isinstance(value, Malformed):
        _bad(report, value.reason)
        return None
    if not isinstance(value, Mapping):
        hint = "; write its items one after the other, without the list" if isinstance(value, list) else ""
        _bad(report, f"a record is an object, not {messages.show(value)}{hint}")
        return None
    is_node, is_edge = "type" in value, "edge" in value
    if is_node == is_edge:
        _bad(report, 'a record has either "type" (a node) or "edge"' + (", not both" if is_node else ""))
        return None
    name = value["type" if is_node else "edge"]
    type_ = find_type(catalog, name, node=is_node)
    if type_ is None:
        known = [t.name for t in (catalog.nodes if is_node else catalog.edges)]
        report(Kind.UNKNOWN_TYPE, UNTYPED, messages.unknown_type(name, known, "node" if is_node else "edge"))
        return None
    unknown = sorted(str(key) for key in value.keys() - (_NODE_KEYS if is_node else _EDGE_KEYS))
    if unknown:
        _bad(report, f'a record has no key {messages.names(unknown)}; properties go into "data"', type_.table_key)
    data = value.get("data")
    if data is None:
        data = {}
    if not isinstance(data, Mapping):
        _bad(report, f'"data" is an object, not {messages.show(data)}', type_.table_key)
        return None
    if value.get("id") is not None:
        if data.get("id") is not None:
            _bad(report, 'the record has an "id" beside "data" and one in it; leave one out', type_.table_key)
            return None
        data = {**data, "id": value["id"]}
    return type_, data, ({} if is_node else {"src": value.get("from"), "dst": value.get("to")})


def find_type(catalog: Catalog, name: Any, *, node: bool) -> NodeType | EdgeType | None:
    """The node or edge type of that name; edge types are found without regard to case."""
    if not isinstance(name, str):
        return None
    return catalog.node(name) if node else catalog.edge(name)


def _bad(report: _Report, message: str, table_key: str = UNTYPED) -> None:
    report(Kind.MALFORMED_RECORD, table_key, message)
