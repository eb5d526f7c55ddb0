"""Records that are wrong in one way: one kind of violation each, whatever else a write holds.

`POSSIBLE` says which kinds each way of writing can be refused with, as the pages about the schema and about writes have
it. Random writes alone come to some of them too seldom.
"""

from __future__ import annotations

import json
from typing import Any

from tests.model.write_model import Graph, Row
from tests.model.write_operations import MODEL, Writes

_OF_RECORDS = {
    "malformed_record",
    "unknown_type",
    "unknown_property",
    "wrong_type",
    "missing_value",
    "enum",
    "range",
    "check",
    "vector_dimension",
    "not_finite",
    "missing_key",
    "key_not_canonical",
    "unique",
    "missing_endpoint",
    "cardinality",
}
POSSIBLE: dict[str, set[str]] = {
    "append": {*_OF_RECORDS, "duplicate_id", "existing_id"},
    "merge": _OF_RECORDS,
    "overwrite": {*_OF_RECORDS, "duplicate_id", "dangling_edge"},
    # Its statements name types, and are checked before they run; edges go with their nodes.
    "mutation": {*_OF_RECORDS, "existing_id"} - {"malformed_record", "unknown_type"},
}

_VALUES: dict[str, list[Row]] = {
    "wrong_type": [{"age": "5"}, {"born": "2026-02-30"}, {"small": 1e-60}, {"tags": [1, None]}],
    "missing_value": [{"flag": None}],
    "enum": [{"status": "gone"}],
    "range": [{"age": 10}, {"age": -1}],
    "check": [{"slug": "BAD!"}, {"slug": "e\n"}],
    "vector_dimension": [{"shape": [1.0]}, {"shape": []}],
    "not_finite": [{"rate": float("inf")}, {"small": float("nan")}, {"shape": [float("-inf"), 0.0]}],
    "missing_key": [{"slug": None}],
    "unknown_property": [{"agee": 1}],
}


def spoiled(writes: Writes, graph: Graph, kind: str) -> list[Any]:
    """Records of one type that together break one kind of rule. What is in the graph may keep one from it."""
    choose = writes.random.choice
    if kind in _VALUES:
        return [{"type": "Person", "data": {"slug": "e", "flag": True, **choose(_VALUES[kind])}}]
    if kind == "malformed_record":
        return [choose([5, {"type": "Day", "edge": "Born"}, {"type": "Note", "data": {"text": "t"}, "more": 1}])]
    if kind == "unknown_type":
        return [choose([{"type": "Nobody"}, {"edge": "Born ", "from": "a", "to": "b"}])]
    if kind == "key_not_canonical":
        return [{"type": "Day", "id": "2026-01-03", "data": {"day": "2026-01-04"}}]
    if kind == "duplicate_id":
        return [{"type": "Day", "data": {"day": "2026-05-05"}}] * 2
    if kind == "existing_id":
        there = sorted(graph["node:Day"]) or ["2026-05-05"]
        return [{"type": "Day", "data": {"day": choose(there)}}]
    if kind == "unique":
        return [{"type": "Note", "data": {"text": "t", "code": 77}} for _ in range(2)]
    if kind == "missing_endpoint":
        return [{"edge": "Knows", "from": "nobody", "to": "nobody else"}]
    if kind == "cardinality":
        # One edge where there must be two, or one more than there may be.
        pair, person = sorted(graph["node:Pair"]), sorted(graph["node:Person"])
        ends = {"from": json.loads(choose(pair)) if pair else ["p", 1], "to": choose(person) if person else "a"}
        return [{"edge": "Holds", **ends}] * choose([1, 4])
    assert kind == "dangling_edge"
    ends_of = {"node:Day": "Born", "node:Note": "Wrote", "node:Person": "Knows"}
    table = choose([table for table, edge in ends_of.items() if graph[f"edge:{edge}"]] or ["node:Day"])
    data: dict[str, Row] = {
        "node:Day": {"day": "2026-06-06"},
        "node:Note": {"text": "alone"},
        "node:Person": {"slug": "alone", "flag": True},
    }
    return [{"type": MODEL.types[table].name, "data": data[table]}]


def spoiled_rows(writes: Writes, graph: Graph, kind: str) -> list[Any]:
    """The same as the rows of one statement of a mutation."""
    records = spoiled(writes, graph, kind)
    first = records[0]
    table = f"node:{first['type']}" if "type" in first else f"edge:{first['edge']}"
    rows = [{**record.get("data", {}), **_beside(record)} for record in records]
    return [("insert rows", table, rows, kind == "existing_id")]


def _beside(record: Row) -> Row:
    return {key: record[key] for key in ("id", "from", "to") if key in record}
