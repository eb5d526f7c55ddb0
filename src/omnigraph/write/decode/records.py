"""Records to rows, the slow and obvious way: one record, one value at a time. This is the meaning of a record.

A record is `{"type": T, "data": {…}}` or `{"edge": T, "from": id, "to": id, "data": {…}}`. The order of keys is free,
`data` may be left out, and a property may itself be called `type`. An `id` may stand beside `data`, or in it unless a
property is called so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType, column_title
from omnigraph.schema.ids.given_ids import IdForm, own_forms
from omnigraph.write.decode.json_text import Malformed
from omnigraph.write.decode.source_values import BadValue, WrongDimension, to_id, to_value
from omnigraph.write.rows.row_columns import ENDS, own_column, working_schema
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate import messages
from omnigraph.write.validate.collector import Kind, ViolationCollector

UNTYPED = "record"
"""What a violation names as its table when the record does not say one."""

_NODE_KEYS = frozenset({"type", "id", "data"})
_EDGE_KEYS = frozenset({"edge", "from", "to", "id", "data"})


class RowsBuilder:
    """Collects the values of one type's records, column by column."""

    def __init__(
        self, type_: GraphType, forms: Mapping[str, IdForm], source: str | None, violations: ViolationCollector
    ) -> None:
        self.type = type_
        self._forms = forms
        self._source = source
        self._violations = violations
        self._columns: dict[str, list[Any]] = {name: [] for name in working_schema(type_).names}
        self._mentioned: dict[str, list[bool]] = {p.column: [] for p in type_.properties}
        self._failed: dict[str, set[int]] = {}
        self._records: list[int] = []

    def add(self, record: int, values: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """One row: `values` by property name, `own` its `id` and, of an edge, `src` and `dst`."""
        row = len(self._records)
        self._records.append(record)
        self._columns["id"].append(self._id(record, row, "id", own.get("id")))
        if isinstance(self.type, EdgeType):
            for end in ENDS:
                self._columns[end].append(self._end(record, row, end, own.get(end)))
        for property_ in self.type.properties:
            name, column = property_.name, property_.column
            self._mentioned[column].append(name in values)
            try:
                value = to_value(property_.type, values.get(name))
            except BadValue as problem:
                self._report_value(record, row, column, problem, property_.type, values[name])
                value = None
            self._columns[column].append(value)
        for name in values:
            if name not in self.type.by_name:
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
            return to_id(self._forms[name], given)
        except BadValue as problem:
            self._report_value(record, row, name, problem, "an id", given)
            return None

    def _end(self, record: int, row: int, end: str, given: Any) -> str | None:
        found = self._id(record, row, end, given)
        if found is None and given is None:
            self._report(record, row, Kind.MISSING_VALUE, end, messages.missing_value(_RECORD_NAME[end]))
        return found

    def _report_value(self, record: int, row: int, column: str, problem: BadValue, expected: Any, value: Any) -> None:
        if isinstance(problem, WrongDimension):
            text = messages.vector_dimension(column_title(column), expected.dim, problem.found)
            self._report(record, row, Kind.VECTOR_DIMENSION, column, text)
        else:
            shown = _RECORD_NAME.get(column) or column_title(column)
            self._report(record, row, Kind.WRONG_TYPE, column, messages.wrong_type(shown, expected, value, problem.why))

    def _report(self, record: int, row: int, kind: Kind, column: str, message: str) -> None:
        self._failed.setdefault(column, set()).add(row)
        name = column_title(column)
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
        type_, values, own = found
        builder = builders.get(type_.table_key)
        if builder is None:
            forms = own_forms(catalog, type_)
            builder = builders[type_.table_key] = RowsBuilder(type_, forms, source, violations)
        builder.add(record, values, own)
    return [builder.build() for builder in builders.values()]


def decode_plain_rows(
    catalog: Catalog,
    type_: GraphType,
    rows: Iterable[tuple[int, Any]],
    source: str | None,
    violations: ViolationCollector,
    *,
    src: str | None = None,
    dst: str | None = None,
) -> Rows:
    """Numbered mappings from property to value, all of one type, with ids and ends as in columns (`own_column`)."""
    builder = RowsBuilder(type_, own_forms(catalog, type_), source, violations)
    for record, values in rows:
        if not isinstance(values, Mapping):
            _reporter(violations, source, record)(
                Kind.MALFORMED_RECORD,
                type_.table_key,
                f"a row is a mapping from property to value, not {messages.show(values)}",
            )
            continue
        own: dict[str, Any] = {}
        properties: dict[str, Any] = {}
        for name, value in values.items():
            column = own_column(type_, name, values, src, dst)
            if column is None:
                properties[name] = value
            else:
                own[column] = value
        builder.add(record, properties, own)
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
    own = {"id": value.get("id"), "src": value.get("from"), "dst": value.get("to")}
    if "id" in data and "id" not in type_.by_name:
        if own["id"] is not None and data["id"] is not None:
            _bad(report, 'the record has an "id" beside "data" and one in it; leave one out', type_.table_key)
            return None
        own["id"] = own["id"] if data["id"] is None else data["id"]
        data = {name: item for name, item in data.items() if name != "id"}
    return type_, data, own


def find_type(catalog: Catalog, name: Any, *, node: bool) -> NodeType | EdgeType | None:
    """The node or edge type of that name; edge types are found without regard to case."""
    if not isinstance(name, str):
        return None
    return catalog.node(name) if node else catalog.edge(name)


def _bad(report: _Report, message: str, table_key: str = UNTYPED) -> None:
    report(Kind.MALFORMED_RECORD, table_key, message)
