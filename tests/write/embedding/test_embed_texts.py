"""`embed`: which rows, what it costs, one commit, and a run that died does not pay again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.config import override
from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.errors import BadRequest, EmbeddingRefused, EmbeddingUnavailable, NotFound
from omnigraph.write.embedding import embed_work
from tests.embed.loopback import Server, embeds, hangs_up, running, says, vectors
from tests.write.embedding.test_fill import DIM, GIVEN, SCHEMA, asked, mock, note, stored

MOCK = EmbeddingSettings("mock")
EDGE = {"edge": "Says", "from": "a", "to": "b", "data": {"words": "hello"}}


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as made:
        made.answers = [embeds(DIM)]
        yield made


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A graph whose texts have no vectors, but one that was given."""
    with og.init(tmp_path / "g", schema=SCHEMA) as graph:
        rows = [note("a", text="one"), note("b", text="two"), note("c"), note("d", text="x", vector=GIVEN)]
        graph.load([*rows, EDGE], mode="append")
        return graph.uri


def remote(server: Server, **more: Any) -> EmbeddingSettings:
    settings = EmbeddingSettings("openai-compatible", "mock", server.url, deadline=60.0, timeout=30.0, parallel=1)
    return replace(settings, **more)


def shelf(graph: og.Graph) -> list[str]:
    return [entry.path for entry in graph._store.objects.list("_embedding")]


def test_missing_vectors_are_made_in_one_commit_on_a_branch(uri: str) -> None:
    with og.open(uri, embedding=MOCK) as graph:
        graph.branch_create("vectors")
        before = graph.head().graph_commit_id
        preview = graph.embed(branch="vectors", dry_run=True)
        assert [(one.table_key, one.rows, one.tokens) for one in preview.properties] == [
            ("node:Card", 0, 0),
            ("node:Note", 2, 2),
            ("edge:Says", 1, 2),
        ]
        assert (preview.rows, preview.tokens, preview.commit) == (3, 4, None)
        seen: list[Any] = []
        done = graph.embed(branch="vectors", actor="ada", progress=seen.append)
        assert (done.rows, done.commit.kind, done.commit.actor_id) == (3, "Embed", "ada")  # type: ignore[union-attr]
        assert (seen[-1].finished, seen[-1].records, seen[-1].records_total) == (True, 3, 3)
        assert stored(graph, branch="vectors") == {"a": mock("one"), "b": mock("two"), "c": None, "d": GIVEN}
        assert graph.head().graph_commit_id == before
        assert len(graph.log("vectors")) == len(graph.log()) + 1
        assert graph.embed(branch="vectors").commit is None
        changed = {(c.type, c.id) for c in graph.diff("main", "vectors")}
        assert {("Note", "a"), ("Note", "b")} < changed
        assert len(changed) == 3
        graph.merge("vectors")
        assert stored(graph) == stored(graph, branch="vectors")
        assert shelf(graph) == []
        assert graph.verify().findings == ()


def test_only_what_is_named(uri: str) -> None:
    with og.open(uri, embedding=MOCK) as graph:
        assert [one.table_key for one in graph.embed(["Note"], "vector").properties] == ["node:Note"]
        assert graph.embed(dry_run=True).rows == 1
        for call, message in [
            (lambda: graph.embed(["Note"], "text"), "`text` of Note is not declared with @embed"),
            (lambda: graph.embed(["Note"], "vectr"), "Note has no property `vectr`; it has id, text"),
            (lambda: graph.embed(property="bio"), "no type has an embedded property `bio`"),
            (lambda: graph.embed(mode="some"), "use missing, stale, all"),  # type: ignore[arg-type]
        ]:
            with pytest.raises(BadRequest, match=message):
                call()
        with pytest.raises(NotFound, match="no type `Nte`"):
            graph.embed(["Nte"])
    with og.open(uri) as graph:
        assert graph.embed(dry_run=True).rows == 1
        with pytest.raises(BadRequest, match="there is no embedding provider"):
            graph.embed()
    with og.open(uri, read_only=True, embedding=MOCK) as graph:
        assert graph.embed(dry_run=True).rows == 1
        with pytest.raises(BadRequest, match="opened read-only"):
            graph.embed()


def test_stale_survives_updates_merges_and_export(uri: str, tmp_path: Path) -> None:
    with og.open(uri, embedding=MOCK) as graph:
        graph.embed()
        graph.branch_create("b")
        graph.mutate('query q() { update Note set { text: "other" } where id = "a" }', branch="b")
        graph.mutate('query q() { update Note set { n: 3 } where id = "b" }')
        graph.merge("b")
        graph.mutate('query q() { update Note set { text: null } where id = "b" }')
        graph.mutate('query q() { update Note set { text: "y" } where id = "d" }')
        lines = b"".join(graph.export_lines())
    with og.init(tmp_path / "other", schema=SCHEMA) as other:
        other.load(lines, mode="append")
    for place in (uri, str(tmp_path / "other")):
        with og.open(place, embedding=MOCK) as graph:
            assert graph.embed(dry_run=True).rows == 0
            found = graph.embed(mode="stale")
            assert [(one.rows, one.rows_cleared) for one in found.properties] == [(0, 0), (1, 1), (0, 0)]
            assert stored(graph) == {"a": mock("other"), "b": None, "c": None, "d": GIVEN}
            assert graph.embed(mode="stale").commit is None
            # All is all, also what was given.
            assert graph.embed(mode="all").rows == 3
            assert stored(graph) == {"a": mock("other"), "b": None, "c": None, "d": mock("y")}


