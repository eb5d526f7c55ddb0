"""No value is changed in silence: what a type cannot hold is refused, whichever way it comes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import BadRequest, QueryParseError, QueryTypeError, ValidationFailed
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate
from tests.write.graphs import rows

SCHEMA = """
node V { k: I32 @key  f32: F32?  f64: F64?  at: DateTime?  day: Date?  vec: Vector(2)?  many: [F64]?  blob: Blob? }
node Plain { text: String }
edge Near: V -> V { w: F32? }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphStore]:
    with create_store(tmp_path_factory.mktemp("exact") / "graph", SCHEMA) as made:
        yield made


BAD = [
    ("f32", "1e-60", "too small"),
    ("f32", "-1e-46", "too small"),
    ("f32", "1e39", "too large"),
    ("f32", "16777217", "exactly"),
    ("f64", "1e-400", "too small"),
    ("f64", "9007199254740993", "exactly"),
    ("f64", "-9007199254740993", "exactly"),
    ("f64", "36893488147419103233", "exactly"),
    ("f64", "0." + "0" * 330 + "7", "too small"),
    ("at", '"2026-01-02T03:04:05.1234567Z"', "six digits"),
    ("at", '"2026-01-02T03:04:05.0000001Z"', "six digits"),
    ("vec", "[1, 1e-60]", "too small"),
    ("vec", "[16777217, 1]", "exactly"),
    ("many", "[9007199254740993]", "exactly"),
    ("many", "[0, 1e-400]", "too small"),
]
GOOD = [
    ("f32", "0.1", np.float32(0.1).item()),
    ("f32", "16777216", 16777216.0),
    ("f32", "16777217.0", 16777216.0),
    ("f32", "1e-45", np.float32(1e-45).item()),
    ("f32", "0e-400", 0.0),
    ("f32", "-0", -0.0),
    ("f64", "9007199254740992", 2.0**53),
    ("f64", "18014398509481984", 2.0**54),
    ("f64", "9007199254740993.0", 2.0**53),
    ("f64", "1e300", 1e300),
    ("f64", "5e-324", 5e-324),
    ("at", '"2026-01-02T03:04:05.123456000Z"', datetime.datetime(2026, 1, 2, 3, 4, 5, 123456, datetime.UTC)),
    ("at", '"2026-01-02T05:04:05.5+02:00"', datetime.datetime(2026, 1, 2, 3, 4, 5, 500000, datetime.UTC)),
    ("at", '"9999-12-31T23:59:59.999999Z"', datetime.datetime.max.replace(tzinfo=datetime.UTC)),
    ("vec", "[0.1, 16777216]", [np.float32(0.1).item(), 16777216.0]),
    ("many", "[1e300, 9007199254740992]", [1e300, 2.0**53]),
    ("blob", '"base64:AAEC"', b"\x00\x01\x02"),
]


def _line(property_: str, text: str, key: int = 1) -> str:
    return f'{{"type": "V", "data": {{"k": {key}, "{property_}": {text}}}}}\n'


def _plain_lines(count: int) -> str:
    """Many right records, so that the fast decoder is asked first."""
    return "".join(_line("f64", "1.5", 100 + number) for number in range(count))


@pytest.mark.parametrize("around", [0, 200], ids=["slow", "fast"])
def test_json_refuses_what_it_would_have_to_change(graph: GraphStore, around: int):
    for property_, text, why in BAD:
        data = (_plain_lines(around) + _line(property_, text)).encode()
        with pytest.raises(ValidationFailed, match=why) as failed:
            load(graph, data, mode="overwrite")
        assert failed.value.counts == {"wrong_type": 1}, (property_, text)
        assert failed.value.violations[0].record == around + 1


@pytest.mark.parametrize("around", [0, 200], ids=["slow", "fast"])
def test_json_takes_the_nearest_value_of_a_decimal(graph: GraphStore, around: int):
    for property_, text, expected in GOOD:
        load(graph, (_plain_lines(around) + _line(property_, text)).encode(), mode="overwrite")
        found = next(row for row in rows(graph, "node:V") if row["k"] == 1)[property_]
        assert found == expected, (property_, text)
        if expected == 0:
            assert str(found) == str(expected)


def test_csv_refuses_and_takes_the_same(graph: GraphStore, tmp_path: Path):
    path = tmp_path / "v.csv"
    for property_, text, why in BAD:
        path.write_text(f"k,{property_}\n1,{_csv(text)}\n")
        with pytest.raises(ValidationFailed, match=why):
            load(graph, path, mode="overwrite", type="V")
    for property_, text, expected in GOOD:
        path.write_text(f"k,{property_}\n1,{_csv(text)}\n")
        load(graph, path, mode="overwrite", type="V")
        assert rows(graph, "node:V")[0][property_] == expected, (property_, text)


def _csv(text: str) -> str:
    value = text[1:-1] if text.startswith('"') else text
    return f'"{value}"' if "," in value else value


