"""Writes fill the vectors that are missing, and keep those that were given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.embed.mock import MockEmbeddings
from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.errors import EmbeddingRefused, ValidationFailed
from tests.embed.loopback import Server, embeds, running, vectors

DIM = 16
SCHEMA = f"""
node Note {{
    id: String @key
    text: String?
    n: I32?
    vector: Vector({DIM})? @embed("text", model="mock")
    @range(n, 0..9)
}}

node Card {{
    id: String @key
    text: String
    vector: Vector({DIM}) @embed("text")
}}

edge Says: Note -> Note {{
    words: String?
    vector: Vector({DIM})? @embed("words")
}}
"""
GIVEN = [1.0] + [0.0] * (DIM - 1)


def mock(text: str) -> Any:
    return pytest.approx(MockEmbeddings().embed([text], dim=DIM)[0], abs=1e-5)


def note(id: str, **data: Any) -> dict[str, Any]:
    return {"type": "Note", "data": {"id": id, **data}}


def stored(graph: og.Graph, type: str = "Note", branch: str = "main") -> dict[str, Any]:
    rows = graph.query(f"query q() {{ match {{ $x: {type} }} return {{ $x.id, $x.vector }} }}", branch=branch).rows()
    return {row["x.id"]: row["x.vector"] for row in rows}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    og.init(tmp_path / "g", schema=SCHEMA).close()
    with og.open(tmp_path / "g", embedding=EmbeddingSettings("mock")) as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as made:
        made.answers = [embeds(DIM)]
        yield made


def asked(server: Server) -> list[str]:
    return [text for _, _, body, _ in server.asked for text in body["input"]]


def test_every_write_fills_what_is_missing_and_keeps_what_is_given(graph: og.Graph) -> None:
    graph.load([note("a", text="one"), note("b"), note("c", text="two", vector=GIVEN)], mode="append")
    graph.load([{"edge": "Says", "from": "a", "to": "b", "data": {"words": "hello"}}], mode="append")
    assert stored(graph) == {"a": mock("one"), "b": None, "c": GIVEN}
    [edge] = [json.loads(line) for line in graph.export_lines(types=["Says"])]
    assert edge["data"]["vector"] == mock("hello")
    # A merge fills rows whose text it names, new or not; a text that changes leaves the vector as it is.
    graph.load([note("b", text="three"), note("a", text="four"), note("d", text="five")], mode="merge")
    assert stored(graph) == {"a": mock("one"), "b": mock("three"), "c": GIVEN, "d": mock("five")}
    graph.mutate('query q() { insert Note { id: "e", text: "six" } update Note set { text: "x" } where id = "c" }')
    assert stored(graph)["e"] == mock("six")
    assert stored(graph)["c"] == GIVEN
    # Set to null in the same update, the vector is made anew.
    graph.mutate('query q() { update Note set { text: "seven", vector: null } where id = "a" }')
    assert stored(graph)["a"] == mock("seven")
    with og.open(graph.uri, embedding=EmbeddingSettings("mock"), combine=True) as combined:
        combined.mutate('query q() { insert Note { id: "f", text: "eight" } }')
    graph.refresh()
    assert stored(graph)["f"] == mock("eight")
    graph.mutate("query q() { delete Says where true }")
    graph.load([note("z", text="nine")], mode="overwrite")
    assert stored(graph) == {"z": mock("nine")}
    assert graph.verify().findings == ()


def test_a_row_without_its_vector_is_not_filled_by_a_write_that_is_not_about_it(tmp_path: Path) -> None:
    with og.init(tmp_path / "g", schema=SCHEMA) as graph:
        graph.load([note("a", text="one"), note("b", text="two")], mode="append")
        assert stored(graph) == {"a": None, "b": None}
    with og.open(tmp_path / "g", embedding=EmbeddingSettings("mock")) as graph:
        graph.mutate("query q() { update Note set { n: 1 } where true }")
        graph.load([note("a", n=2)], mode="merge")
        assert stored(graph) == {"a": None, "b": None}
        graph.load([note("a", text="one")], mode="merge")
        assert stored(graph) == {"a": mock("one"), "b": None}


def test_a_required_vector_may_be_left_out_where_there_is_a_provider(graph: og.Graph, tmp_path: Path) -> None:
    card = {"type": "Card", "data": {"id": "a", "text": "one"}}
    for mode in ("append", "merge"):
        graph.load([{"type": "Card", "data": {"id": mode, "text": mode, "vector": None}}], mode=mode)
    graph.load([card], mode="merge")
    graph.mutate('query q() { insert Card { id: "b", text: "two" } }')
    assert stored(graph, "Card") == {
        text: mock(x) for text, x in {"append": "append", "merge": "merge", "a": "one", "b": "two"}.items()
    }
    with og.open(graph.uri) as bare, pytest.raises(ValidationFailed, match="name an embedding provider"):
        bare.load([{"type": "Card", "data": {"id": "c", "text": "three"}}], mode="append")
    off = EmbeddingSettings("mock", on_write=False)
    with og.open(graph.uri, embedding=off) as bare, pytest.raises(ValidationFailed, match="has no value"):
        bare.mutate('query q() { insert Card { id: "c", text: "three" } }')


def test_nothing_is_asked_for_rows_that_break_a_rule(graph: og.Graph, server: Server) -> None:
    remote = EmbeddingSettings("openai-compatible", "mock", server.url)
    with og.open(graph.uri, embedding=remote) as asking:
        for mode in ("append", "merge"):
            with pytest.raises(ValidationFailed) as caught:
                asking.load(
                    [note("a", text="one", n=10), {"type": "Card", "data": {"id": "c", "text": "x"}}], mode=mode
                )
            assert len(caught.value.violations) == 1
        with pytest.raises(ValidationFailed):
            asking.mutate('query q() { insert Note { id: "a", text: "one", n: 10 } }')
        assert server.asked == []
        # Equal texts are asked for once; what was asked last is remembered.
        asking.load([note("a", text="one"), note("b", text="one"), note("c", text="two")], mode="append")
        assert sorted(asked(server)) == ["one", "two"]
        asking.mutate('query q() { insert Note { id: "d", text: "two" } }')
        assert sorted(asked(server)) == ["one", "two"]
        server.answers = [vectors([0.0] * DIM, [1.0] * DIM)]
        with pytest.raises(EmbeddingRefused, match="is zero, which has no direction; the text is `text` of Note `e`"):
            asking.load([note("e", text="five"), note("f", text="six")], mode="append")
        server.answers = [vectors([1.0] * DIM, [1.0] * 3)]
        with pytest.raises(EmbeddingRefused, match=r"3 numbers for text 2.*the text is `text` of Note `f`"):
            asking.load([note("e", text="five"), note("f", text="six")], mode="append")
        assert set(stored(asking)) == {"a", "b", "c", "d"}