def test_models_and_sizes_are_not_mixed(uri: str, server: Server) -> None:
    with og.open(uri, embedding=MOCK) as graph:
        graph.load([{"type": "Card", "data": {"id": "x", "text": "one"}}], mode="append")
        graph.embed()
    with og.open(uri, embedding=EmbeddingSettings("mock", "huge")) as graph:
        with pytest.raises(BadRequest, match="by the model `mock`, and the provider is set up for `huge`"):
            graph.embed(["Note"])
        # A property that names no model remembers which one made its vectors.
        with pytest.raises(BadRequest, match="`vector` of Card `x` was made by another model than `huge`"):
            graph.embed(["Card"])
        card = "query q($t: String) { match { $c: Card } return { $c.id } order { nearest($c.vector, $t) } limit 1 }"
        with pytest.raises(BadRequest, match="the vectors of `vector` were made by another model than `huge`"):
            graph.query(card, t="one")
        # The way to another model: a branch with the new one, its vectors made anew there, and a merge.
        graph.branch_create("huge")
        graph.apply_schema(SCHEMA.replace('model="mock"', 'model="huge"'), branch="huge")
        done = graph.embed(mode="stale", branch="huge")
        assert [one.rows for one in done.properties] == [1, 2, 1]
        near = "query q($t: String) { match { $n: Note } return { $n.id } order { nearest($n.vector, $t) } limit 1 }"
        assert graph.query(near, t="two", branch="huge").rows() == [{"n.id": "b"}]
        with pytest.raises(BadRequest, match="set up for `huge`"):
            graph.query(near, t="two")
        assert graph.query(card, t="one", branch="huge").rows() == [{"c.id": "x"}]
        graph.merge("huge")
        assert graph.query(near, t="two").rows() == [{"n.id": "b"}]
    server.answers = [embeds(DIM + 1)]
    wrong_size = rf"{DIM + 1} numbers.*the text is `text` of Note `\w`"
    with (
        og.open(uri, embedding=remote(server, model="huge")) as graph,
        pytest.raises(EmbeddingRefused, match=wrong_size),
    ):
        graph.embed(["Note"], mode="all")


def test_a_run_that_failed_does_not_pay_again(uri: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_work, "KEPT_SECONDS", 0.0)
    with og.open(uri, embedding=EmbeddingSettings("mock", on_write=False)) as graph:
        graph.load([note(f"n{i}", text=f"text {i % 7}") for i in range(10)], mode="append")
    with og.open(uri, embedding=remote(server, batch=3)) as graph:
        head = graph.head().graph_commit_id
        # The provider breaks down after two requests, with a pause and a hang-up on the way.
        good = embeds(DIM)
        server.answers = [says(429, "slow", retry_after="0.05"), good, hangs_up, good, says(400, "no")]
        with pytest.raises(EmbeddingRefused, match="status 400"):
            graph.embed(["Note"])
        assert graph.head().graph_commit_id == head
        paid = len(set(asked(server)[:-3]))
        preview = graph.embed(["Note"], dry_run=True)
        assert preview.properties[0].rows == 12
        assert preview.properties[0].rows_ready > 0
        server.asked.clear()
        server.answers = [says(503, "busy")]
        graph._store.embedding = remote(server, batch=3, deadline=0.3)
        with pytest.raises(EmbeddingUnavailable):
            graph.embed(["Note"])
        server.asked.clear()
        server.answers = [good]
        graph._store.embedding = remote(server, batch=3)
        assert graph.embed(["Note"]).rows == 12
        assert sorted(asked(server)) == sorted(set(asked(server)))
        assert len(asked(server)) == 9 - paid
        assert shelf(graph) == []
        server.asked.clear()
        # Interrupted when everything was made: the next run asks for nothing.
        with failpoints.active("embed.ready", "raise"), pytest.raises(failpoints.FailpointError):
            graph.embed(["Note"], mode="all")
        server.asked.clear()
        graph.embed(["Note"], mode="all")
        assert server.asked == []


def test_a_row_that_changes_under_a_run_gets_the_vector_of_its_new_text(uri: str, tmp_path: Path) -> None:
    gate = tmp_path / "go"
    with og.open(uri, embedding=MOCK) as graph, og.open(uri) as other:
        with failpoints.active("embed.ready", f"pause:{gate}"):
            runs: list[Any] = []
            thread = threading.Thread(target=lambda: runs.append(graph.embed(["Note"])))
            thread.start()
            other.mutate('query q() { update Note set { text: "new" } where id = "a" }')
            other.mutate('query q() { delete Note where id = "b" }')
            other.load([note("z", text="late")], mode="append")
            gate.touch()
            thread.join()
        assert stored(graph) == {"a": mock("new"), "c": None, "d": GIVEN, "z": mock("late")}
        assert runs[0].rows == 2


def test_cleanup_takes_what_a_run_left(uri: str) -> None:
    with og.open(uri, embedding=MOCK) as graph:
        with failpoints.active("embed.ready", "raise"), pytest.raises(failpoints.FailpointError):
            graph.embed()
        assert shelf(graph)
        graph.cleanup(keep_versions=100, confirm=True)
        assert shelf(graph)
        with override(cleanup_grace=0.0):
            graph.cleanup(keep_versions=100, confirm=True)
        assert shelf(graph) == []


def test_answers_that_can_be_no_vector_name_the_row(uri: str, server: Server) -> None:
    for answer, message in [
        (vectors([0.0] * DIM, [1.0] * DIM), "is zero.*the text is `text` of Note `a`"),
        (
            says(200, json.dumps({"data": [{"embedding": [1.0] * DIM}, {"embedding": [float("nan")] * DIM}]}).encode()),
            "is not finite; the text is `text` of Note `b`",
        ),
    ]:
        server.answers = [answer]
        with og.open(uri, embedding=remote(server)) as graph:
            with pytest.raises(EmbeddingRefused, match=message):
                graph.embed(["Note"])
            assert stored(graph)["a"] is None
