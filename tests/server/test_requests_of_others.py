"""Requests that come by way of others: pages of other sites, proxies that add headers, probes, busy threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.server.server_settings import GraphSettings
from tests.server.graphs import ALL_PEOPLE, TOKENS, make
from tests.server.running import Running, serving, until

RECORD = '{"type": "Person", "data": {"slug": "planted"}}'


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make(tmp_path_factory.mktemp("others"))


@pytest.fixture(scope="module")
def server(uri: str) -> Iterator[Running]:
    with serving(GraphSettings("default", uri)) as running:
        yield running


def test_a_page_of_another_site_writes_nothing_where_nobody_needs_a_token(server: Running, uri: str) -> None:
    with server.client() as http:
        host = server.url.removeprefix("http://")
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"http://{host}.evil.example"):
            answer = http.post("/load/ndjson?mode=append", content=RECORD, headers={"Origin": origin})
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), origin
            assert http.post("/reload", headers={"Origin": origin}).status_code == 403
            assert http.get("/healthz", headers={"Origin": origin}).status_code == 200
        own = {"Origin": server.url}
        assert http.post("/query", json={"query": ALL_PEOPLE}, headers=own).json()["row_count"] == 2
        behind_a_proxy = {"Origin": "https://graphs.example", "Sec-Fetch-Site": "same-origin"}
        assert http.post("/query", json={"query": ALL_PEOPLE}, headers=behind_a_proxy).status_code == 200
    with serving(GraphSettings("default", uri), tokens=TOKENS) as guarded, guarded.client(TOKENS["act-bob"]) as http:
        # No page of another site has the token.
        assert http.post("/query", json={"query": ALL_PEOPLE}, headers={"Origin": "http://x"}).status_code == 200


def test_two_tokens_are_no_token(uri: str) -> None:
    with serving(GraphSettings("default", uri), tokens=TOKENS) as running, running.client() as http:
        both = [("Authorization", f"Bearer {TOKENS[actor]}") for actor in ("act-ada", "act-bob")]
        assert http.get("/branches", headers=both[:1]).status_code == 200
        assert http.get("/branches", headers=both).status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_that_want_no_body(server: Running, path: str) -> None:
    with server.client() as http:
        answer = http.head(path)
        assert (answer.status_code, answer.content) == (200, b"")


def test_a_read_that_finds_no_thread_in_its_time_is_told_so(uri: str) -> None:
    go_on = threading.Event()
    with serving(GraphSettings("default", uri), read_threads=1) as running, running.client() as http:
        waiting = running.app.state.threads._readers.submit(go_on.wait, 60)
        try:
            until(waiting.running)
            body = {"query": ALL_PEOPLE}
            answer = http.post("/query", json=body, headers={"Omnigraph-Timeout": "0.3"}, timeout=30)
            assert (answer.status_code, answer.json()["kind"]) == (504, "timeout")
            assert "within 0.3 s" in answer.json()["error"]
        finally:
            go_on.set()
        assert http.post("/query", json=body).json()["row_count"] == 2


def test_the_log_level_is_one_that_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from omnigraph.server.launch import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_LOG", "loud")
        assert main([str(tmp_path / "g.omni"), "--unauthenticated"]) == 1
    assert "OMNIGRAPH_LOG" in capsys.readouterr().err
