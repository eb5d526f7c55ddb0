"""The ids of whole columns of rows. The meaning is in `schema.ids`, one row at a time; this is the same in bulk."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.ids.given_ids import IdForm, NoId
from omnigraph.schema.ids.identity import key_array
from omnigraph.schema.types import Scalar, ScalarType
from omnigraph.write.rows.rows import Rows
from omnigraph.write.rows.ulids import new_ulids
from omnigraph.write.validate import messages
from omnigraph.write.validate.collector import Kind, ViolationCollector


def key_text(column: pa.ChunkedArray, *, iso_dates: bool = True) -> pa.ChunkedArray:
    """The canonical text of each value of one key property; null where the value is missing or not finite."""
    type_ = column.type
    if pa.types.is_string(type_):
        return column
    if pa.types.is_date32(type_):
        return column.cast(pa.string()) if iso_dates else column.cast(pa.int32()).cast(pa.string())
    if pa.types.is_timestamp(type_):
        return _iso_times(column) if iso_dates else column.cast(pa.int64()).cast(pa.string())
    if pa.types.is_floating(type_):
        zero = pa.scalar(0, type_)
        unsigned_zero = pc.if_else(pc.equal(column, zero), zero, column)
        finite = pc.if_else(pc.is_finite(column), unsigned_zero, pa.scalar(None, type_))
        return finite.cast(pa.string())
    return column.cast(pa.string())


def _iso_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """`2026-01-02T03:04:05Z`, with six digits of a second where there are any."""
    text = pc.strftime(column.cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%SZ")
    return pc.replace_substring(text, ".000000Z", "Z")


def normal_ids(form: IdForm, given: pa.ChunkedArray) -> pa.ChunkedArray:
    """Given texts as the ids they stand for, whole columns at a time. What stands for none is left as it is."""
    if form.takes_any_text or given.null_count == len(given) or _all_plain(form, given):
        return given
    encoded = given.combine_chunks().dictionary_encode()
    normal = pa.array([_normal(form, text) for text in encoded.dictionary.to_pylist()], pa.string())
    return pa.chunked_array([normal.take(encoded.indices)])


def _normal(form: IdForm, text: str) -> str:
    try:
        return form.take(text)
    except NoId:
        return text


_PLAIN_DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_PLAIN_TIME = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\z"
_PLAIN_ARRAY = r'\A\["[^"\\]*"(?:,"[^"\\]*")*\]\z'


def _all_plain(form: IdForm, given: pa.ChunkedArray) -> bool:
    """Whether all texts are in a shape that has no other spelling."""
    if form.is_array:
        if not all(IdForm((part,)).takes_any_text for part in form.parts if not isinstance(part, IdForm)):
            return False
        if not all(part.takes_any_text for part in form.parts if isinstance(part, IdForm)):
            return False
        pattern = _PLAIN_ARRAY
    elif form.iso_dates and form.parts[0] == ScalarType(Scalar.DATE):
        pattern = _PLAIN_DATE
    elif form.iso_dates and form.parts[0] == ScalarType(Scalar.DATETIME):
        pattern = _PLAIN_TIME
    else:
        return False
    return bool(pc.all(pc.match_substring_regex(given, pattern), min_count=0).as_py())


def derived_ids(type_: GraphType, table: pa.Table) -> pa.ChunkedArray:
    """The ids that the keys of the rows make; null where part of a key is missing. For types with a key."""
    texts = [key_text(table.column(name), iso_dates=type_.iso_dates) for name in type_.key]
    if len(texts) == 1 and not isinstance(type_, EdgeType):
        return texts[0]
    quoted = [_quoted(text) for text in texts]
    if all(plain for _, plain in quoted):
        joined = pc.binary_join_element_wise(*(text for text, _ in quoted), pa.scalar(","))
        return pc.binary_join_element_wise(pa.scalar("["), joined, pa.scalar("]"), pa.scalar(""))
    rows = zip(*(text.to_pylist() for text in texts))
    return pa.chunked_array([[None if None in row else key_array(list(row)) for row in rows]], pa.string())


def _quoted(text: pa.ChunkedArray) -> tuple[pa.ChunkedArray, bool]:
    """The texts in quotes, and whether that is all there is to do: nothing in them needs an escape."""
    needs_escape = pc.any(pc.match_substring_regex(text, r'["\\\x00-\x1f]'), min_count=0).as_py()
    if needs_escape:
        return text, False
    return pc.binary_join_element_wise(pa.scalar('"'), text, pa.scalar('"'), pa.scalar("")), True


def with_ids(type_: GraphType, rows: Rows, violations: ViolationCollector) -> Rows:
    """The rows with their ids: derived from the key; for types without one the given id, or a new one.

    A given id that is not what the key makes is reported. Rows whose key is incomplete keep a null id.
    """
    given = rows.table.column("id")
    if not type_.key:
        if given.null_count == 0:
            return rows
        ids = _with_new_ids(given)
    else:
        ids = derived_ids(type_, rows.table)
        if given.null_count < len(given):
            _report_not_canonical(type_, rows, given, ids, violations)
    return rows.with_table(rows.table.set_column(0, rows.table.schema.field(0), ids))


def _with_new_ids(given: pa.ChunkedArray) -> pa.ChunkedArray:
    if given.null_count == len(given):
        return pa.chunked_array([new_ulids(len(given))])
    return pc.coalesce(given, new_ulids(len(given)))


def _report_not_canonical(
    type_: GraphType, rows: Rows, given: pa.ChunkedArray, ids: pa.ChunkedArray, violations: ViolationCollector
) -> None:
    wrong = pc.fill_null(pc.not_equal(given, ids), False)
    positions = pc.indices_nonzero(wrong)

    def describe(row: int) -> Violation:
        place = rows.place(row)
        message = messages.key_not_canonical(given[row].as_py(), ids[row].as_py())
        return Violation(
            Kind.KEY_NOT_CANONICAL.value,
            type_.table_key,
            message,
            row_id=ids[row].as_py(),
            property="id",
            source=place.source,
            record=place.record,
        )

    violations.add_rows(Kind.KEY_NOT_CANONICAL, type_.table_key, positions.to_pylist(), describe, len(positions))
