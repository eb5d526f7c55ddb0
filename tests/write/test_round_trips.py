"""Round trips: every value of every type, at its edges, through every way in and out, comes back as it was."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.cli.main import run as run_cli
from omnigraph.graph import Graph, init

SCHEMA = """
node V {
    k: String @key
    text: String?
    flag: Bool?
    i32: I32?
    i64: I64?
    u32: U32?
    u64: U64?
    f32: F32?
    f64: F64?
    day: Date?
    at: DateTime?
    kind: enum(a, b-c, _d)?
    vec: Vector(2)?
    texts: [String]?
    whole: [I64]?
    floats: [F32]?
    days: [Date]?
    moments: [DateTime]?
    flags: [Bool]?
    blob: Blob?
}
edge E: V -> V { n: U64?  at: DateTime? }
"""
UTC = datetime.UTC
LOW32, HIGH32 = float(np.finfo(np.float32).smallest_subnormal), float(np.finfo(np.float32).max)
EDGES: dict[str, list[Any]] = {
    "text": ["", " ", "a\nb", '"\\', "ä😀", "\x00\x1f", "null", "1", "\u2028", "x" * 5000],
    "flag": [True, False],
    "i32": [-(2**31), 2**31 - 1, 0],
    "i64": [-(2**63), 2**63 - 1, 2**53 + 1],
    "u32": [0, 2**32 - 1],
    "u64": [0, 2**64 - 1, 2**63],
    "f32": [HIGH32, -HIGH32, LOW32, float(np.float32(0.1)), -0.0, 16777216.0],
    "f64": [1.7976931348623157e308, 5e-324, -0.0, 0.1, 2.0**53, 1e22, 123456789.12345679],
    "day": [datetime.date.min, datetime.date.max, datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)],
    "at": [
        datetime.datetime.min.replace(tzinfo=UTC),
        datetime.datetime.max.replace(tzinfo=UTC),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 1, UTC),
        datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ],
    "kind": ["a", "b-c", "_d"],
    "vec": [[0.0, -0.0], [HIGH32, LOW32], [float(np.float32(0.1)), 1.0]],
    "texts": [[], [""], ["a", "ä", "\n"]],
    "whole": [[], [-(2**63), 2**63 - 1]],
    "floats": [[], [float(np.float32(0.1)), HIGH32]],
    "days": [[], [datetime.date.min, datetime.date.max]],
    "moments": [[], [datetime.datetime(1, 1, 1, tzinfo=UTC), datetime.datetime(2026, 1, 2, 3, 4, 5, 678, UTC)]],
    "flags": [[], [True, False]],
    "blob": [b"", b"\x00\xff", b"a" * 3000],
}
ROWS: list[dict[str, Any]] = [
    {"k": "nothing"},
    *({"k": f"{name}{number}", name: value} for name, values in EDGES.items() for number, value in enumerate(values)),
    {"k": "all", **{name: values[0] for name, values in EDGES.items()}},
]
WHOLE = [{"k": row["k"], **{name: row.get(name) for name in EDGES}} for row in ROWS]
ARROW = {
    "i32": pa.int32(), "i64": pa.int64(), "u32": pa.uint32(), "u64": pa.uint64(), "f32": pa.float32(),
    "f64": pa.float64(), "day": pa.date32(), "at": pa.timestamp("us", "UTC"), "vec": pa.list_(pa.float32(), 2),
    "texts": pa.list_(pa.string()), "whole": pa.list_(pa.int64()), "floats": pa.list_(pa.float32()),
    "days": pa.list_(pa.date32()), "moments": pa.list_(pa.timestamp("us", "UTC")), "flags": pa.list_(pa.bool_()),
    "blob": pa.binary(), "flag": pa.bool_(), "text": pa.string(), "kind": pa.string(), "k": pa.string(),
}  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with init(str(tmp_path_factory.mktemp("round") / "graph.omni"), schema=SCHEMA) as made:
        yield made


def as_json(value: Any) -> Any:
    """A value as a JSON record says it."""
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return [as_json(item) for item in value] if isinstance(value, list) else value


def same(one: Any, other: Any) -> bool:
    """Equality that tells -0.0 from 0.0 and true from 1."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other and str(one) == str(other)


