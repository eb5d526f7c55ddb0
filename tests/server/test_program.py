"""The program `omnigraph-server` in processes of its own: starting, stopping, reloading, being killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import omnigraph as og
from omnigraph.server.launch import listen, main, read_arguments
from tests.server.graphs import ALL_PEOPLE, POLICY, SECRET, TOKENS, make
from tests.server.running import Process, process, start, until

INSERT = "query m($s: String) { insert Person { slug: $s } }"


def client(url: str, actor: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKENS[actor]}"}, timeout=60)


def test_what_the_program_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FILE", "JSON"):
        monkeypatch.delenv(f"OMNIGRAPH_SERVER_BEARER_TOKENS_{name}", raising=False)
    uri = str(tmp_path / "nothing.omni")
    for words, told in (
        ([], "no graph to serve"),
        ([uri], "no tokens are set"),
        ([uri, "--policy", "p.yaml", "--unauthenticated"], "without tokens the server knows none"),
        ([uri, "--unauthenticated", "--bind", "nonsense"], "no address to listen on"),
        ([uri, "--unauthenticated", "--workers", "0"], "--workers"),
        ([uri, "--unauthenticated"], "there is no graph at"),
    ):
        assert main(words) == 1
        assert told in capsys.readouterr().err
    monkeypatch.setenv("OMNIGRAPH_TARGET_URI", "s3://other/graph")
    assert main([uri, "--unauthenticated"]) == 1
    assert "leave out one" in capsys.readouterr().err
    told = read_arguments([], {"OMNIGRAPH_TARGET_URI": "x", "OMNIGRAPH_BIND": "0.0.0.0:1", "OMNIGRAPH_POLICY": "p"})
    assert (told.graphs[0].uri, told.graphs[0].policy, told.host, told.port) == ("x", "p", "0.0.0.0", 1)


def test_the_log_is_json_before_anything_is_served(tmp_path: Path) -> None:
    started = start(make(tmp_path), "--unauthenticated", "--queries", tmp_path / "nowhere.gq")
    _, told = started.communicate(timeout=90)
    *lines, last = told.splitlines()
    assert (started.returncode, last.startswith("error: graph `default`")) == (1, True), told
    assert [json.loads(line)["level"] for line in lines] == ["error"]


def test_connections_send_at_once_and_a_taken_address_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = make(tmp_path)
    with listen("127.0.0.1", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            taken, _ = listener.accept()
            with taken:
                assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        for workers in ("1", "2"):
            assert main([uri, "--unauthenticated", "--workers", workers, "--bind", f"127.0.0.1:{port}"]) == 1
            assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


def test_it_logs_reloads_and_drains(tmp_path: Path) -> None:
    uri = make(tmp_path)
    policy = tmp_path / "policy.yaml"
    (tmp_path / "tokens.json").write_text(json.dumps(TOKENS))
    env = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tmp_path / "tokens.json")}
    with process(uri, "--policy", policy, folder=tmp_path, env=env) as running, client(running.url, "act-bob") as bob:
        answer = bob.post("/query", json={"query": ALL_PEOPLE}, headers={"X-Request-Id": "mine-7"})
        assert answer.status_code == 200
        assert bob.post("/export", json={}).status_code == 403
        policy.write_text(POLICY.replace("actions: [read] }", "actions: [read, export] }"))
        running.process.send_signal(signal.SIGHUP)
        until(lambda: bob.post("/export", json={}).status_code == 200)
        policy.write_text("broken: [")
        running.process.send_signal(signal.SIGHUP)
        until(lambda: any("nothing was reloaded" in line["message"] for line in running.lines()))
        assert bob.post("/export", json={}).status_code == 200

        def slow() -> Iterator[bytes]:
            yield b'{"type": "Person", "data": {"slug": "drained"}}\n'
            running.process.send_signal(signal.SIGTERM)
            time.sleep(1)
            yield b'{"type": "Person", "data": {"slug": "dry"}}\n'

        with (
            client(running.url, "act-ada") as ada,
            ada.stream("GET", "/changes?since=now", headers={"Accept": "text/event-stream"}) as feed,
        ):
            assert next(feed.iter_lines()).startswith("retry")
            started = time.monotonic()
            loaded = ada.post("/load/ndjson?mode=append", content=slow())
        assert loaded.status_code == 200, loaded.text
        assert running.process.wait(timeout=60) in (0, -signal.SIGTERM)
        assert time.monotonic() - started < 25  # an open feed holds nothing up
        lines = running.lines()
        mine = next(line for line in lines if line.get("request_id") == "mine-7")
        assert (mine["status"], mine["actor"], mine["route"]) == (200, "act-bob", "/graphs/{graph_id}/query")
        assert not any(token[:8] in running.log.read_text() for token in TOKENS.values())
    with og.open(uri) as graph:
        assert graph.entity("Person", "dry") is not None


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    uri = make(tmp_path)
    acknowledged: list[str] = []
    with process(uri, "--unauthenticated", folder=tmp_path) as running:

        def write(number: int) -> None:
            with httpx.Client(base_url=running.url, timeout=60) as http:
                for turn in range(1000):
                    slug = f"w{number}-{turn}"
                    try:
                        answer = http.post("/mutate", json={"query": INSERT, "params": {"s": slug}})
                    except httpx.HTTPError:
                        return
                    assert answer.status_code == 200, answer.text
                    acknowledged.append(slug)

        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for writer in writers:
            writer.start()
        until(lambda: len(acknowledged) >= 12)
        running.process.kill()
        for writer in writers:
            writer.join()
    with (
        process(uri, "--unauthenticated", folder=tmp_path) as again,
        httpx.Client(base_url=again.url, timeout=60) as http,
    ):
        rows = http.post("/query", json={"query": ALL_PEOPLE}).json()["rows"]
        there = {row["p.slug"] for row in rows}
        assert set(acknowledged) <= there
        assert http.post("/mutate", json={"query": INSERT, "params": {"s": "after"}}).status_code == 200


def test_a_worker_that_dies_does_not_disturb_the_others(tmp_path: Path) -> None:
    uri = make(tmp_path)
    queries = tmp_path / "queries"
    with process(uri, "--unauthenticated", "--queries", queries, "--workers", 2, folder=tmp_path) as running:
        until(lambda: len(_workers(running.process.pid)) >= 2)
        workers = _workers(running.process.pid)
        # each connection stays with the worker that took it
        connections = [httpx.Client(base_url=running.url, timeout=60) for _ in range(12)]
        ask = {"query": ALL_PEOPLE}
        assert {http.post("/query", json=ask).status_code for http in connections} == {200}

        def known(name: str) -> list[bool]:
            return [http.post(f"/queries/{name}").status_code == 200 for http in connections]

        (queries / "new.gq").write_text(SECRET.replace("secret", "fresh"))
        assert connections[0].post("/reload").status_code == 200
        assert all(known("fresh"))  # whichever worker was asked to reload, and whichever is asked now
        (queries / "new.gq").write_text(SECRET.replace("secret", "fresher"))
        running.process.send_signal(signal.SIGHUP)
        until(lambda: all(known("fresher")))
        assert not any(known("fresh"))
        assert _workers(running.process.pid) == workers  # none was replaced for it
        os.kill(min(workers, key=_open_sockets), signal.SIGKILL)  # the other has some of the connections
        answered = 0
        for http in connections:
            try:
                answered += http.post("/query", json=ask).status_code == 200
            except httpx.HTTPError:
                continue  # it was with the one that died
        assert answered
        written = httpx.post(f"{running.url}/mutate", json={"query": INSERT, "params": {"s": "alive"}}, timeout=60)
        assert written.status_code == 200
        until(lambda: len(_workers(running.process.pid)) == 2)
        assert "omnigraph_requests_total" in httpx.get(f"{running.url}/metrics", timeout=60).text
        assert _loaded_while_it_stops(running) == 200


def test_workers_have_even_shares_of_the_connections(tmp_path: Path) -> None:
    with process(make(tmp_path), "--unauthenticated", "--workers", 2, folder=tmp_path) as running:
        until(lambda: len(_workers(running.process.pid)) >= 2)
        workers = _workers(running.process.pid)
        until(lambda: all(_listens(each, running.url) for each in workers))
        place = httpx.URL(running.url)
        before = [_open_sockets(each) for each in workers]
        opened = [socket.create_connection((place.host, place.port or 80), timeout=10) for _ in range(12)]
        until(lambda: sum(map(_open_sockets, workers)) == sum(before) + 12)
        shares = [_open_sockets(each) - had for each, had in zip(workers, before, strict=True)]
        assert min(shares) >= 4, shares
        for each in opened:
            each.close()
        until(lambda: [_open_sockets(each) for each in workers] == before)
        with httpx.Client(base_url=running.url, timeout=60) as http:
            assert http.get("/healthz").status_code == 200


def _listens(worker: int, url: str) -> bool:
    """Whether a worker waits for connections: it has an epoll with the socket of the server in it."""
    number = next(
        (line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines() if _is_listener(line, url)), None
    )
    for file in Path(f"/proc/{worker}/fd").iterdir():
        if os.readlink(file) == f"socket:[{number}]":
            watched = Path(f"/proc/{worker}/fdinfo")
            return any(f"tfd: {int(file.name):8d}" in each.read_text() for each in watched.iterdir())
    return False


def _is_listener(line: str, url: str) -> bool:
    fields = line.split()
    return fields[3] == "0A" and fields[1].endswith(f":{httpx.URL(url).port:04X}")


def _loaded_while_it_stops(running: Process) -> int:
    """The status of a load that is under way when the server is told to stop; whoever comes then is turned away."""
    place = httpx.URL(running.url)

    def refused() -> bool:
        try:
            socket.create_connection((place.host, place.port or 80), timeout=10).close()
        except ConnectionRefusedError:
            return True
        return False

    def records() -> Iterator[bytes]:
        yield b'{"type": "Person", "data": {"slug": "drained"}}\n'
        running.process.send_signal(signal.SIGTERM)
        until(refused, seconds=20)
        assert running.process.poll() is None
        yield b'{"type": "Person", "data": {"slug": "dry"}}\n'

    return httpx.post(f"{running.url}/load/ndjson?mode=append", content=records(), timeout=60).status_code


def _open_sockets(process: int) -> int:
    return sum(os.readlink(file).startswith("socket:") for file in Path(f"/proc/{process}/fd").iterdir())


def _workers(parent: int) -> list[int]:
    """The processes below the server that serve: they were started by spawn."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(status[1]) == parent and status[0] != "Z" and b"spawn_main" in command:
            found.append(int(entry.name))
    return found
