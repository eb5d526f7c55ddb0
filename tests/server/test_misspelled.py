"""Requests that do not say what their sender means: a name that is not there, or twice, is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from omnigraph.errors import NotFound
from omnigraph.server.server_settings import GraphSettings
from tests.server.graphs import ALL_PEOPLE, make
from tests.server.running import Running, serving

INSERT = 'query m() { insert Person { slug: "x" } }'
RECORD = '{"type": "Person", "data": {"slug": "x"}}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("misspelled")
    with serving(GraphSettings("default", make(folder), queries=str(folder / "queries"))) as running:
        yield running


@pytest.fixture
def http(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        before = client.get("/commits").json()
        yield client
        assert client.get("/commits").json() == before, "something was written"


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/mutate", {"query": INSERT, "brnach": "review"}, "there is no `brnach` here; did you mean `branch`?"),
        ("/mutate", {"query": INSERT, "if_commit": "x"}, "there is no `if_commit` here"),
        ("/mutate", {"query": INSERT, "query_source": INSERT}, "`query` and `query_source` are one thing"),
        ("/query", {"query": ALL_PEOPLE, "name": "q", "query_name": "q"}, "`name` and `query_name` are one thing"),
        ("/load", {"data": RECORD, "mode": "append", "form": "main"}, "did you mean `from`?"),
        ("/branches/merge", {"source": "main", "into": "other"}, "there is no `into` here"),
        ("/branches/merge", {"source": "main", "dryrun": True}, "did you mean `dry_run`?"),
        ("/queries/people", {"query": ALL_PEOPLE}, "there is no `query` here"),
        ("/cleanup", {"keep_version": 1}, "did you mean `keep_versions`?"),
    ],
)
def test_a_key_that_is_not_there(http: httpx.Client, path: str, body: Any, told: str) -> None:
    answer = http.post(path, json=body)
    assert (answer.status_code, told in answer.json()["error"]) == (400, True), answer.text


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("POST", "/load/ndjson?mode=append&brnach=review", "takes no `brnach`; did you mean `branch`?"),
        ("POST", "/load/ndjson?mode=append&mode=merge", "`mode` stands twice"),
        ("GET", "/snapshot?branch=main&branch=other", "`branch` stands twice"),
        ("POST", "/mutate?branch=review", "takes no `branch`"),
        ("GET", "/changes?kinds=node&kinds=edge&type=Person", "did you mean `types`?"),
        ("DELETE", "/branches/nothing?forced=true", "did you mean `force`?"),
    ],
)
def test_a_name_in_the_query_string_that_is_not_there(http: httpx.Client, method: str, path: str, told: str) -> None:
    answer = http.request(method, path, json={"query": INSERT} if "mutate" in path else None)
    assert (answer.status_code, told in answer.json()["error"]) == (400, True), answer.text


def test_what_may_stand_twice_and_what_is_ignored(http: httpx.Client) -> None:
    assert http.get("/changes?kinds=node&kinds=edge&limit=1").status_code == 200
    assert http.post("/query", json={"query": ALL_PEOPLE, "actor": "act-eve", "actor_id": "x"}).status_code == 200
    assert http.get("/healthz?now=1").status_code == 200


def test_an_empty_branch_is_none_that_there_is(http: httpx.Client, tmp_path: Path) -> None:
    """A script with an empty variable must not write to `main`."""
    asked = [
        http.post("/mutate", json={"query": INSERT, "branch": ""}),
        http.post("/query", json={"query": ALL_PEOPLE, "branch": ""}),
        http.post("/load", json={"data": RECORD, "mode": "append", "branch": ""}),
        http.post("/load/ndjson?mode=append&branch=", content=RECORD),
        http.get("/snapshot?branch="),
        http.get("/schema?branch="),
        http.post("/restore", json={"to": "main", "branch": ""}),
        http.post("/queries/hire", json={"params": {"slug": "x"}, "branch": ""}),
    ]
    assert [(answer.status_code, "there is no branch ``" in answer.text) for answer in asked[:5]] == [(404, True)] * 5
    assert {answer.status_code for answer in asked} == {404}
    with og.open(make(tmp_path)) as graph:
        for call in (
            lambda: graph.mutate(INSERT, branch=""),
            lambda: graph.query(ALL_PEOPLE, branch=""),
            lambda: graph.load([], mode="append", branch=""),
            lambda: graph.entity("Person", "ada", branch=""),
            lambda: graph.log(branch=""),
        ):
            with pytest.raises(NotFound, match="there is no branch ``"):
                call()
