"""Properties may be called as the store calls its own columns: `id`, `src`, `dst`, `from`, `to`, `type`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import ValidationFailed
from omnigraph.graph import Graph, init, open

SCHEMA = """
node Part { id: String @key  src: I32?  dst: String? @unique  type: String?  @range(src, 0..9) }
node Loose { id: I64?  type: String? }
edge Fits: Part -> Part { id: String?  src: I32  dst: String?  from: Date?  to: Date?  type: String?  @unique(src) }
edge Keyed: Part -> Loose { src: String  @key(@src, @dst, src) }
"""
PARTS = [
    {"type": "Part", "data": {"id": "p1", "src": 1, "dst": "x", "type": "bolt"}},
    {"type": "Part", "data": {"id": "p2", "src": None, "dst": None}},
    {"type": "Loose", "id": "l1", "data": {"id": 5, "type": "t"}},
    {"edge": "Fits", "from": "p1", "to": "p2", "id": "f1", "data": {"id": "own", "src": 7, "from": "2026-01-02"}},
    {"edge": "Fits", "from": "p2", "to": "p1", "id": "f2", "data": {"src": 8, "dst": "d", "type": "t"}},
    {"edge": "Keyed", "from": "p1", "to": "l1", "data": {"src": "k"}},
]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with init(str(tmp_path / "graph.omni"), schema=SCHEMA) as made:
        made.load(PARTS, mode="append")
        yield made


def lines(graph: Graph, path: Path) -> list[dict[str, Any]]:
    graph.export(str(path))
    return [json.loads(line) for line in path.read_text().splitlines()]


EXPORTED = [
    {"type": "Loose", "id": "l1", "data": {"id": 5, "type": "t"}},
    {"type": "Part", "data": {"id": "p1", "src": 1, "dst": "x", "type": "bolt"}},
    {"type": "Part", "data": {"id": "p2"}},
    {"edge": "Fits", "from": "p1", "to": "p2", "id": "f1", "data": {"id": "own", "src": 7, "from": "2026-01-02"}},
    {"edge": "Fits", "from": "p2", "to": "p1", "id": "f2", "data": {"src": 8, "dst": "d", "type": "t"}},
    {"edge": "Keyed", "from": "p1", "to": "l1", "data": {"src": "k"}},
]


def test_records_load_and_come_back(graph: Graph, tmp_path: Path):
    assert lines(graph, tmp_path / "out.jsonl") == EXPORTED
    found = graph.entity("Fits", "f1")
    assert found is not None
    assert {name: found[name] for name in ("@id", "@src", "@dst", "id", "src", "dst")} == {
        "@id": "f1",
        "@src": "p1",
        "@dst": "p2",
        "id": "own",
        "src": 7,
        "dst": None,
    }
    assert graph.entity("Keyed", ["p1", "l1", "k"]) is not None


def test_the_fast_decoder_reads_them_too(graph: Graph, tmp_path: Path):
    many = [{"type": "Loose", "id": f"m{n}", "data": {"id": n, "type": None}} for n in range(200)]
    many += [
        {"edge": "Fits", "from": "p1", "to": "p2", "id": f"e{n}", "data": {"id": f"i{n}", "src": n}}
        for n in range(100, 300)
    ]
    graph.load("".join(json.dumps(record) + "\n" for record in many).encode(), mode="append")
    found = graph.entity("Fits", "e150")
    assert found is not None
    assert (found["id"], found["src"], found["@src"]) == ("i150", 150, "p1")
    found = graph.entity("Loose", "m7")
    assert found == {"@id": "m7", "id": 7, "type": None}


def test_columns_name_our_own_with_an_at(graph: Graph, tmp_path: Path):
    table = pa.table({"@id": ["f9"], "@src": ["p1"], "@dst": ["p1"], "id": ["x"], "src": pa.array([9], pa.int32())})
    pq.write_table(table, tmp_path / "fits.parquet")
    for data in (table, tmp_path / "fits.parquet", table.to_pylist()):
        graph.load(data, type="Fits", mode="merge")
        found = graph.entity("Fits", "f9")
        assert found is not None
        assert (found["@src"], found["id"], found["src"]) == ("p1", "x", 9)
    graph.load([{"a": "p2", "b": "p2", "src": 4}], type="Fits", src="a", dst="b", mode="append")
    csv = tmp_path / "loose.csv"
    csv.write_text("@id,id,type\nl2,6,u\n")
    graph.load(csv, type="Loose", mode="append")
    assert graph.entity("Loose", "l2") == {"@id": "l2", "id": 6, "type": "u"}


def test_both_exports_load_back_to_an_equal_graph(graph: Graph, tmp_path: Path):
    graph.export(str(tmp_path / "out.jsonl"))
    with init(str(tmp_path / "copy.omni"), schema=SCHEMA) as copy:
        copy.load(tmp_path / "out.jsonl", mode="append")
        assert lines(copy, tmp_path / "again.jsonl") == EXPORTED
    graph.export(str(tmp_path / "parquet"), format="parquet")
    with init(str(tmp_path / "third.omni"), schema=SCHEMA) as copy:
        for folder in ("node-Part", "node-Loose", "edge-Fits", "edge-Keyed"):
            copy.load(tmp_path / "parquet" / folder, type=folder.split("-")[1], mode="append")
        assert lines(copy, tmp_path / "third.jsonl") == EXPORTED


def test_rules_name_the_property(graph: Graph):
    with pytest.raises(ValidationFailed) as failed:
        graph.load(
            [
                {"type": "Part", "data": {"id": "p3", "src": 10, "dst": "x"}},
                {"edge": "Fits", "from": "p1", "to": "p9", "data": {"src": 7}},
            ],
            mode="append",
        )
    assert failed.value.counts == {"range": 1, "unique": 2, "missing_endpoint": 1}
    assert {v.property for v in failed.value.violations} == {"src", "dst"}
    assert "__" not in str(failed.value)


def test_branches_merge_and_diffs_show_them(graph: Graph):
    graph.branch_create("review")
    graph.load([{"type": "Part", "data": {"id": "p1", "src": 2}}], mode="merge", branch="review")
    graph.load([{"type": "Loose", "id": "l1", "data": {"type": "u"}}], mode="merge")
    changes = list(graph.diff("main", "review", types=["Part"]))
    assert [(change.id, change.before["src"], change.after["src"]) for change in changes] == [("p1", 1, 2)]
    assert changes[0].after["id"] == "p1"
    assert list(changes[0].differing()) == [("src", 1, 2)]
    assert graph.merge("review").conflicts == ()
    assert graph.entity("Part", "p1")["src"] == 2


def test_migrations_add_rename_and_drop_them(graph: Graph, tmp_path: Path):
    graph.apply_schema(
        """
        node Part { id: String @key  source: I32? @rename_from("src")  dst: String? @unique  @range(source, 0..9) }
        node Loose { id: I64?  kind: String? @rename_from("type")  src: String? @default("new") }
        edge Fits: Part -> Part { id: String?  src: I32  from: Date?  to: Date?  type: String?  @unique(src) }
        edge Keyed: Part -> Loose { src: String  @key(@src, @dst, src) }
        """,
        allow_data_loss=True,
    )
    assert graph.entity("Part", "p1")["source"] == 1
    assert graph.entity("Loose", "l1") == {"@id": "l1", "id": 5, "kind": "t", "src": "new"}
    with open(str(tmp_path / "graph.omni")) as again:
        assert again.entity("Fits", "f2")["@src"] == "p2"
        assert again.verify().ok


def test_queries_tell_them_from_our_own(graph: Graph):
    text = """query q() { match { $a $e:fits $b }
        return { $e.@id as own, $e.id as i, $e.@src as f, $e.src as s, $a.id as a, $a.src as n, $a.type as t }
        order { own } }"""
    assert graph.query(text).rows() == [
        {"own": "f1", "i": "own", "f": "p1", "s": 7, "a": "p1", "n": 1, "t": "bolt"},
        {"own": "f2", "i": None, "f": "p2", "s": 8, "a": "p2", "n": None, "t": None},
    ]
    for where in ('$e.id = "own"', "$e.src = 7", '$e.@src = "p1"', '$e.@id = "f1"', "$a.src = 1"):
        found = graph.query(f"query q() {{ match {{ $a $e:fits $b  {where} }} return {{ $e.@id as i }} }}").rows()
        assert found == [{"i": "f1"}], where
    whole = graph.query('query q() { match { $p: Part { id: "p1" } } return { $p } }').rows()
    assert whole == [{"p": {"@id": "p1", "id": "p1", "src": 1, "dst": "x", "type": "bolt"}}]
    loose = graph.query("query q() { match { $l: Loose { id: 5 } } return { $l } }").rows()
    assert loose == [{"l": {"@id": "l1", "id": 5, "type": "t"}}]


def test_mutations_set_and_find_them(graph: Graph):
    graph.mutate('query q() { insert Part { id: "p3", src: 4, dst: "z", type: "nut" } }')
    graph.mutate('query q() { insert Fits { from: "p3", to: "p1", id: "mine", src: 30, dst: "q" } }')
    graph.mutate("query q() { insert Loose { id: 9 } }")
    text = "query q() { match { $a $e:fits $b  $e.src = 30 } return { $e.id as i, $e.dst as d, $e.@dst as to } }"
    assert graph.query(text).rows() == [{"i": "mine", "d": "q", "to": "p1"}]
    graph.mutate("query q() { update Fits set { src: src + 1, dst: id } where src = 30 }")
    assert graph.query(text.replace("30", "31")).rows() == [{"i": "mine", "d": "mine", "to": "p1"}]
    assert graph.mutate('query q() { update Part set { src: 5 } where id = "p3" }').affected_nodes == 1
    assert graph.mutate("query q() { delete Loose where id = 9 }").affected_nodes == 1
    assert graph.mutate('query q() { delete Fits where src = 31 and id = "mine" }').affected_edges == 1
    assert graph.mutate("query q() { match { $p: Part  $p.src = 5 } update $p set { src: $p.src + 1 } }").affected_nodes
    assert graph.entity("Part", "p3")["src"] == 6
