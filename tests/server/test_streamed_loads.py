"""Loads whose records come in while they are decoded: nothing is loaded twice, half, or for somebody who went."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.server.calls import threads
from omnigraph.server.calls.growing_file import GrowingFile
from omnigraph.server.routes import data_routes
from omnigraph.server.server_settings import GraphSettings
from omnigraph.write.decode import line_blocks
from tests.server.running import Running, serving, until

COUNT = "query q() { match { $p: Person } return { count($p) as people } }"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """One that begins to load when some kilobytes have come."""
    monkeypatch.setattr(threads, "_WRITTEN_AT_ONCE", 1 << 10)
    monkeypatch.setattr(data_routes, "EARLY_BYTES", 4 << 10)
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 4 << 10)
    place = tmp_path / "g.omni"
    og.init(place, schema="node Person { slug: String @key }").close()
    with serving(GraphSettings("default", str(place))) as running:
        yield running


def people(first: int, last: int) -> bytes:
    return b"".join(b'{"type": "Person", "data": {"slug": "p%d"}}\n' % number for number in range(first, last))


def early(server: Running) -> int:
    """Loads that are under way before their records have come."""
    return int(server.app.state.threads._early_loads)


def count(server: Running) -> int:
    with server.client() as http:
        return int(http.post("/query", json={"query": COUNT}).json()["rows"][0]["people"])


def test_a_load_begins_before_its_records_are_all_there(server: Running) -> None:
    begun: list[int] = []

    def records() -> Iterator[bytes]:
        yield people(0, 40_000)
        until(lambda: early(server) == 1)
        begun.append(early(server))
        yield people(40_000, 40_100)

    with server.client() as http:
        answer = http.post("/load/ndjson?mode=append", content=records())
    assert answer.status_code == 200, answer.text
    assert begun == [1]
    assert answer.json()["tables"] == [{"table_key": "node:Person", "rows_loaded": 40_100}]
    assert count(server) == 40_100
    assert early(server) == 0


def test_more_of_them_than_may_begin_early_are_loaded_too(server: Running) -> None:
    go_on = threading.Event()
    answers: list[httpx.Response] = []

    def load(number: int) -> None:
        def records() -> Iterator[bytes]:
            yield people(number * 1000, number * 1000 + 400)
            assert go_on.wait(60)
            yield people(number * 1000 + 400, number * 1000 + 500)

        with server.client() as http:
            answers.append(http.post("/load/ndjson?mode=append", content=records()))

    loads = [threading.Thread(target=load, args=(number,)) for number in range(4)]
    for each in loads:
        each.start()
    until(lambda: early(server) == threads.EARLY_LOADS)
    with server.client() as http:  # who only writes a little is kept by none of them
        done = http.post("/mutate", json={"query": 'query m() { insert Person { slug: "quick" } }'})
        assert done.status_code == 200
    go_on.set()
    for each in loads:
        each.join(60)
    assert [answer.status_code for answer in answers] == [200] * 4, [answer.text for answer in answers]
    assert count(server) == 4 * 500 + 1


def test_a_client_that_goes_leaves_nothing_behind(server: Running) -> None:
    place = httpx.URL(server.url)
    with socket.create_connection((place.host, place.port or 80)) as bare:
        body = people(0, 1000)
        head = b"POST /load/ndjson?mode=append HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (len(body) * 2)
        bare.sendall(head + body)
        until(lambda: early(server) == 1)
    until(lambda: early(server) == 0)
    assert count(server) == 0
    with server.client() as http:
        assert http.post("/load/ndjson?mode=append", content=people(0, 1000)).status_code == 200
    assert count(server) == 1000


def test_what_is_wrong_with_an_early_record_is_told_at_the_end(server: Running) -> None:
    with server.client() as http:
        answer = http.post("/load/ndjson?mode=append", content=b'{"type": "Nobody"}\n' + people(0, 2000))
        assert answer.status_code == 400
        assert "Nobody" in answer.text
    assert count(server) == 0
    assert early(server) == 0


def test_a_branch_that_a_load_makes_is_made_when_all_has_come(server: Running) -> None:
    def records() -> Iterator[bytes]:
        yield people(0, 1000)
        with server.client() as http:
            assert [each["name"] for each in http.get("/branches").json()["branches"]] == ["main"]
        yield people(1000, 1100)

    with server.client() as http:
        answer = http.post("/load/ndjson?mode=append&branch=b&from=main", content=records())
    assert answer.json()["branch_created"] is True


def test_a_reader_waits_for_what_has_not_come() -> None:
    with GrowingFile(in_memory=4) as body:
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.extend(iter(lambda: body.read(3), b"")))
        reader.start()
        for piece in (b"ab", b"cdefg", b"h"):
            body.write(piece)
        until(lambda: len(found) == 2)
        body.end()
        reader.join(30)
        assert found == [b"abc", b"def", b"gh"]
        body.seek(1)
        assert body.read() == b"bcdefgh"


def test_a_reader_hears_that_there_is_no_more() -> None:
    with GrowingFile() as body:
        body.write(b"ab")
        body.break_off(BadRequest("gone"))
        with pytest.raises(BadRequest, match="gone"):
            body.read(1)