def stored(graph: Graph) -> dict[str, dict[str, Any]]:
    """What is stored, read by a query; blobs by themselves."""
    names = [name for name in EDGES if name != "blob"]
    columns = ", ".join(f"$v.{name} as {name}" for name in ["k", *names])
    found = graph.query(f"query q() {{ match {{ $v: V }} return {{ {columns} }} }}").to_arrow().to_pylist()
    lines = graph_lines(graph)
    blobs = {line["data"]["k"]: line["data"].get("blob") for line in lines if line.get("type") == "V"}
    decoded = {key: None if blob is None else base64.b64decode(blob["base64"]) for key, blob in blobs.items()}
    return {row["k"]: {**row, "blob": decoded[row["k"]]} for row in found}


def graph_lines(graph: Graph) -> list[dict[str, Any]]:
    from omnigraph.read.export import export_lines

    return [json.loads(line) for line in export_lines(graph._store, graph.snapshot())]


def check(graph: Graph, rows: list[dict[str, Any]], way: str) -> None:
    found = stored(graph)
    assert sorted(found) == sorted(row["k"] for row in rows), way
    for row in rows:
        for name in EDGES:
            assert same(found[row["k"]][name], row[name]), (way, row["k"], name, found[row["k"]][name], row[name])


def test_every_value_loads_as_it_is(graph: Graph, tmp_path: Path):
    records = [{"type": "V", "data": {name: as_json(v) for name, v in row.items()}} for row in WHOLE]
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    table = pa.table({name: pa.array([row[name] for row in WHOLE], ARROW[name]) for name in ["k", *EDGES]})
    pq.write_table(table, tmp_path / "v.parquet")
    with pa.OSFile(str(tmp_path / "v.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    ways: dict[str, Any] = {
        "lines": lines,
        "pretty": "".join(json.dumps(record, indent=1) for record in records).encode(),
        "fast": lines * 1,
        "python": [{name: v for name, v in row.items() if v is not None} for row in WHOLE],
        "arrow": table,
        "parquet": tmp_path / "v.parquet",
        "ipc": tmp_path / "v.arrow",
        "polars": pl.from_arrow(table),
        "pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
    }
    for way, data in ways.items():
        typed = way not in ("lines", "pretty", "fast")
        graph.load(data, mode="overwrite", **({"type": "V"} if typed else {}))
        check(graph, WHOLE, way)


def test_every_value_of_a_csv_file_loads_as_it_is(graph: Graph, tmp_path: Path):
    """A cell without text is null in CSV, and a text that is empty is written in quotes."""
    rows = [row for row in WHOLE if "\x00" not in (row["text"] or "")]
    lines = [",".join(["k", *EDGES])]
    for row in rows:
        cells = []
        for name in ["k", *EDGES]:
            value = as_json(row[name])
            text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
            cells.append("" if value is None else '"' + text.replace('"', '""') + '"')
        lines.append(",".join(cells))
    path = tmp_path / "v.csv"
    path.write_text("\n".join(lines) + "\n", newline="")
    graph.load(path, type="V", mode="overwrite")
    check(graph, rows, "csv")


def test_every_value_is_set_by_parameters_and_literals(graph: Graph):
    types = {
        "flag": "Bool", "i32": "I32", "i64": "I64", "u32": "U32", "u64": "U64", "f32": "F32", "f64": "F64",
        "day": "Date", "at": "DateTime", "kind": "String", "vec": "Vector(2)", "texts": "[String]", "whole": "[I64]",
        "floats": "[F32]", "days": "[Date]", "moments": "[DateTime]", "flags": "[Bool]", "blob": "Blob",
        "text": "String",
    }  # fmt: skip
    declared = ", ".join(f"${name}: {types[name]}?" for name in EDGES)
    assigned = ", ".join(f"{name}: ${name}" for name in EDGES)
    insert = f"query q($k: String, {declared}) {{ insert V {{ k: $k, {assigned} }} }}"
    for way in ("python", "json", "literals"):
        graph.load([], type="V", mode="overwrite")
        for row in WHOLE:
            if way == "literals":
                given = ", ".join(f"{name}: {_literal(value)}" for name, value in row.items())
                graph.mutate(f"query q() {{ insert V {{ {given} }} }}")
            else:
                graph.mutate(insert, params=row if way == "python" else {n: as_json(v) for n, v in row.items()})
        check(graph, WHOLE, way)


def _literal(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return f'datetime("{as_json(value)}")'
    if isinstance(value, datetime.date):
        return f'date("{value}")'
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(as_json(value), ensure_ascii=True)


def test_what_is_exported_loads_back_and_exports_alike(graph: Graph, tmp_path: Path):
    graph.load(WHOLE, type="V", mode="overwrite")
    graph.load([{"src": "all", "dst": "nothing", "id": "e", "n": 2**64 - 1}], type="E", mode="overwrite")
    graph.export(str(tmp_path / "one.jsonl"))
    with init(str(tmp_path / "copy.omni"), schema=SCHEMA) as copy:
        copy.load(tmp_path / "one.jsonl", mode="append")
        check(copy, WHOLE, "export")
        copy.export(str(tmp_path / "two.jsonl"))
        assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    graph.export(str(tmp_path / "parquet"), format="parquet")
    with init(str(tmp_path / "third.omni"), schema=SCHEMA) as copy:
        copy.load(tmp_path / "parquet" / "node-V", type="V", mode="append")
        copy.load(tmp_path / "parquet" / "edge-E", type="E", mode="append")
        copy.export(str(tmp_path / "three.jsonl"))
        assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "three.jsonl").read_bytes()
    graph.load([], type="E", mode="overwrite")


def test_what_a_query_gives_loads_back(graph: Graph):
    graph.load(WHOLE, type="V", mode="overwrite")
    names = [name for name in EDGES if name != "blob"]
    columns = ", ".join(f"$v.{name} as {name}" for name in ["k", *names])
    result = graph.query(f"query q() {{ match {{ $v: V }} return {{ {columns} }} }}")
    rows = [{**row, "blob": None} for row in WHOLE]
    for way, data in {
        "arrow": result.to_arrow(),
        "pandas": result.to_pandas(),
        "polars": result.to_polars(),
        "rows": result.rows(),
    }.items():
        graph.load(data, type="V", mode="overwrite")
        check(graph, rows, way)


def test_an_entity_is_shown_as_it_is(graph: Graph):
    graph.load(WHOLE, type="V", mode="overwrite")
    for row in WHOLE:
        found = graph.entity("V", row["k"])
        assert found is not None
        for name in EDGES:
            if name in ("blob", "vec"):  # too large to be shown
                continue
            shown = found[name]
            if name == "f32" and shown is not None:  # shown at 32-bit width: the shortest text of the same number
                shown = float(np.float32(shown))
            if name == "floats" and shown is not None:
                shown = [float(np.float32(each)) for each in shown]
            assert same(shown, row[name]), (row["k"], name)


def test_the_command_line_prints_what_loads_back(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    graph.load(WHOLE, type="V", mode="overwrite")
    uri = str(graph._store.uri).removeprefix("file://")
    names = [name for name in EDGES if name != "blob"]
    columns = ", ".join(f"$v.{name} as {name}" for name in ["k", *names])
    text = f"query q() {{ match {{ $v: V }} return {{ {columns} }} }}"
    monkeypatch.setattr("sys.argv", ["omnigraph", "query", uri, "-e", text, "--format", "jsonl"])
    with pytest.raises(SystemExit) as ended:
        run_cli()
    assert ended.value.code in (0, None)
    printed = [json.loads(line) for line in capsys.readouterr().out.strip("\n").split("\n")]
    graph.load(printed, type="V", mode="overwrite")
    check(graph, [{**row, "blob": None} for row in WHOLE], "command line")


_VALUES = {
    "text": st.text(st.characters(exclude_categories=["Cs"])),
    "flag": st.booleans(),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "i64": st.integers(-(2**63), 2**63 - 1),
    "u32": st.integers(0, 2**32 - 1),
    "u64": st.integers(0, 2**64 - 1),
    "f32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "f64": st.floats(allow_nan=False, allow_infinity=False),
    "day": st.dates(),
    "at": st.datetimes(timezones=st.just(UTC)),
    "kind": st.sampled_from(["a", "b-c", "_d"]),
    "vec": st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    "texts": st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3),
    "whole": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
    "floats": st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=3),
    "days": st.lists(st.dates(), max_size=3),
    "moments": st.lists(st.datetimes(timezones=st.just(UTC)), max_size=3),
    "flags": st.lists(st.booleans(), max_size=3),
    "blob": st.binary(max_size=20),
}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.fixed_dictionaries({}, optional=_VALUES), min_size=1, max_size=12), st.booleans())
def test_any_rows_come_back(graph: Graph, rows: list[dict[str, Any]], as_lines: bool):
    whole = [{"k": f"r{n}", **{name: row.get(name) for name in EDGES}} for n, row in enumerate(rows)]
    if as_lines:
        records = [{"type": "V", "data": {name: as_json(v) for name, v in row.items()}} for row in whole]
        graph.load("".join(json.dumps(record) + "\n" for record in records).encode(), mode="overwrite")
    else:
        graph.load(whole, type="V", mode="overwrite")
    check(graph, whole, "any")
