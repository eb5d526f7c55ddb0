"""Streams out of a graph: applied to a copy they keep it equal, and what cannot be told is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.config import override

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = """
node Person { slug: String @key  age: I32?  vec: Vector(2)? }
edge Knows: Person -> Person { weight: F64?  note: String? }
"""
LATER = """
node Person { slug: String @key  years: I32? @rename_from("age")  vec: Vector(2)?  city: String? }
edge Knows: Person -> Person { weight: F64? }
node Place { name: String @key }
"""

Copy = dict[tuple[str, str], dict[str, Any]]


def drain(spark: Any, graph: og.Graph, copy: Copy, checkpoint: Path, **options: str) -> int:
    """Start the stream again, apply what comes to the copy, in order; how many micro-batches there were."""
    batches = 0

    def apply(rows: Any, number: int) -> None:
        nonlocal batches
        batches += 1
        order = {"baseline": 0, "schema": 1}
        for row in sorted(rows.collect(), key=lambda row: (row.version, order.get(row.op, 2))):
            before = copy.get((row.type, row.id))
            if row.op == "baseline":
                copy.clear()
            elif row.op == "schema":
                for step in json.loads(row.after)["steps"]:
                    change_schema(copy, step)
            elif row.op == "insert":
                assert before is None
                copy[row.type, row.id] = json.loads(row.after)
            elif row.op == "update":
                assert before is not None
                copy[row.type, row.id] = json.loads(row.after)
            else:
                assert before is not None
                del copy[row.type, row.id]

    frame = spark.readStream.format("omnigraph").options(**{"startingFrom": "beginning", **options}).load(graph.uri)
    writer = frame.writeStream.foreachBatch(apply).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return batches


def change_schema(copy: Copy, step: dict[str, Any]) -> None:
    for type_, row_id in [key for key in copy if key[0] == step["type"]]:
        row = copy[type_, row_id]
        if step["step"] == "rename_type":
            copy[step["to"], row_id] = copy.pop((type_, row_id))
        elif step["step"] == "rename_property":
            row[step["to"]] = row.pop(step["property"])
        elif step["step"] == "drop_property":
            del row[step["property"]]
        elif step["step"] == "add_property":
            row[step["property"]] = step["default"]


def stripped(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def exported(graph: og.Graph) -> Copy:
    """The state of the graph, from its export."""
    found: Copy = {}
    for line in b"".join(graph.export_lines()).splitlines():
        record = json.loads(line)
        data = record["data"]
        name = record.get("type") or record["edge"]
        own = data.pop("id", None) or data.get("slug") or data["name"]
        ends = {"@src": record["from"], "@dst": record["to"]} if "edge" in record else {}
        found[name, own] = {"@id": own, **ends, **data}
    return found


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "g.omni", schema=SCHEMA)
    people = [{"type": "Person", "data": {"slug": f"p{n}", "age": n, "vec": [n, 0.5]}} for n in range(6)]
    made.load([*people, {"edge": "Knows", "from": "p0", "to": "p1", "data": {"weight": 0.25}}], mode="append")
    return made


def test_a_copy_stays_equal_across_restarts_merges_schemas_compaction_and_gaps(
    spark: Any, graph: og.Graph, tmp_path: Path
) -> None:
    copy: Copy = {}
    checkpoint = tmp_path / "ck"

    def same(**options: str) -> int:
        batches = drain(spark, graph, copy, checkpoint, **options)
        assert {key: stripped(row) for key, row in copy.items()} == exported(graph)
        return batches

    graph.mutate('query q() { update Person set { age: 77 } where slug = "p1" }')
    graph.mutate('query q() { delete Person where slug = "p2" }')
    assert same(maxCommitsPerTrigger="2") == 2, "four commits, the first of which is that of the empty graph"
    graph.branch_create("side")
    graph.mutate('query q() { update Person set { age: 5 } where slug = "p3" }', branch="side")
    graph.load([{"edge": "Knows", "from": "p3", "to": "p4"}], mode="append", branch="side")
    graph.mutate('query q() { insert Person { slug: "m" } }')
    graph.merge("side")
    graph.apply_schema(LATER)
    graph.mutate('query q() { update Person set { years: 6, city: "Oslo" } where slug = "p4" }')
    graph.load([{"name": "Rome"}], mode="append", type="Place")
    graph.optimize()
    same()
    for n in range(5):
        graph.mutate(f'query q() {{ insert Person {{ slug: "late{n}" }} }}')
    graph.mutate('query q() { delete Person where slug = "p0" }')
    with override(cleanup_grace=0.0):
        graph.cleanup(keep_versions=3, confirm=True)
    with pytest.raises(Exception, match=r"HistoryGap: the state of commit .* has been removed by cleanup"):
        drain(spark, graph, copy, checkpoint)
    same(onGap="baseline")


def test_the_columns_of_one_type_and_where_a_stream_starts(spark: Any, graph: og.Graph, tmp_path: Path) -> None:
    first = graph.head()
    graph.mutate('query q() { delete Person where slug = "p5" }', actor="act-ada")
    seen: list[Any] = []

    def run(name: str, **options: str) -> list[Any]:
        seen.clear()
        frame = spark.readStream.format("omnigraph").options(**options).load(graph.uri)
        writer = frame.writeStream.foreachBatch(lambda rows, _: seen.extend(rows.collect()))
        writer.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start().awaitTermination()
        return list(seen)

    [row] = run("typed", type="Person", startingFrom=first.graph_commit_id)
    assert (row._op, row._actor, row.id, row.slug, row.age, row.vec) == ("delete", "act-ada", "p5", "p5", 5, [5.0, 0.5])
    assert row._commit == graph.head().graph_commit_id
    graph.apply_schema(LATER)
    graph.mutate('query q() { update Person set { years: 50 } where slug = "p1" }')
    [row] = run("typed", type="Person", startingFrom="beginning")
    assert (row._op, row.id, row.years, row.city) == ("update", "p1", 50, None)
    history = run("renamed", type="Person", startingFrom="beginning", ops="insert")
    assert sorted((row.slug, row.years) for row in history) == [(f"p{n}", n) for n in range(6)]
    assert run("now", startingFrom="now") == []
    state = run("baseline", startingFrom="baseline", types="Person")
    assert sorted((row.op, row.id) for row in state) == [("baseline", None), *(("insert", f"p{n}") for n in range(5))]
    for options, message in [
        ({}, "Say which type.*startingFrom"),
        ({"startingFrom": "nowhere"}, "`nowhere` is neither a cursor nor a commit, tag or time"),
        ({"startingFrom": "now", "typ": "Person"}, "has no option `typ`; did you mean `type`"),
        ({"startingFrom": "now", "maxCommitsPerTrigger": "none"}, "a number of commits from 1 on"),
        ({"startingFrom": "now", "onGap": "skip"}, "onGap is error or baseline"),
        ({"startingFrom": "now", "branch": "nowhere"}, "nowhere"),
    ]:
        with pytest.raises(Exception, match=message):
            run("refused", **options)
