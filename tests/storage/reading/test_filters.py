"""Conditions: typed values in, the right rows out, whatever the values hold."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import BadRequest
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.reading import filters
from omnigraph.storage.reading.filters import (
    Filter,
    and_,
    compare,
    contains,
    eq,
    is_in,
    is_null,
    list_contains,
    not_,
    or_,
    starts_with,
)
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("Name With Space", pa.string()),
        pa.field("int", pa.int64()),
        pa.field("small", pa.int32()),
        pa.field("unsigned", pa.uint64()),
        pa.field("float", pa.float64()),
        pa.field("single", pa.float32()),
        pa.field("flag", pa.bool_()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("numbers", pa.list_(pa.int64())),
    ]
)
HOSTILE = [
    "",
    "'",
    "''",
    "\\",
    "\\'",
    "' OR 1=1 --",
    "a\nb",
    "%",
    "_",
    "`",
    '"',
    "\x00",
    "🙂",
    "ab'; DROP",
    "naïve",
    "A",
    "a",
]
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def _row(number: int, text: str | None) -> dict[str, Any]:
    return {
        "id": text,
        "Name With Space": text,
        "int": number - 5 if text is not None else None,
        "small": number,
        "unsigned": 2**63 + number,
        "float": number / 2,
        "single": number / 2,
        "flag": number % 2 == 0,
        "day": date(2024, 1, 1) + timedelta(days=number),
        "at": NOON + timedelta(microseconds=number),
        "tags": [text, "all"] if text is not None else None,
        "numbers": [number],
    }


ROWS = [_row(number, text) for number, text in enumerate([*HOSTILE, None])]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableStore, list[TableVersion]]:
    """The same rows without an index and with one."""
    tables = TableStore(parse_root(tmp_path_factory.mktemp("filters")))
    plain = tables.create("t", SCHEMA, rows=pa.Table.from_pylist(ROWS, SCHEMA))
    table = plain
    for column in ("id", "int", "unsigned", "day"):
        staged = tables.stage_index(table, column, IndexKind.BTREE)
        assert staged is not None
        table = tables.commit_staged(staged, "op")
    return tables, [plain, table]


def _found(stored: tuple[TableStore, list[TableVersion]], condition: Filter) -> list[int]:
    tables, versions = stored
    answers = [
        sorted(tables.scan_table(version, columns=["small"], filter=condition)["small"].to_pylist())
        for version in versions
    ]
    assert answers[0] == answers[1], "the index changes the answer"
    return answers[0]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_string_finds_itself_and_nothing_else(stored: tuple[TableStore, list[TableVersion]], text: str) -> None:
    number = HOSTILE.index(text)
    assert _found(stored, eq("id", text)) == [number]
    assert _found(stored, is_in("id", [text, "never"])) == [number]
    assert _found(stored, eq("Name With Space", text)) == [number]
    assert number in _found(stored, list_contains("tags", text))
    assert _found(stored, starts_with("id", text)) == [i for i, other in enumerate(HOSTILE) if other.startswith(text)]
    assert _found(stored, contains("id", text)) == [i for i, other in enumerate(HOSTILE) if text in other]
    assert _found(stored, compare("id", "!=", text)) == [i for i in range(len(HOSTILE)) if i != number]


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=12))
def test_no_text_breaks_out_of_its_literal(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    tables = _tiny(tmp_path_factory)
    table = tables.head("t")
    rows = [{"id": text}, {"id": text + "x"}, {"id": "x" + text}, {"id": "other than that"}]
    table = tables.commit_staged(tables.stage_overwrite(table, pa.Table.from_pylist(rows, tables.schema(table))), "op")
    expected = sum(row["id"] == text for row in rows)
    assert tables.count(table, eq("id", text)) == expected
    assert tables.count(table, is_in("id", [text])) == expected
    assert tables.count(table, starts_with("id", text)) == sum(row["id"].startswith(text) for row in rows)
    assert tables.count(table, contains("id", text)) == sum(text in row["id"] for row in rows)


_tiny_stores: list[TableStore] = []


def _tiny(factory: pytest.TempPathFactory) -> TableStore:
    if not _tiny_stores:
        _tiny_stores.append(TableStore(parse_root(factory.mktemp("tiny"))))
        _tiny_stores[0].create("t", pa.schema([pa.field("id", pa.string())]))
    return _tiny_stores[0]


CONDITIONS: list[tuple[Filter, Any]] = [
    (compare("int", ">", 3), lambda row: row["int"] is not None and row["int"] > 3),
    (compare("int", "<=", -2), lambda row: row["int"] is not None and row["int"] <= -2),
    (compare("int", "<", 1.5), lambda row: row["int"] is not None and row["int"] < 1.5),
    (compare("int", "<", 2**70), lambda row: row["int"] is not None),
    (eq("unsigned", 2**63 + 4), lambda row: row["small"] == 4),
    (compare("unsigned", ">", -1), lambda row: True),
    (is_in("unsigned", [2**63, 2**63 + 1, 7]), lambda row: row["small"] in (0, 1)),
    (compare("float", ">=", 2), lambda row: row["float"] >= 2),
    (is_in("float", [0.5, 1]), lambda row: row["float"] in (0.5, 1.0)),
    (compare("float", "<", float("inf")), lambda row: True),
    (eq("single", 1.5), lambda row: row["single"] == 1.5),
    (eq("flag", True), lambda row: row["flag"]),
    (eq("day", date(2024, 1, 4)), lambda row: row["small"] == 3),
    (compare("day", "<", date(2024, 1, 3)), lambda row: row["small"] < 2),
    (eq("at", NOON + timedelta(microseconds=2)), lambda row: row["small"] == 2),
    (
        eq("at", (NOON + timedelta(microseconds=2)).astimezone(timezone(timedelta(hours=3)))),
        lambda row: row["small"] == 2,
    ),
    (list_contains("numbers", 4), lambda row: row["small"] == 4),
    (list_contains("tags", "all"), lambda row: row["tags"] is not None),
    (is_null("id"), lambda row: row["id"] is None),
    (eq("id", None), lambda row: row["id"] is None),
    (not_(is_null("id")), lambda row: row["id"] is not None),
    (not_(eq("id", "A")), lambda row: row["id"] not in (None, "A")),
    (or_(eq("small", 1), eq("small", 2)), lambda row: row["small"] in (1, 2)),
    (and_(compare("small", ">", 1), compare("small", "<", 4)), lambda row: 1 < row["small"] < 4),
    (and_(), lambda row: True),
    (or_(), lambda row: False),
    (is_in("id", []), lambda row: False),
    (is_in("int", pa.array([1, None, 2])), lambda row: row["int"] in (1, 2)),
    (eq("_rowid", 3), lambda row: row["small"] == 3),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_each_condition_means_what_it_says(
    stored: tuple[TableStore, list[TableVersion]], condition: Filter, holds: Any
) -> None:
    assert _found(stored, condition) == [row["small"] for row in ROWS if holds(row)]


def test_ten_thousand_values(tmp_path: Path) -> None:
    tables = TableStore(parse_root(tmp_path))
    schema = pa.schema([pa.field("id", pa.string())])
    table = tables.create("t", schema, rows=pa.table({"id": [f"it's {i}" for i in range(20_000)]}, schema=schema))
    assert tables.count(table, is_in("id", [f"it's {i}" for i in range(0, 20_000, 2)])) == 10_000


@pytest.mark.parametrize(
    "condition",
    [
        eq("nothing", 1),
        eq("id", 1),
        eq("int", "1"),
        eq("flag", 1),
        eq("day", NOON),
        eq("at", date(2024, 1, 1)),
        eq("int", True),
    ],
)
def test_values_of_the_wrong_type_are_refused(stored: tuple[TableStore, list[TableVersion]], condition: Filter) -> None:
    with pytest.raises(BadRequest):
        _found(stored, condition)


def test_names_that_could_break_out_are_refused() -> None:
    with pytest.raises(BadRequest):
        filters.to_sql(is_null("a` OR 1=1"), SCHEMA)
    with pytest.raises(BadRequest):
        compare("id", "; DROP", "x")  # type: ignore[arg-type]
