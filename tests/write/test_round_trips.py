"""Round trips: every value of every type, at its edges, through every way in and out, comes back as it was."""

from __future__ import annotations

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
from tests.strategies import edge_values
from tests.strategies.edge_values import EDGES, INSERT, READ, SCHEMA, UTC, WHOLE, as_json, check, same


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with init(str(tmp_path_factory.mktemp("round") / "graph.omni"), schema=SCHEMA) as made:
        yield made


def test_every_value_loads_as_it_is(graph: Graph, tmp_path: Path):
    records, table = edge_values.records(), edge_values.table()
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
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
    for way in ("python", "json", "literals"):
        graph.load([], type="V", mode="overwrite")
        for row in WHOLE:
            if way == "literals":
                given = ", ".join(f"{name}: {_literal(value)}" for name, value in row.items())
                graph.mutate(f"query q() {{ insert V {{ {given} }} }}")
            else:
                graph.mutate(INSERT, params=row if way == "python" else {n: as_json(v) for n, v in row.items()})
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


KEYS: dict[str, list[Any]] = {
    "String": ["", " a", "é\n", "[1]", '"'],
    "Bool": [True, False],
    "I32": [-(2**31), 2**31 - 1, 0],
    "I64": [-(2**63), 2**63 - 1],
    "U64": [2**64 - 1, 2**53 + 1],
    "F32": [0.1, 1e-45, 16777216.0],
    "F64": [5e-324, 1.7976931348623157e308, 0.1, 1e22],
    "Date": [datetime.date.min, datetime.date.max],
    "DateTime": [datetime.datetime.min.replace(tzinfo=UTC), datetime.datetime(2026, 1, 2, 3, 4, 5, 6, UTC)],
    "enum(a, b-c)": ["a", "b-c"],
}


def test_every_key_names_its_node_through_every_way(tmp_path: Path):
    """A node by its key, edges by the values of both keys, and both again from what was exported."""
    names = [f"K{number}" for number in range(len(KEYS))]
    nodes = [f"node {name} {{ k: {type_} @key }}" for name, type_ in zip(names, KEYS, strict=True)]
    both = "node Both { d: Date  f: F64  s: String  @key(d, f, s) }"
    edges = [f"edge To{name}: Both -> {name} {{ @key(src, dst) }}" for name in names]
    schema = "\n".join([*nodes, both, *edges])
    source = [datetime.date.min, 0.1, 'a, "b"']
    with init(str(tmp_path / "one.omni"), schema=schema) as graph:
        graph.load([dict(zip("dfs", source, strict=True))], mode="append", type="Both")
        for name, values in zip(names, KEYS.values(), strict=True):
            graph.load([{"k": value} for value in values], mode="append", type=name)
            graph.load([{"src": source, "dst": value} for value in values], mode="append", type=f"To{name}")
            for value in values:
                assert graph.entity(name, value)["k"] == value, (name, value)
                given = f"$k: {name} {{ k: {_literal(value)} }}"
                asked = graph.query(f"query q() {{ match {{ {given} $b to{name} $k }} return {{ $k.k }} }}")
                assert len(asked) == 1, (name, value)
            ids = [row["i"] for row in graph.query(f"query q() {{ match {{ $k: {name} }} return {{ $k.@id as i }} }}")]
            assert [graph.entity(name, id_)["@id"] for id_ in ids] == ids
        graph.export(str(tmp_path / "one.jsonl"))
        graph.export(str(tmp_path / "parquet"), format="parquet")
        frames = {name: graph.query(f"query q() {{ match {{ $k: {name} }} return {{ $k.k as k }} }}") for name in names}
    with init(str(tmp_path / "two.omni"), schema=schema) as graph:
        graph.load(tmp_path / "one.jsonl", mode="append")
        for name, frame in frames.items():
            for data in (frame.to_pandas(), frame.to_polars(), frame.to_arrow(), frame.rows()):
                graph.load(data, mode="overwrite", type=name)
        for name in names:
            graph.load(tmp_path / "parquet" / f"edge-To{name}", mode="merge", type=f"To{name}")
        graph.export(str(tmp_path / "two.jsonl"))
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_what_a_query_gives_loads_back(graph: Graph, tmp_path: Path):
    graph.load(WHOLE, type="V", mode="overwrite")
    result = graph.query(READ)
    rows = [{**row, "blob": None} for row in WHOLE]
    for way, data in {
        "arrow": result.to_arrow(),
        "batches": result.to_arrow().to_reader(),
        "stream": result,
        "pandas": result.to_pandas(),
        "polars": result.to_polars(),
        "rows": result.rows(),
        "json": json.loads(result.to_json()),
        "json for JavaScript": json.loads(result.to_json(js_safe_ints=True)),
        "lines": [json.loads(line) for line in result.to_jsonl().split("\n") if line],
    }.items():
        graph.load(data, type="V", mode="overwrite")
        check(graph, rows, way)
    (tmp_path / "v.csv").write_text(result.to_csv(), newline="")
    graph.load(tmp_path / "v.csv", type="V", mode="overwrite")
    check(graph, rows, "csv")


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
    monkeypatch.setattr("sys.argv", ["omnigraph", "query", uri, "-e", READ, "--format", "jsonl"])
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
    "few": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3),
    "counts": st.lists(st.integers(0, 2**32 - 1), max_size=3),
    "large": st.lists(st.integers(0, 2**64 - 1), max_size=3),
    "doubles": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
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
