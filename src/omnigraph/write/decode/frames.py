"""Columns to rows: Arrow tables, frames of pandas and Polars, CSV and Parquet, mapped to one type.

Columns are matched to properties by name, after the caller's mapping. Values are taken as strictly as JSON values are:
a column of another type is converted only where every value stays what it is, and the slow rules judge the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, Violation
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.types import EnumType, PropertyType, Scalar, ScalarType, VectorType
from omnigraph.write.columns import working_schema
from omnigraph.write.decode.values import BadValue, WrongDimension, to_id, to_value
from omnigraph.write.rows import Rows
from omnigraph.write.validate import messages
from omnigraph.write.validate.collector import Kind, ViolationCollector


@dataclass(frozen=True)
class ColumnMapping:
    """Which column of a source is which property of which type. `src` and `dst` name the ends of edges."""

    type: GraphType
    src: str | None = None
    dst: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, names: Sequence[str]) -> dict[str, str]:
        """Property (or `id`, `src`, `dst`) to column. Raises BadRequest for columns that mean nothing."""
        wanted = working_schema(self.type).names
        self._refuse_missing_ends(names)
        found: dict[str, str] = {}
        for name in names:
            found_target = self.columns.get(name) or self._end(name, names) or name
            if found_target not in wanted:
                hint = did_you_mean(found_target, wanted)
                raise BadRequest(
                    f"the column `{name}` is no property of {self.type.name}"
                    + (f"; {hint}" if hint else "; map it to one, or leave it out")
                )
            if found_target in found:
                raise BadRequest(f"the columns `{found[found_target]}` and `{name}` are both `{found_target}`")
            found[found_target] = name
        unknown = [name for name in self.columns if name not in names]
        if unknown:
            raise BadRequest(f"the mapping names the column `{unknown[0]}`, which is not there")
        return found

    def _refuse_missing_ends(self, names: Sequence[str]) -> None:
        """Before anything else is said of the columns of edges: which of them are their ends."""
        if not isinstance(self.type, EdgeType):
            return
        for end, given in (("src", self.src), ("dst", self.dst)):
            if given is not None and given not in names:
                raise BadRequest(f"{end} names the column `{given}`, which is not there; there are {', '.join(names)}")
        ends = {self.columns.get(name) or self._end(name, names) or name for name in names}
        missing = [end for end in ("src", "dst") if end not in ends]
        if missing:
            arguments, options = "=… and ".join(missing), " and --".join(missing)
            raise BadRequest(
                f"no column gives the `{missing[0]}` of {self.type.name} edges; there are {', '.join(names)}. "
                f"Name it with {arguments}=… (--{options})"
            )

    def _end(self, name: str, names: Sequence[str]) -> str | None:
        if not isinstance(self.type, EdgeType):
            return None
        for end, given, common in (("src", self.src, "from"), ("dst", self.dst, "to")):
            if name == given or (given is None and name == common and end not in names):
                return end
        return None


def decode_frames(
    mapping: ColumnMapping,
    batches: Iterable[pa.RecordBatch],
    source: str | None,
    violations: ViolationCollector,
    *,
    text_values: bool = False,
    first_record: int = 1,
) -> Iterator[Rows]:
    """Batches of columns as rows of one type. `text_values`: every value is text (CSV), and empty text is nothing."""
    record = first_record
    for batch in batches:
        table = pa.Table.from_batches([batch])
        yield decode_frame(mapping, table, source, record, violations, text_values=text_values)
        record += batch.num_rows


def decode_frame(
    mapping: ColumnMapping,
    table: pa.Table,
    source: str | None,
    first_record: int,
    violations: ViolationCollector,
    *,
    text_values: bool = False,
) -> Rows:
    """One table of columns as rows of one type."""
    type_ = mapping.type
    found = mapping.resolve(table.column_names)
    schema = working_schema(type_)
    records = pa.array(np.arange(first_record, first_record + table.num_rows, dtype=np.int64))
    failed: dict[str, frozenset[int]] = {}
    arrays: list[Any] = []
    mentioned: dict[str, pa.Array] = {}
    for target in schema:
        if target.name not in found:
            arrays.append(pa.nulls(table.num_rows, target.type))
            if target.name in type_.by_name:
                mentioned[target.name] = pa.repeat(pa.scalar(False), table.num_rows)
            continue
        column = table[found[target.name]]
        property_type = type_.by_name[target.name].type if target.name in type_.by_name else None
        array, problems = _column(property_type, column, target.type, text_values)
        arrays.append(array)
        if problems:
            failed[target.name] = frozenset(problems)
            _report(type_, target.name, property_type, column, problems, source, first_record, violations)
        if target.name in ("src", "dst"):
            _report_missing_end(type_, target.name, array, problems, source, first_record, violations)
    return Rows(type_.table_key, pa.table(arrays, schema=schema), source, records, mentioned, failed)


Problems = dict[int, BadValue]


def _column(
    type_: PropertyType | None, column: pa.ChunkedArray, stored: pa.DataType, text_values: bool
) -> tuple[Any, Problems]:
    """A column in the stored type, and the values that are not of it."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if text_values:
        return _from_text(type_, column, stored)
    fast = _same_values(type_, column, stored)
    if fast is not None:
        return fast, {}
    values: list[Any] = []
    problems: Problems = {}
    for row, value in enumerate(column.to_pylist()):
        try:
            values.append(to_id(value) if type_ is None else to_value(type_, value))
        except BadValue as problem:
            values.append(None)
            problems[row] = problem
    return pa.array(values, stored), problems


