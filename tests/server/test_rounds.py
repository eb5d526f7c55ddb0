"""Look-ups by key over HTTP run together, each with its own answer; nobody waits for a read that is long."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.handle.asked import AskedRead, ReadAsk
from omnigraph.server.calls import rounds
from omnigraph.server.server_settings import GraphSettings
from tests.server.running import Running, serving, until

SCHEMA = "node Person { slug: String @key age: I64? }\n"
READ = "query q($s: String) { match { $p: Person { slug: $s } } return { $p.slug, $p.age } }"
COUNT = "query q() { match { $p: Person } return { count($p) as people } }"
PEOPLE = 20_000


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("rounds") / "g")
    with og.init(place, schema=SCHEMA) as graph:
        graph.load([{"slug": f"p{n}", "age": n} for n in range(PEOPLE)], type="Person", mode="append")
        graph.optimize()
    return place


@pytest.fixture
def server(uri: str) -> Iterator[Running]:
    with serving(GraphSettings("default", uri), actor_requests=200) as running:
        yield running


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many reads were asked for together, each time."""
    found: list[int] = []
    ask = rounds.ask_together

    def counted(graph: Graph, asked: Sequence[ReadAsk]) -> list[AskedRead | Exception]:
        found.append(len(asked))
        return ask(graph, asked)

    monkeypatch.setattr(rounds, "ask_together", counted)
    return found


def read(http: httpx.Client, slug: object, **more: Any) -> httpx.Response:
    return http.post("/query", json={"query": READ, "params": {"s": slug}, **more})


def test_many_clients_get_their_own_rows(server: Running, together: list[int]) -> None:
    def client(seed: int) -> None:
        draw = random.Random(seed)
        with server.client() as http:
            for _ in range(40):
                number = draw.randrange(PEOPLE + 500)
                answer = read(http, f"p{number}" if draw.random() < 0.9 else number)
                rows = [{"p.slug": f"p{number}", "p.age": number}] if number < PEOPLE else []
                assert answer.status_code in (200, 400)
                assert answer.status_code == 400 or answer.json()["rows"] == rows

    with ThreadPoolExecutor(16) as pool:
        for each in [pool.submit(client, seed) for seed in range(16)]:
            each.result(120)
    assert max(together) > 2
    assert sum(together) > 16 * 40 * 0.8  # the first of them ran alone, until it was known what they are


def test_the_same_answer_in_every_form(server: Running) -> None:
    with server.client() as http:
        first = read(http, "p7")  # by a thread of its own
        again = read(http, "p7")  # in a round
        assert first.json() == again.json()
        assert first.headers["content-type"] == again.headers["content-type"]
        arrow = http.post(
            "/query",
            json={"query": READ, "params": {"s": "p7"}},
            headers={"Accept": "application/vnd.apache.arrow.stream"},
        )
        assert arrow.headers["content-type"] == "application/vnd.apache.arrow.stream"
    with og.connect(server.url) as graph:
        assert graph.query(READ, s="p7").rows() == first.json()["rows"]


def test_each_has_its_own_error(server: Running) -> None:
    with server.client() as http:
        assert read(http, "p1").status_code == 200
        assert read(http, 7).status_code == 400
        assert read(http, "p1", branch="nowhere").status_code == 404
        timeout = {"Omnigraph-Timeout": "0.000000001"}
        late = http.post("/query", json={"query": READ, "params": {"s": "p1"}}, headers=timeout)
        assert late.json()["kind"] == "timeout"
        assert read(http, "p1", snapshot="main").json()["rows"] == [{"p.slug": "p1", "p.age": 1}]


