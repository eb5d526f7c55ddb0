"""Every value of every type at its edges, and how it is seen that a graph holds them as they were given.

Shared by the round trips of each surface: Python and files, the command line, the server, Spark.
"""

from __future__ import annotations

import base64
import datetime
import json
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.graph import Graph

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
    few: [I32]?
    counts: [U32]?
    large: [U64]?
    doubles: [F64]?
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
    "few": [[], [-(2**31), 2**31 - 1]],
    "counts": [[], [0, 2**32 - 1]],
    "large": [[], [0, 2**53 + 1, 2**64 - 1]],
    "doubles": [[], [-0.0, 5e-324, 1.7976931348623157e308, 0.1]],
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
    "few": pa.list_(pa.int32()), "counts": pa.list_(pa.uint32()), "large": pa.list_(pa.uint64()),
    "doubles": pa.list_(pa.float64()), "blob": pa.binary(), "flag": pa.bool_(),
    "text": pa.string(), "kind": pa.string(), "k": pa.string(),
}  # fmt: skip
DECLARED = {
    "flag": "Bool", "i32": "I32", "i64": "I64", "u32": "U32", "u64": "U64", "f32": "F32", "f64": "F64",
    "day": "Date", "at": "DateTime", "kind": "String", "vec": "Vector(2)", "texts": "[String]", "whole": "[I64]",
    "floats": "[F32]", "days": "[Date]", "moments": "[DateTime]", "flags": "[Bool]", "blob": "Blob",
    "few": "[I32]", "counts": "[U32]", "large": "[U64]", "doubles": "[F64]", "text": "String",
}  # fmt: skip
SHOWN = [name for name in EDGES if name != "blob"]
READ = f"query q() {{ match {{ $v: V }} return {{ {', '.join(f'$v.{name} as {name}' for name in ['k', *SHOWN])} }} }}"
INSERT = (
    f"query q($k: String, {', '.join(f'${name}: {DECLARED[name]}?' for name in EDGES)}) "
    f"{{ insert V {{ k: $k, {', '.join(f'{name}: ${name}' for name in EDGES)} }} }}"
)


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


def records() -> list[dict[str, Any]]:
    """The rows as records of JSON."""
    return [{"type": "V", "data": {name: as_json(value) for name, value in row.items()}} for row in WHOLE]


def table() -> pa.Table:
    """The rows as columns of Arrow."""
    return pa.table({name: pa.array([row[name] for row in WHOLE], ARROW[name]) for name in ["k", *EDGES]})


def stored(graph: Graph) -> dict[str, dict[str, Any]]:
    """What is stored, read by a query; blobs by themselves."""
    found = graph.query(READ).to_arrow().to_pylist()
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