COLUMNS = [
    ("f32", pa.array([1e-60]), "too small"),
    ("f32", pa.array([1e39]), "too large"),
    ("f32", pa.array([16777217], pa.int64()), "exactly"),
    ("f64", pa.array([9007199254740993], pa.int64()), "exactly"),
    ("f64", pa.array([2**63 + 1], pa.uint64()), "exactly"),
    ("at", pa.array([1], pa.timestamp("ns", "UTC")), "six digits"),
    ("at", pa.array([2**62], pa.timestamp("us", "UTC")), "years 1 to 9999"),
    ("at", pa.array([2**40], pa.timestamp("s", "UTC")), "years 1 to 9999"),
    ("day", pa.array([2**31 - 1], pa.int32()).cast(pa.date32()), "years 1 to 9999"),
]


def test_columns_and_parquet_refuse_the_same(graph: GraphStore, tmp_path: Path):
    for property_, column, why in COLUMNS:
        table = pa.table({"k": pa.array([1], pa.int32()), property_: column})
        pq.write_table(table, tmp_path / "v.parquet")
        for data in (table, tmp_path / "v.parquet"):
            with pytest.raises(ValidationFailed, match=why):
                load(graph, data, mode="overwrite", type="V")
    good = pa.table(
        {
            "k": pa.array([1, 2], pa.int16()),
            "f32": pa.array([0.1, None]),
            "f64": pa.array([2**60, 3], pa.int64()),
            "at": pa.array([1_000, None], pa.timestamp("ns", "UTC")),
        }
    )
    load(graph, good, mode="overwrite", type="V")
    first = rows(graph, "node:V")[0]
    assert (first["f32"], first["f64"]) == (np.float32(0.1).item(), 2.0**60)
    assert first["at"] == datetime.datetime(1970, 1, 1, 0, 0, 0, 1, datetime.UTC)


def test_frames_and_python_rows_refuse_the_same(graph: GraphStore):
    moment = pd.Timestamp("2026-01-02T03:04:05.123456789Z")
    for row, why in [
        ({"f32": 1e-60}, "too small"),
        ({"f32": np.float64(1e-60)}, "too small"),
        ({"f64": 2**53 + 1}, "exactly"),
        ({"at": moment}, "six digits"),
    ]:
        with pytest.raises(ValidationFailed, match=why):
            load(graph, [{"k": 1, **row}], mode="overwrite", type="V")
        with pytest.raises(ValidationFailed, match=why):
            load(graph, pd.DataFrame([{"k": 1, **row}]), mode="overwrite", type="V")


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        ("F32", 1e-60, "too small"),
        ("F64", Decimal("1e-400"), "too small"),
        ("F64", 2**53 + 1, "exactly"),
        ("F32", 2**24 + 1, "exactly"),
        ("F32", np.int64(2**24 + 1), "exactly"),
        ("DateTime", "2026-01-02T03:04:05.1234567Z", "six digits"),
        ("DateTime", pd.Timestamp("2026-01-02T03:04:05.123456789Z"), "six digits"),
        ("Vector(2)", [1.0, 1e-60], "too small"),
        ("[F64]", [2**53 + 1], "exactly"),
    ],
)
def test_parameters_refuse_the_same(graph: GraphStore, type_: str, value: Any, why: str):
    name = {"F32": "f32", "F64": "f64", "DateTime": "at", "Vector(2)": "vec", "[F64]": "many"}[type_]
    with pytest.raises(BadRequest, match=why):
        mutate(graph, f"query q($v: {type_}) {{ insert V {{ k: 1, {name}: $v }} }}", params={"v": value})


@pytest.mark.parametrize(
    ("name", "literal", "why"),
    [
        ("f32", "1e-60", "too small"),
        ("f64", "1e-400", "too small"),
        ("f64", "9007199254740993", "exactly"),
        ("f32", "16777217", "exactly"),
        ("at", 'datetime("2026-01-02T03:04:05.1234567Z")', "six digits"),
        ("vec", "[1.0, 1e-60]", "too small"),
        ("many", "[9007199254740993]", "exactly"),
    ],
)
def test_literals_refuse_the_same(graph: GraphStore, name: str, literal: str, why: str):
    with pytest.raises((QueryTypeError, QueryParseError), match=why):
        mutate(graph, f"query q() {{ insert V {{ k: 1, {name}: {literal} }} }}")


def test_an_id_may_stand_beside_data(graph: GraphStore):
    for count in (1, 100):
        records = [{"type": "Plain", "id": f"p{n}", "data": {"text": "x"}} for n in range(count)]
        data = "".join(json.dumps(record) + "\n" for record in records).encode()
        load(graph, data, mode="overwrite")
        assert sorted(row["id"] for row in rows(graph, "node:Plain")) == sorted(r["id"] for r in records)
        load(graph, records, mode="overwrite")
    both = {"type": "Plain", "id": "a", "data": {"id": "b", "text": "x"}}
    for data in ((json.dumps(both) + "\n").encode() * 70, [both]):
        with pytest.raises(ValidationFailed, match="leave one out"):
            load(graph, data, mode="append")
