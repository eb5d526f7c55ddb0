"""Two zeros are one value: where values must be unique, and where an edge is found by its unique values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og

SCHEMA = """
node P { k: String @key  u: F64? @unique  v: F32?  t: String?  @unique(v, t) }
edge E: P -> P { w: F64?  n: I32?  @unique(w) }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    with og.init(tmp_path / "g.omni", schema=SCHEMA) as made:
        made.load([{"k": "a", "u": 0.0, "v": -0.0, "t": "x"}], type="P", mode="append")
        yield made


@pytest.mark.parametrize(
    "row",
    [{"k": "b", "u": -0.0}, {"k": "b", "u": 0.0}, {"k": "b", "v": 0.0, "t": "x"}, {"k": "b", "v": -0.0, "t": "x"}],
)
@pytest.mark.parametrize("mode", ["append", "merge"])
def test_another_zero_is_taken_already(graph: og.Graph, row: dict[str, object], mode: str) -> None:
    with pytest.raises(og.errors.ValidationFailed) as refused:
        graph.load([row], type="P", mode=mode)
    assert refused.value.counts == {"unique": 1}
    set_ = ", ".join(f"{name}: {value!r}".replace("'", '"') for name, value in row.items())
    with pytest.raises(og.errors.ValidationFailed, match="@unique"):
        graph.mutate(f"query q() {{ insert P {{ {set_} }} }}")


def test_both_zeros_in_one_write_are_one_value(graph: og.Graph) -> None:
    rows = [{"k": "b", "u": 5.0, "v": 0.0, "t": "y"}, {"k": "c", "u": 6.0, "v": -0.0, "t": "y"}]
    with pytest.raises(og.errors.ValidationFailed, match="@unique"):
        graph.load(rows, type="P", mode="append")
    with pytest.raises(og.errors.ValidationFailed, match="@unique"):
        graph.load([{"k": "b", "u": 0.0}, {"k": "c", "u": -0.0}], type="P", mode="overwrite")


def test_both_zeros_of_statements_of_one_mutation_are_one_value(graph: og.Graph) -> None:
    with pytest.raises(og.errors.ValidationFailed, match="@unique"):
        graph.mutate('query q() { insert P { k: "b", v: 0.0, t: "z" } insert P { k: "c", v: -0.0, t: "z" } }')


def test_an_edge_is_found_by_either_zero(graph: og.Graph) -> None:
    graph.load([{"src": "a", "dst": "a", "w": -0.0, "n": 1}], type="E", mode="append")
    graph.load([{"src": "a", "dst": "a", "w": 0.0, "n": 2}], type="E", mode="merge")
    found = graph.query("query q() { match { $a $e:e $b } return { $e.n as n } }").rows()
    assert found == [{"n": 2}]
    rows = [{"src": "a", "dst": "a", "w": 0.0, "n": 3}, {"src": "a", "dst": "a", "w": -0.0, "n": 4}]
    graph.load(rows, type="E", mode="merge")
    assert graph.query("query q() { match { $a $e:e $b } return { $e.n as n } }").rows() == [{"n": 4}]
