"""How values look outside Arrow: Python rows, JSON, CSV, text tables, HTML.

One rule for each type, the same in every form: F32 at 32-bit width, `Date` as `2026-01-02`, `DateTime` as ISO text
in UTC with `Z` and a fraction only where there is one.
"""

from __future__ import annotations

import datetime
import html
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.ir import ResultColumn

HTML_ROWS = 50
NARROWEST = 4
SAFE_INTEGER = 2**53 - 1
_JSON = orjson.OPT_UTC_Z


def python_rows(batch: pa.RecordBatch, columns: Sequence[ResultColumn]) -> Iterator[dict[str, Any]]:
    """Rows as dictionaries in column order."""
    names = [column.name for column in columns]
    for values in zip(*(_python_column(batch.column(i)) for i in range(len(names))), strict=True):
        yield dict(zip(names, values, strict=True))


def _python_column(column: pa.Array) -> list[Any]:
    type_ = column.type
    if pa.types.is_struct(type_):
        return _objects(column)
    if pa.types.is_float32(type_):
        # Shortest 32-bit text, read back: 0.99 and not 0.9900000095367432.
        return list(pc.cast(pc.cast(column, pa.string()), pa.float64()).to_pylist())
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_) or pa.types.is_large_list(type_):
        if pa.types.is_float32(type_.value_type):
            return [None if row is None else _python_column(pa.array(row, pa.float32())) for row in column.to_pylist()]
        if pa.types.is_timestamp(type_.value_type):
            return [None if row is None else [_utc(item) for item in row] for row in column.to_pylist()]
        return list(column.to_pylist())
    if pa.types.is_timestamp(type_):
        return [_utc(value) for value in column.to_pylist()]
    return list(column.to_pylist())


def _utc(value: datetime.datetime | None) -> datetime.datetime | None:
    """Arrow gives its own time zone objects; the standard one is what people compare with."""
    return None if value is None else value.astimezone(datetime.UTC)


def _objects(column: pa.StructArray) -> list[Any]:
    """Entities: `@id` and the properties that are not null."""
    names = [field.name for field in column.type]
    fields = [_python_column(column.field(i)) for i in range(len(names))]
    whole = column.is_valid().to_pylist()
    return [
        {name: value for name, value in zip(names, values, strict=True) if value is not None} if valid else None
        for valid, values in zip(whole, zip(*fields, strict=True), strict=True)
    ]


def _js_safe(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > SAFE_INTEGER:
        return str(value)
    if isinstance(value, list):
        return [_js_safe(item) for item in value]
    if isinstance(value, dict):
        return {key: _js_safe(item) for key, item in value.items()}
    return value


def json_lines(batch: pa.RecordBatch, columns: Sequence[ResultColumn], *, js_safe_ints: bool) -> Iterator[str]:
    """One JSON object for each row."""
    for row in python_rows(batch, columns):
        yield orjson.dumps(_js_safe(row) if js_safe_ints else row, option=_JSON).decode()


def json_array(
    batches: Iterable[pa.RecordBatch], columns: Sequence[ResultColumn], *, js_safe_ints: bool, indent: bool
) -> str:
    """A JSON array of objects."""
    rows = [row for batch in batches for row in python_rows(batch, columns)]
    option = _JSON | (orjson.OPT_INDENT_2 if indent else 0)
    return orjson.dumps([_js_safe(row) for row in rows] if js_safe_ints else rows, option=option).decode()


def plain(value: Any, null: str = "") -> str:
    """One value as text, without quotes."""
    if value is None:
        return null
    if isinstance(value, str):
        return value
    if isinstance(value, datetime.datetime | datetime.date | dict | list | bool):
        return orjson.dumps(value, option=_JSON).decode().strip('"')
    return str(value)


def csv_lines(batches: Iterable[pa.RecordBatch], columns: Sequence[ResultColumn]) -> Iterator[str]:
    """CSV lines with their ends. A null is an empty cell and an empty text a quoted one, as a load reads them."""
    yield _csv_line([column.name for column in columns])
    for batch in batches:
        for row in python_rows(batch, columns):
            yield _csv_line([*row.values()])


def _csv_line(values: Sequence[Any]) -> str:
    cells = ["" if value is None else _csv_cell(plain(value)) for value in values]
    return ('""' if cells == [""] else ",".join(cells)) + "\n"  # a line without anything would be no row


def _csv_cell(text: str) -> str:
    is_plain = text and not any(mark in text for mark in ',"\r\n')
    return text if is_plain else '"' + text.replace('"', '""') + '"'


def key_value_blocks(batches: Iterable[pa.RecordBatch], columns: Sequence[ResultColumn]) -> str:
    """Each row as `key: value` lines, with an empty line between rows."""
    blocks = []
    for batch in batches:
        for row in python_rows(batch, columns):
            blocks.append("".join(f"{name}: {plain(value, 'null')}\n" for name, value in row.items()))  # noqa: PERF401
    return "\n".join(blocks)


def text_table(table: pa.Table, columns: Sequence[ResultColumn], total: int, width: int | None) -> str:
    """A table of at most `width` characters: wide columns are cut, and a last line says how many rows there are."""
    width = shutil.get_terminal_size((100, 24)).columns if width is None else width
    cells = [[column.name for column in columns]]
    for batch in table.to_batches():
        for row in python_rows(batch, columns):
            cells.append([_one_line(plain(value, "null")) for value in row.values()])  # noqa: PERF401
    widths = _fit([max(map(_cells_wide, column)) for column in zip(*cells, strict=True)], width)
    right = [_is_number(table.schema.field(i).type) for i in range(len(columns))]
    lines = [_line(cells[0], widths, [False] * len(widths)), "─┼─".join("─" * size for size in widths)]
    lines.extend(_line(row, widths, right) for row in cells[1:])
    more = f" ({len(cells) - 1} shown)" if len(cells) - 1 < total else ""
    lines.append(f"{total} {'row' if total == 1 else 'rows'}{more}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _one_line(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def _cells_wide(text: str) -> int:
    """Terminal cells: East Asian wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _fit(wanted: list[int], width: int) -> list[int]:
    """Cut the widest columns until everything fits."""
    room = max(width - 3 * (len(wanted) - 1), NARROWEST * len(wanted))
    if sum(wanted) <= room:
        return wanted
    limit = max(wanted)
    while limit > NARROWEST and sum(min(size, limit) for size in wanted) > room:
        limit -= 1
    return [min(size, limit) for size in wanted]


def _line(row: list[str], widths: list[int], right: list[bool]) -> str:
    return " │ ".join(_cell(text, size, at_right) for text, size, at_right in zip(row, widths, right, strict=True))


def _cell(text: str, size: int, at_right: bool) -> str:
    taken = _cells_wide(text)
    if taken > size:
        kept = ""
        for character in text:
            if _cells_wide(kept + character) > size - 1:
                break
            kept += character
        text, taken = kept + "…", _cells_wide(kept) + 1
    return " " * (size - taken) + text if at_right else text + " " * (size - taken)


def html_table(table: pa.Table, columns: Sequence[ResultColumn], total: int) -> str:
    """A table for notebooks."""
    head = "".join(f"<th>{html.escape(column.name)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(plain(value, 'null'))}</td>" for value in row.values()) + "</tr>"
        for batch in table.to_batches()
        for row in python_rows(batch, columns)
    )
    more = f", {table.num_rows} shown" if table.num_rows < total else ""
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{total} {'row' if total == 1 else 'rows'}{more}</p>"
    )
