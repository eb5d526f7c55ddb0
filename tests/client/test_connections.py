"""The handle of a client: addresses, tokens, what it does when it is closed, sent to another process, or forked."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.server.server_settings import GraphSettings
from tests.server.graphs import ALL_PEOPLE, TOKENS, make
from tests.server.running import Running, serving


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def server(uri: str) -> Iterator[Running]:
    with serving(GraphSettings("default", uri)) as running:
        yield running


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:80", "ftp://x", "http://", "http://[::1", "http://a b", "http://x?y=1", "http://x#y", None, 5],
)
def test_what_is_no_address(url: Any) -> None:
    with pytest.raises(errors.BadRequest, match="is no address of a server"):
        og.connect(url)


def test_an_address_keeps_no_password() -> None:
    with pytest.raises(errors.BadRequest, match="token=") as told:
        og.connect("http://ada:s3cret@127.0.0.1:1")
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("token", ["sec ret", "sec\nret", "sécret", 5, b"secret"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(token: Any) -> None:
    with pytest.raises(errors.BadRequest, match="token") as told:
        og.connect("http://127.0.0.1:1", token=token)
    assert str(token) not in str(told.value)


def test_a_closed_one(server: Running) -> None:
    graph = og.connect(server.url)
    graph.close()
    graph.close()
    for call in (lambda: graph.query(ALL_PEOPLE), graph.head, lambda: list(graph.export_lines())):
        with pytest.raises(errors.BadRequest, match="is closed"):
            call()


def test_it_pickles_as_its_address(uri: str) -> None:
    settings = GraphSettings("default", uri)
    with serving(settings, tokens=TOKENS) as running:
        token = TOKENS["act-bob"]
        with og.connect(running.url, token=token, graph="default", branch="main") as graph:
            assert token not in repr(graph)
            with pickle.loads(pickle.dumps(graph)) as copy:
                assert (copy.uri, copy.branch_name) == (graph.uri, graph.branch_name)
                assert copy.query(ALL_PEOPLE).rows() == graph.query(ALL_PEOPLE).rows()


def test_a_forked_child_does_not_share_its_connections(server: Running) -> None:
    with og.connect(server.url) as graph:
        graph.head()
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                graph.head()
                os.write(tell, b"answered")
            except errors.BadRequest as error:
                os.write(tell, error.message.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert b"connect there" in os.read(told, 1000)
        assert graph.head()


def test_what_only_a_graph_that_is_opened_here_takes(server: Running) -> None:
    with og.connect(server.url) as graph:
        for keyword, told in (("actor", "from the token"), ("cancel", "not through"), ("memory_limit", "not through")):
            with pytest.raises(errors.BadRequest, match=told):
                graph.query(ALL_PEOPLE, **{keyword: "x"})
        with pytest.raises(errors.BadRequest, match="from the token"):
            graph.mutate('query m() { insert Person { slug: "x" } }', actor="act-eve")
        with pytest.raises(errors.BadRequest, match="params="):
            graph.query("query q($actor: String) { match { $p: Person } return { $actor as a } }", actor="x")
        with pytest.raises(errors.NotFound, match="there is no branch ``"):
            graph.query(ALL_PEOPLE, branch="")


def test_the_groups_are_there_too(server: Running, uri: str) -> None:
    with og.connect(server.url) as graph, og.open(uri) as opened:
        assert str(graph.schema) == str(opened.schema)
        assert graph.schema.diagram() == opened.schema.diagram()
        assert graph.maintenance.verify().ok
        with pytest.raises(errors.BadRequest, match="not through a server"):
            graph.maintenance.repair()


def test_a_plan_is_the_same(server: Running, uri: str) -> None:
    with og.connect(server.url) as graph, og.open(uri) as opened:
        query = "query q($n: I32) { match { $p: Person  $p.age > $n } return { $p.slug } }"
        assert graph.explain(query, n=1).to_json() == opened.explain(query, n=1).to_json()
        assert str(graph.explain(query, n=1)) == str(opened.explain(query, n=1))
        analysed = graph.explain(query, params={"n": 1}, analyze=True)
        assert analysed.lines[0].rows is not None


def test_a_branch_that_others_were_made_from(server: Running) -> None:
    with og.connect(server.url) as graph:
        graph.branch_create("first")
        graph.branch_create("second", "first")
        with pytest.raises(errors.OmniGraphError, match="delete those first"):
            graph.branch_delete("first")
        graph.branch_delete("first", force=True)
        assert graph.branch_list() == ["main", "second"]
        graph.branch_delete("second")


def test_following_ends_when_nothing_happens_for_so_long(server: Running, tmp_path: Path) -> None:
    with og.connect(server.url) as graph:
        assert list(graph.follow(since="now", timeout=0.5)) == []
        pages = list(graph.follow(since="beginning", timeout=0.5, limit=1, every=0.1))
        assert [page.blocks[0].commit.kind.value for page in pages] == ["Init", "Load"]
        with pytest.raises(errors.BadRequest):
            next(graph.follow(timeout=-1))
