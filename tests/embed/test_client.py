"""The client against a server on loopback that misbehaves in every way a provider can."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.embed.client import EmbeddingClient
from omnigraph.embed.provider_settings import EmbeddingSettings, from_environment, from_mapping
from omnigraph.errors import BadRequest, EmbeddingRefused, EmbeddingUnavailable
from tests.embed.loopback import KEY, Answer, Server, hangs_up, running, says, sleeps, vectors


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as made:
        yield made


def client(server: Server, **more: Any) -> EmbeddingClient:
    settings = EmbeddingSettings("openai-compatible", "small", server.url, KEY, deadline=60.0, timeout=30.0)
    return EmbeddingClient(replace(settings, **more))


def test_vectors_come_back_in_the_order_of_the_texts_and_of_unit_length(server: Server) -> None:
    server.answers = [vectors([3.0, 4.0], [0.0, -2.0], mixed=True)]
    found = client(server).embed(["one", "two"], dim=2)
    assert found == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, -1.0]]
    [(path, headers, body, _)] = server.asked
    assert path == "/v1/embeddings"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {"model": "small", "input": ["one", "two"], "encoding_format": "float"}


def test_texts_go_out_in_batches(server: Server) -> None:
    server.answers = [lambda handler, body: vectors(*[[1.0, 1.0]] * len(body["input"]))(handler, body)]
    assert len(client(server, batch=3).embed([str(n) for n in range(8)], dim=2)) == 8
    assert sorted(len(body["input"]) for _, _, body, _ in server.asked) == [2, 3, 3]
    assert client(server).embed([], dim=2) == []


@pytest.mark.parametrize(
    "trouble",
    [
        says(503, "busy"),
        says(429, "slow down"),
        says(500, b"\xff\xfe"),
        says(200, b'{"data": [{"index"'),
        says(200, [1, 2]),
        hangs_up,
        sleeps,
    ],
    ids=["503", "429", "500", "half of an answer", "a list", "hangs up", "too slow"],
)
def test_passing_trouble_is_tried_again(server: Server, trouble: Answer) -> None:
    server.answers = [trouble, vectors([1.0, 0.0])]
    patience = {"timeout": 1.0} if trouble is sleeps else {}
    assert client(server, **patience).embed(["a"], dim=2) == [[1.0, 0.0]]
    assert len(server.asked) == 2


def test_a_server_that_asks_for_time_gets_it(server: Server) -> None:
    server.answers = [says(429, "", retry_after="0.9"), vectors([1.0, 0.0])]
    client(server).embed(["a"], dim=2)
    (_, _, _, first), (_, _, _, second) = server.asked
    assert second - first >= 0.9


def test_the_deadline_bounds_all_tries_together(server: Server) -> None:
    server.answers = [says(503, f"no, {KEY} is busy")]
    started = time.monotonic()
    with pytest.raises(EmbeddingUnavailable, match=r"within 1 s \(\d tries\): status 503") as caught:
        client(server, deadline=1.0).embed(["a"], dim=2)
    assert time.monotonic() - started < 30.0
    assert caught.value.retryable
    assert caught.value.outcome.http_status == 503
    server.answers = [says(429, "", retry_after="3600")]
    with pytest.raises(EmbeddingUnavailable, match=r"1 try"):
        client(server).embed(["a"], dim=2)


def test_what_is_refused_is_not_tried_again_and_no_message_holds_the_key(server: Server) -> None:
    server.answers = [says(401, {"error": f"wrong key {KEY}"})]
    with pytest.raises(EmbeddingRefused, match="status 401") as caught:
        client(server).embed(["a"], dim=2)
    assert len(server.asked) == 1
    assert KEY not in str(caught.value)
    assert KEY not in repr(client(server).settings)
    assert KEY not in str(caught.value.to_json())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (vectors([1.0, 0.0], [1.0, 0.0]), "2 vectors for 1 texts"),
        (vectors([1.0, 0.0, 0.0]), r"3 numbers for text 1, and the property holds 2.*Vector\(3\)"),
        (vectors([0.0, 0.0]), "is zero"),
        (says(200, b'{"data": [{"embedding": [NaN, 1.0]}]}'), "not finite"),
        (says(200, b'{"data": [{"embedding": [1e999, 1.0]}]}'), "not finite"),
        (says(200, {"data": [{"embedding": ["x", 1.0]}]}), "not a number"),
        (says(200, {"data": [{"index": 7, "embedding": [1.0, 0.0]}]}), "without vectors"),
        (says(200, {"models": []}), "without vectors; it has models"),
    ],
)
def test_answers_that_can_be_no_vector_are_refused(server: Server, answer: Answer, message: str) -> None:
    server.answers = [answer]
    with pytest.raises(EmbeddingRefused, match=message):
        client(server).embed(["a"], dim=2)
    assert len(server.asked) == 1


def test_vectors_near_the_ends_of_the_range_keep_their_direction(server: Server) -> None:
    server.answers = [vectors([3e-200, 4e-200], [3e150, 4e150])]
    for vector in client(server).embed(["a", "b"], dim=2):
        assert vector == [pytest.approx(0.6), pytest.approx(0.8)]


def test_the_limit_of_calls_holds_for_all_threads(server: Server) -> None:
    server.answers = [vectors([1.0, 0.0])]
    shared = client(server, calls_per_second=10.0)
    threads = [threading.Thread(target=shared.embed, args=(["a"],), kwargs={"dim": 2}) for _ in range(6)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = sorted(asked[3] for asked in server.asked)
    assert len(times) == 6
    assert times[-1] - started >= 0.49


def test_gemini_is_asked_in_its_own_words(server: Server) -> None:
    server.answers = [says(200, {"embeddings": [{"values": [0.0, 5.0]}]})]
    settings = EmbeddingSettings("gemini", "text-embedding-004", server.url, KEY)
    assert EmbeddingClient(settings).embed(["a"], dim=2) == [[0.0, 1.0]]
    [(path, headers, body, _)] = server.asked
    assert path == "/v1/models/text-embedding-004:batchEmbedContents"
    assert headers["x-goog-api-key"] == KEY
    assert body["requests"] == [
        {
            "model": "models/text-embedding-004",
            "content": {"parts": [{"text": "a"}]},
            "outputDimensionality": 2,
        }
    ]


def test_two_models_are_never_mixed() -> None:
    mock = EmbeddingClient(EmbeddingSettings("mock", "tiny"))
    assert mock.embed(["a"], dim=8, model="tiny") == mock.embed(["a"], dim=8)
    with pytest.raises(BadRequest, match=r"by the model `other`, and the provider is set up for `tiny`"):
        mock.embed(["a"], dim=8, model="other")
    assert math.isclose(sum(x * x for x in mock.embed(["a cat"], dim=8)[0]), 1.0, rel_tol=1e-6)
    assert pickle.loads(pickle.dumps(mock)).embed(["a"], dim=8) == mock.embed(["a"], dim=8)


def test_the_environment_names_a_provider() -> None:
    assert from_environment({}) is None
    found = from_environment(
        {
            "OMNIGRAPH_EMBEDDING_PROVIDER": "openai-compatible",
            "OMNIGRAPH_EMBEDDING_BASE_URL": "http://h/v1",
            "OMNIGRAPH_EMBEDDING_MODEL": "m",
            "OMNIGRAPH_EMBEDDING_DEADLINE": "2m",
            "OMNIGRAPH_EMBEDDING_BATCH": "7",
        }
    )
    assert found == EmbeddingSettings("openai-compatible", "m", "http://h/v1", None, 120.0, 20.0, 7)
    for wrong, message in [
        ({"OMNIGRAPH_EMBEDDING_PROVIDER": "magic"}, "no embedding provider `magic`"),
        ({"OMNIGRAPH_EMBEDDING_PROVIDER": "openai-compatible"}, "needs a base_url"),
        ({"OMNIGRAPH_EMBEDDING_PROVIDER": "gemini", "OMNIGRAPH_EMBEDDING_MODEL": "m"}, "needs an api_key"),
        ({"OMNIGRAPH_EMBEDDING_PROVIDER": "mock", "OMNIGRAPH_EMBEDDING_BATCH": "many"}, "OMNIGRAPH_EMBEDDING_BATCH"),
        ({"OMNIGRAPH_EMBEDDING_PROVIDER": "mock", "OMNIGRAPH_EMBEDDING_BATCH": "0"}, "at least 1"),
    ]:
        with pytest.raises(BadRequest, match=message):
            from_environment(wrong)


def test_a_file_names_the_variable_of_a_key_and_never_the_key() -> None:
    written = {"kind": "gemini", "model": "m", "api_key": "${SOME_KEY}", "timeout": "5s"}
    assert from_mapping(written, "cluster.yaml", {"SOME_KEY": KEY}).api_key == KEY
    for wrong, message in [
        ({**written, "api_key": KEY}, "does not belong into a file"),
        (written, "SOME_KEY that holds the key is not set"),
        ({**written, "colour": 1}, "`colour` is not known"),
        ({"model": "m"}, "needs its kind"),
        ({"kind": "gemini", "model": "m"}, "cluster.yaml: the gemini embedding provider needs an api_key"),
    ]:
        with pytest.raises(BadRequest, match=message) as caught:
            from_mapping(wrong, "cluster.yaml", {})
        assert KEY not in str(caught.value)


def test_only_a_text_minds_how_the_provider_is_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near = "query q($t: String) { match { $n: Note } return { $n.k } order { nearest($n.v, $t) } limit 1 }"
    with og.init(tmp_path / "g", schema="node Note { k: String @key  v: Vector(8) }") as graph:
        vectors_ = EmbeddingClient(EmbeddingSettings("mock")).embed(["red apple", "blue sea"], dim=8)
        rows = [{"type": "Note", "data": {"k": k, "v": v}} for k, v in zip("ab", vectors_, strict=True)]
        graph.load(rows, mode="append")
        with pytest.raises(BadRequest, match="no embedding provider"):
            graph.query(near, t="sea")
        monkeypatch.setenv("OMNIGRAPH_EMBEDDING_PROVIDER", "magic")
        assert len(graph.query("query q() { match { $n: Note } return { $n.k } }")) == 2
        with pytest.raises(BadRequest, match="no embedding provider `magic`"):
            graph.query(near, t="sea")
        monkeypatch.setenv("OMNIGRAPH_EMBEDDING_PROVIDER", "mock")
        assert graph.query(near, t="the blue sea").rows() == [{"n.k": "b"}]