def test_a_long_read_keeps_nobody_waiting(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds hang, as they do when storage does: reads that come then are answered all the same."""
    with server.client() as http:
        assert read(http, "p1").status_code == 200
        open_, hung = threading.Event(), []
        ask = rounds.ask_together

        def hangs(graph: Graph, asked: Sequence[ReadAsk]) -> list[AskedRead | Exception]:
            if len(hung) < 2:
                hung.append(len(asked))
                assert open_.wait(60)
            return ask(graph, asked)

        monkeypatch.setattr(rounds, "ask_together", hangs)
        with ThreadPoolExecutor(2) as pool:
            slow = [pool.submit(lambda: read(server.client(), "p2")) for _ in range(2)]
            until(lambda: len(hung) == 2)
            assert read(http, "p3").json()["rows"] == [{"p.slug": "p3", "p.age": 3}]
            assert http.post("/query", json={"query": COUNT}).json()["rows"] == [{"people": PEOPLE}]
            assert not any(each.done() for each in slow)
            open_.set()
            assert [each.result(60).status_code for each in slow] == [200, 200]


def test_what_is_no_look_up_any_more_is_run_on_its_own(uri: str) -> None:
    """As after a change of the schema. Two begin at once; the others are a round, and are told to go elsewhere."""

    async def asked(graph: Graph) -> list[Any]:
        with ThreadPoolExecutor(2) as pool:
            lookups = rounds.Rounds(pool)
            request: Any = None
            asks = (
                lookups.read(request, graph, ReadAsk(COUNT), lambda rows: (rows.to_json().encode(), None))
                for _ in range(5)
            )
            return list(await asyncio.gather(*asks))

    with og.open(uri) as graph:
        found = asyncio.run(asked(graph))
    counted = (b'[{"people":20000}]', None)
    assert found == [counted, counted, None, None, None]


def test_behind_a_crowd_those_who_come_together_are_one_round(uri: str, together: list[int]) -> None:
    async def asked(graph: Graph) -> None:
        with ThreadPoolExecutor(2) as pool:
            lookups = rounds.Rounds(pool)
            request: Any = None

            async def one(number: int) -> None:
                ask = ReadAsk(READ, params={"s": f"p{number}"})
                found = await lookups.read(request, graph, ask, lambda rows: (rows.to_json().encode(), None))
                assert found == (f'[{{"p.slug":"p{number}","p.age":{number}}}]'.encode(), None)

            for many in (5, 5, 1, 1):
                await asyncio.gather(*(one(number) for number in range(many)))

    with og.open(uri) as graph:
        asyncio.run(asked(graph))
    assert together == [1, 1, 3, 5, 1, 1], "two begin at once, the others wait for them; then all of them wait for all"


def test_a_query_is_forgotten_that_is_no_look_up_any_more(server: Running) -> None:
    lookups = server.app.state.threads.lookups
    query = rounds.NamedQuery("default", COUNT, None)
    lookups.note(query, True)
    found: list[object] = []

    def asks() -> None:
        with server.client() as http:
            found.append(http.post("/query", json={"query": COUNT}).json()["rows"])

    def burst() -> bool:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(16):
                pool.submit(asks)
        return query not in lookups

    until(burst)
    assert all(rows == [{"people": PEOPLE}] for rows in found)


def test_a_client_that_goes_is_noticed(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client() as http:
        assert read(http, "p1").status_code == 200
    begun, tokens = threading.Event(), []
    ask = rounds.ask_together

    def waits(graph: Graph, asked: Sequence[ReadAsk]) -> list[AskedRead | Exception]:
        tokens.extend(one.cancel for one in asked)
        begun.set()
        until(lambda: all(token is not None and token.cancelled for token in tokens))
        return ask(graph, asked)

    monkeypatch.setattr(rounds, "ask_together", waits)

    async def goes() -> None:
        async with httpx.AsyncClient(base_url=server.url) as http:
            asking = asyncio.create_task(http.post("/query", json={"query": READ, "params": {"s": "p1"}}))
            await asyncio.to_thread(begun.wait, 30)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    asyncio.run(goes())
    until(lambda: not server.app.state.threads.rounds._under_way)
    assert len(tokens) == 1


def test_a_lone_read_begins_at_once(server: Running, together: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "PATIENCE", 60.0)
    with server.client() as http:
        for number in range(5):
            assert read(http, f"p{number}").status_code == 200
    assert together == [1] * 4


def test_errors_are_told_as_before(server: Running) -> None:
    """The words of the engine, whichever way a read took."""
    with server.client() as http, og.open(server.app.state.graphs.get("default", None).settings.uri) as graph:
        assert read(http, "p1").status_code == 200
        with pytest.raises(OmniGraphError) as caught:
            graph.query(READ, params={"s": 7})
        assert read(http, 7).json()["error"] == caught.value.message


def test_few_queries_are_remembered_and_no_long_ones() -> None:
    lookups = rounds.Lookups()
    for number in range(2 * rounds.KNOWN_QUERIES):
        lookups.note(rounds.NamedQuery("g", f"query q{number}", None), True)
    assert len(lookups._known) == rounds.KNOWN_QUERIES
    long = rounds.NamedQuery("g", "x" * (rounds.LONGEST_TEXT + 1), None)
    lookups.note(long, True)
    assert long not in lookups
