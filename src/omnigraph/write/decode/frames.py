"""Columns to rows: Arrow tables, frames of pandas and Polars, CSV and Parquet, mapped to one type.

Columns are matched to properties by name, after the caller's mapping. Values are taken as strictly as JSON values are:
a column of another type is converted only where every value stays what it is, and the slow rules judge the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, Violation
from omnigraph.schema.catalog import EdgeType, GraphType, column_title
from omnigraph.schema.floats import parse_float
from omnigraph.schema.ids.given_ids import IdForm
from omnigraph.schema.literals import EPOCH_DATE
from omnigraph.schema.types import EnumType, PropertyType, Scalar, ScalarType, VectorType
from omnigraph.write.decode.column_batches import bounded
from omnigraph.write.decode.json_text import bounded_integer
from omnigraph.write.decode.number_columns import cast_or_none, is_list, is_number, narrowed, same_lists
from omnigraph.write.decode.source_values import BadValue, WrongDimension, to_id, to_value
from omnigraph.write.rows.row_columns import ENDS, own_column, working_schema
from omnigraph.write.rows.row_ids import normal_ids
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate import messages
from omnigraph.write.validate.collector import Kind, ViolationCollector

DAY = 86_400_000_000
"""Microseconds."""


@dataclass(frozen=True)
class ColumnMapping:
    """Which column of a source is which property of which type. `src` and `dst` name the ends of edges.

    `forms` says how ids of the type and of its ends are taken.
    """

    type: GraphType
    forms: Mapping[str, IdForm]
    src: str | None = None
    dst: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, names: Sequence[str]) -> dict[str, str]:
        """Column of the table to column of the source. Raises BadRequest for columns that mean nothing."""
        found: dict[str, str] = {}
        meant = {name: self.columns.get(name, name) for name in names}
        self._refuse_missing_ends(names, meant)
        for name in names:
            target = self._target(name, meant)
            if target in found:
                raise BadRequest(f"the columns `{found[target]}` and `{name}` are both `{column_title(target)}`")
            found[target] = name
        if self._is_loop:
            found["dst"] = found["src"]
        unknown = [name for name in self.columns if name not in names]
        if unknown:
            raise BadRequest(f"the mapping names the column `{unknown[0]}`, which is not there")
        return found

    def _target(self, name: str, meant: Mapping[str, str]) -> str:
        own = own_column(self.type, meant[name], set(meant.values()), self.src, self.dst)
        if own is not None:
            return own
        property_ = self.type.by_name.get(meant[name])
        if property_ is None:
            ends = ENDS if isinstance(self.type, EdgeType) else ()
            hint = did_you_mean(meant[name], [*self.type.by_name, "id", *ends])
            raise BadRequest(
                f"the column `{name}` is no property of {self.type.name}"
                + (f"; {hint}" if hint else "; map it to one, or leave it out")
            )
        return property_.column

    @property
    def _is_loop(self) -> bool:
        """Whether one column names both ends."""
        return isinstance(self.type, EdgeType) and self.src is not None and self.src == self.dst

    def _refuse_missing_ends(self, names: Sequence[str], meant: Mapping[str, str]) -> None:
        """Before anything else is said of the columns of edges: which of them are their ends."""
        if not isinstance(self.type, EdgeType):
            if self.src is not None or self.dst is not None:
                named = "src" if self.src is not None else "dst"
                raise BadRequest(f"{named} names an end of edges, and {self.type.name} is a node type; leave it out")
            return
        for end, given in (("src", self.src), ("dst", self.dst)):
            if given is not None and given not in meant.values():
                raise BadRequest(f"{end} names the column `{given}`, which is not there; there are {', '.join(names)}")
        ends = {own_column(self.type, name, set(meant.values()), self.src, self.dst) for name in meant.values()}
        missing = [end for end in ENDS if end not in ends] if not self._is_loop else []
        if missing:
            arguments, options = "=… and ".join(missing), " and --".join(missing)
            raise BadRequest(
                f"no column gives the `{missing[0]}` of {self.type.name} edges; there are {', '.join(names)}. "
                f"Name it with {arguments}=… (--{options})"
            )


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
    for batch in bounded(batches):
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
            if target.name in type_.by_column:
                mentioned[target.name] = pa.repeat(pa.scalar(False), table.num_rows)
            continue
        column = table[found[target.name]]
        property_type = type_.by_column[target.name].type if target.name in type_.by_column else None
        if property_type is None:
            array, problems = _id_column(mapping.forms[target.name], column)
        else:
            array, problems = _column(property_type, column, target.type, text_values)
        arrays.append(array)
        if problems:
            failed[target.name] = frozenset(problems)
            _report(type_, target.name, property_type, column, problems, source, first_record, violations)
        if target.name in ("src", "dst"):
            _report_missing_end(type_, target.name, array, problems, source, first_record, violations)
    return Rows(type_.table_key, pa.table(arrays, schema=schema), source, records, mentioned, failed)


Problems = dict[int, BadValue]


def _id_column(form: IdForm, column: pa.ChunkedArray) -> tuple[Any, Problems]:
    """A column of ids, and the values that are none."""
    column = _plain(column)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.string()), {}
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):
        return normal_ids(form, column), {}
    if pa.types.is_integer(column.type) and form.takes_any_text:
        return column.cast(pa.string()), {}
    values: list[Any] = []
    problems: Problems = {}
    for row, scalar in enumerate(column):
        try:
            values.append(to_id(form, _python_value(scalar)))
        except BadValue as problem:
            values.append(None)
            problems[row] = problem
    return pa.array(values, pa.string()), problems


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _column(
    type_: PropertyType, column: pa.ChunkedArray, stored: pa.DataType, text_values: bool
) -> tuple[Any, Problems]:
    """A column in the stored type, and the values that are not of it."""
    column = _plain(column)
    if text_values:
        return _from_text(type_, column, stored)
    fast = _same_values(type_, column, stored)
    if fast is not None:
        return fast, {}
    values: list[Any] = []
    problems: Problems = {}
    for row, scalar in enumerate(column):
        try:
            value = _python_value(scalar)
            values.append(to_value(type_, value))
        except BadValue as problem:
            values.append(None)
            problems[row] = problem
    return pa.array(values, stored), problems


def _python_value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        raise BadValue("it lies outside the years 1 to 9999") from None


def _same_values(type_: PropertyType, column: pa.ChunkedArray, stored: pa.DataType) -> Any | None:
    """The column converted as a whole, when that changes no value; None when each value has to be looked at."""
    given = column.type
    if given == stored:
        return column if _in_calendar(column) else None
    if pa.types.is_null(given):
        return pa.nulls(len(column), stored)
    if pa.types.is_string(stored):
        if pa.types.is_large_string(given) or pa.types.is_string_view(given):
            return column.cast(stored)
        return None
    if pa.types.is_floating(given) and stored == pa.float32():
        return narrowed(column)
    whole = pa.types.is_integer(given) or pa.types.is_floating(stored)
    if is_number(given) and is_number(stored) and whole:
        return cast_or_none(column, stored)
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(stored) and given.tz is not None:
        moments = cast_or_none(column, stored)
        return moments if moments is not None and _in_calendar(moments) else None
    if pa.types.is_binary(given) and pa.types.is_large_binary(stored):
        return column.cast(stored)
    # Lists as Spark, Parquet and pandas have them. Vectors of another length are told apart one by one.
    return same_lists(column, stored) if is_list(given) and is_list(stored) else None


_FIRST_DAY, _LAST_DAY = (day.toordinal() - EPOCH_DATE.toordinal() for day in (date.min, date.max))


def _in_calendar(column: pa.ChunkedArray) -> bool:
    """Whether dates and times lie in the years 1 to 9999, as all others do. Other columns have no calendar."""
    if pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    if pa.types.is_date32(column.type):
        numbers, low, high = column.cast(pa.int32()), _FIRST_DAY, _LAST_DAY
    elif pa.types.is_timestamp(column.type):
        numbers, low, high = column.cast(pa.int64()), _FIRST_DAY * DAY, (_LAST_DAY + 1) * DAY - 1
    else:
        return True
    bounds = pc.min_max(numbers)
    return not bounds["min"].is_valid or (low <= bounds["min"].as_py() and bounds["max"].as_py() <= high)


def _from_text(type_: PropertyType, column: pa.ChunkedArray, stored: pa.DataType) -> tuple[Any, Problems]:
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
            values.append(None if text is None else to_value(type_, _parsed(type_, text)))
        except BadValue as problem:
            values.append(None)
            problems[row] = problem
    return pa.array(values, stored), problems


def _numbers_from_text(type_: PropertyType, column: pa.ChunkedArray, stored: pa.DataType) -> Any | None:
    if not pa.types.is_integer(stored):
        return None
    if not pc.all(pc.match_substring_regex(column, r"\A(?:0|-?[1-9][0-9]*)\z"), min_count=0).as_py():
        return None
    return cast_or_none(column, stored)


def _parsed(type_: PropertyType, text: str) -> Any:
    """The JSON value that a cell of a CSV file stands for, by the type it is meant for."""
    if isinstance(type_, EnumType) or (isinstance(type_, ScalarType) and type_.scalar in _WRITTEN_AS_TEXT):
        return text
    try:
        return json.loads(
            text.lower() if type_ == ScalarType(Scalar.BOOL) else text,
            parse_int=bounded_integer,
            parse_float=parse_float,
        )
    except ValueError:
        return text


_WRITTEN_AS_TEXT = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME, Scalar.BLOB, Scalar.I64, Scalar.U64})


def _report(
    type_: GraphType,
    target: str,
    property_type: PropertyType | None,
    column: pa.ChunkedArray,
    problems: Problems,
    source: str | None,
    first_record: int,
    violations: ViolationCollector,
) -> None:
    name = column_title(target)
    for row, problem in problems.items():
        if isinstance(problem, WrongDimension) and isinstance(property_type, VectorType):
            kind, text = Kind.VECTOR_DIMENSION, messages.vector_dimension(name, property_type.dim, problem.found)
        else:
            expected = "an id" if property_type is None else property_type
            why = problem.why or _about_the_column(column.type)
            kind, text = Kind.WRONG_TYPE, messages.wrong_type(name, expected, _shown(column[row]), why)
        violations.add(
            Violation(kind.value, type_.table_key, text, property=name, source=source, record=first_record + row)
        )


def _about_the_column(type_: pa.DataType) -> str | None:
    """What to do where the type of the whole column is the reason."""
    return f"the column is of type {type_}; cast it before" if pa.types.is_decimal(type_) else None


def _shown(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):  # no date of Python's
        return f"{scalar.value} as {scalar.type}" if hasattr(scalar, "value") else str(scalar.type)


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