def _same_values(type_: PropertyType | None, column: pa.ChunkedArray, stored: pa.DataType) -> Any | None:
    """The column converted as a whole, when that changes no value; None when each value has to be looked at."""
    given = column.type
    if given == stored:
        return column
    if pa.types.is_null(given):
        return pa.nulls(len(column), stored)
    if pa.types.is_string(stored):
        if pa.types.is_large_string(given) or pa.types.is_string_view(given):
            return column.cast(stored)
        return column.cast(stored) if type_ is None and pa.types.is_integer(given) else None
    both_numbers = _is_number(given) and _is_number(stored)
    narrow_float = pa.types.is_floating(given) and stored == pa.float32()
    whole = pa.types.is_integer(given) or pa.types.is_floating(stored)
    if (both_numbers and whole and not narrow_float) or (
        pa.types.is_timestamp(given) and pa.types.is_timestamp(stored)
    ):
        if pa.types.is_timestamp(given) and given.tz is None:
            return None
        return _cast_or_none(column, stored)
    if pa.types.is_binary(given) and pa.types.is_large_binary(stored):
        return column.cast(stored)
    if isinstance(type_, VectorType) and pa.types.is_fixed_size_list(given) and given.list_size == type_.dim:
        return _cast_or_none(column, stored) if pa.types.is_float32(given.value_type) else None
    return None


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _cast_or_none(column: pa.ChunkedArray, stored: pa.DataType) -> Any | None:
    try:
        return column.cast(stored)
    except pa.ArrowInvalid:
        return None


def _from_text(type_: PropertyType | None, column: pa.ChunkedArray, stored: pa.DataType) -> tuple[Any, Problems]:
    """A column of CSV text in the stored type."""
    if pa.types.is_string(stored):
        return column, {}
    fast = _numbers_from_text(type_, column, stored)
    if fast is not None:
        return fast, {}
    values: list[Any] = []
    problems: Problems = {}
    for row, text in enumerate(column.to_pylist()):
        try:
            values.append(None if text is None else to_value(type_, _parsed(type_, text)))  # type: ignore[arg-type]
        except BadValue as problem:
            values.append(None)
            problems[row] = problem
    return pa.array(values, stored), problems


def _numbers_from_text(type_: PropertyType | None, column: pa.ChunkedArray, stored: pa.DataType) -> Any | None:
    if not pa.types.is_integer(stored):
        return None
    if not pc.all(pc.match_substring_regex(column, r"\A(?:0|-?[1-9][0-9]*)\z"), min_count=0).as_py():
        return None
    return _cast_or_none(column, stored)


def _parsed(type_: PropertyType | None, text: str) -> Any:
    """The JSON value that a cell of a CSV file stands for, by the type it is meant for."""
    import json

    if isinstance(type_, EnumType) or (isinstance(type_, ScalarType) and type_.scalar in _WRITTEN_AS_TEXT):
        return text
    try:
        return json.loads(text.lower() if type_ == ScalarType(Scalar.BOOL) else text)
    except ValueError:
        return text


_WRITTEN_AS_TEXT = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME, Scalar.BLOB, Scalar.I64, Scalar.U64})


def _report(
    type_: GraphType,
    name: str,
    property_type: PropertyType | None,
    column: pa.ChunkedArray,
    problems: Problems,
    source: str | None,
    first_record: int,
    violations: ViolationCollector,
) -> None:
    for row, problem in problems.items():
        if isinstance(problem, WrongDimension) and isinstance(property_type, VectorType):
            kind, text = Kind.VECTOR_DIMENSION, messages.vector_dimension(name, property_type.dim, problem.found)
        else:
            expected = "text" if property_type is None else property_type
            kind, text = Kind.WRONG_TYPE, messages.wrong_type(name, expected, column[row].as_py(), problem.why)
        violations.add(
            Violation(kind.value, type_.table_key, text, property=name, source=source, record=first_record + row)
        )


def _report_missing_end(
    type_: GraphType,
    end: str,
    array: Any,
    problems: Problems,
    source: str | None,
    first_record: int,
    violations: ViolationCollector,
) -> None:
    if not array.null_count:
        return
    rows = [row for row in pc.indices_nonzero(pc.is_null(array)).to_pylist() if row not in problems]
    name = {"src": "from", "dst": "to"}[end]
    violations.add_rows(
        Kind.MISSING_VALUE,
        type_.table_key,
        rows,
        lambda row: Violation(
            Kind.MISSING_VALUE.value,
            type_.table_key,
            messages.missing_value(name),
            property=end,
            source=source,
            record=first_record + row,
        ),
        len(rows),
    )
