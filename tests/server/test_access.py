"""Who gets in and who may do what: tokens, policy, admission, what is told and what is not."""

from __future__ import annotations

import hmac
import json
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.server.bearer_tokens import BearerTokens, hashed, read_tokens
from omnigraph.server.served import refuse_contradictions
from omnigraph.server.server_settings import GraphSettings, ServerSettings, limits_from, parse_bind
from tests.policy import world
from tests.server.graphs import ALL_PEOPLE, POLICY, TOKENS, make
from tests.server.running import Running, serving

ROOT = Path(__file__).resolve().parents[2]
ADA, BOB, EVE = (TOKENS[name] for name in ("act-ada", "act-bob", "act-eve"))
INSERT = "query m($s: String) { insert Person { slug: $s } }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    uri = make(folder)
    graph = GraphSettings("default", uri, str(folder / "policy.yaml"), str(folder / "queries.yaml"))
    with serving(graph, tokens=TOKENS) as running:
        yield running


def status(server: Running, token: str | None, method: str, path: str, body: Any = None) -> int:
    with server.client(token) as http:
        return http.request(method, path, json=body).status_code


def test_without_a_valid_token_nobody_gets_in(server: Running) -> None:
    for token in (None, "wrong", ADA[:-1], ADA + "x", ADA.upper(), ""):
        with server.client(token) as http:
            refused = http.post("/query", json={"query": ALL_PEOPLE})
            assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
            assert refused.headers["WWW-Authenticate"] == "Bearer"
            assert http.get("/metrics").status_code == 401
            assert http.get("/graphs/other/snapshot").status_code == 401
            assert [http.get(path).status_code for path in ("/healthz", "/readyz", "/openapi.json")] == [200] * 3
    basic = httpx.get(server.url + "/snapshot", headers={"Authorization": f"Basic {ADA}"})
    assert basic.status_code == 401


def test_the_actor_comes_from_the_token_alone(server: Running) -> None:
    with server.client(BOB) as http:
        http.post("/branches", json={"name": "bobs", "actor": "act-ada"})
        body = {"query": INSERT, "params": {"s": "x"}, "branch": "bobs", "actor": "act-ada", "actor_id": "act-ada"}
        done = http.post("/mutate?actor=act-ada", json=body, headers={"X-Actor": "act-ada"}).json()
    assert (done["actor_id"], done["commit"]["actor_id"]) == ("act-bob", "act-bob")


def test_policy_over_http(server: Running) -> None:
    write = {"query": INSERT, "params": {"s": "y"}}
    assert status(server, BOB, "POST", "/query", {"query": ALL_PEOPLE}) == 200
    assert status(server, BOB, "POST", "/mutate", write) == 403
    assert status(server, BOB, "POST", "/export", {}) == 403
    assert status(server, BOB, "GET", "/graphs") == 403
    assert status(server, ADA, "GET", "/graphs") == 200
    assert status(server, BOB, "POST", "/reload") == 403
    assert status(server, EVE, "POST", "/query", {"query": ALL_PEOPLE}) == 403
    assert status(server, EVE, "GET", "/branches") == 403
    assert status(server, BOB, "POST", "/load/ndjson?mode=append") == 403


def test_a_forbidden_stored_query_looks_like_one_that_is_not_there(server: Running) -> None:
    def told(name: str) -> tuple[int, str]:
        with server.client(BOB) as http:
            response = http.post(f"/queries/{name}", json={})
            return response.status_code, response.json()["error"].replace(name, "NAME")

    assert told("people") == told("nothing") == told("secret")
    assert told("people")[0] == 404
    assert status(server, ADA, "POST", "/queries/people", {"params": {"least": 1}}) == 200


def test_the_second_gate_of_stored_queries(tmp_path: Path) -> None:
    """`invoke_query` alone is not enough: the query still needs read, or change, on its branch."""
    uri = make(tmp_path)
    rules = POLICY.replace("actions: [read] }", "actions: [read, invoke_query] }")
    (tmp_path / "policy.yaml").write_text(rules)
    graph = GraphSettings("default", uri, str(tmp_path / "policy.yaml"), str(tmp_path / "queries"))
    with serving(graph, tokens=TOKENS) as running:
        assert status(running, BOB, "POST", "/queries/people", {"params": {"least": 1}}) == 200
        assert status(running, BOB, "POST", "/queries/hire", {"params": {"slug": "z"}}) == 403
        assert status(running, EVE, "POST", "/queries/people", {"params": {"least": 1}}) == 404
        # policies and queries are read again without a restart; what is broken changes nothing
        (tmp_path / "policy.yaml").write_text("version: 9")
        assert status(running, ADA, "POST", "/reload") == 400
        assert status(running, BOB, "POST", "/query", {"query": ALL_PEOPLE}) == 200
        (tmp_path / "policy.yaml").write_text(POLICY)
        (tmp_path / "queries" / "more.gq").write_text("query more() { match { $p: Person } return { $p.slug } }")
        assert status(running, ADA, "POST", "/reload") == 200
        assert status(running, BOB, "POST", "/queries/people", {"params": {"least": 1}}) == 404
        assert status(running, ADA, "POST", "/queries/more") == 200


def test_tokens_without_a_policy_allow_reading_only(tmp_path: Path) -> None:
    uri = make(tmp_path)
    with serving(GraphSettings("default", uri), tokens=TOKENS) as running:
        assert status(running, EVE, "POST", "/query", {"query": ALL_PEOPLE}) == 200
        assert status(running, EVE, "POST", "/mutate", {"query": INSERT, "params": {"s": "q"}}) == 403
        assert status(running, EVE, "POST", "/export", {}) == 403
        assert status(running, EVE, "GET", "/graphs") == 403


NO_ONE_ACTION = {
    ("GET", "/healthz"),  # for everybody
    ("GET", "/readyz"),
    ("GET", "/metrics"),  # for whoever has a token
    ("GET", "/branches"),  # lists what may be read
    ("POST", "/queries/*"),  # two gates; a test of its own
}


def _template(path: str) -> str:
    """A path with a star for each of its parts that stands for something."""
    plain = path.partition("?")[0].replace("nothing-like-it", "{name}")
    return re.sub(r"\{[^}]*\}", "*", plain)


def test_one_matrix_for_the_server_too(tmp_path: Path) -> None:
    """The same actors as for Python and the command line, over HTTP."""
    uri = world.make(tmp_path)
    tokens = {grant.actor: f"token-{grant.actor}" for grant in world.GRANTS}
    read, change = {"query": world.READ}, {"query": world.NO_CHANGE}
    operations = [
        ("POST", "/query", lambda b: {**read, "branch": b}, ("read", "branch")),
        ("POST", "/explain", lambda b: {**read, "branch": b}, ("read", "branch")),
        ("GET", "/snapshot?branch={b}", None, ("read", "branch")),
        ("GET", "/commits?branch={b}", None, ("read", "branch")),
        ("GET", "/changes?branch={b}", None, ("read", "branch")),
        ("GET", "/schema?branch={b}", None, ("read", "branch")),
        ("POST", "/diff", lambda b: {"from": b, "to": b}, ("read", "branch")),
        ("POST", "/export", lambda b: {"branch": b}, ("export", "branch")),
        ("POST", "/mutate", lambda b: {**change, "branch": b}, ("change", "branch")),
        ("POST", "/load", lambda b: {"data": "", "mode": "merge", "branch": b}, ("change", "branch")),
        ("POST", "/load/ndjson?mode=merge&branch={b}", None, ("change", "branch")),
        ("POST", "/branches/merge", lambda b: {"source": "same", "target": b}, ("branch_merge", "branch")),
        ("POST", "/branches", lambda b: {"name": world.fresh(), "from": b}, ("branch_create", "elsewhere")),
        ("DELETE", "/branches/nothing-like-it", None, ("branch_delete", "elsewhere")),
        ("POST", "/schema/apply", lambda b: {"schema_source": world.SCHEMA}, ("schema_apply", "main")),
        ("POST", "/schema/apply", lambda b: {"schema_source": "x", "branch": b}, ("schema_apply", "branch")),
        ("POST", "/schema/plan", lambda b: {"schema_source": world.SCHEMA, "branch": b}, ("read", "branch")),
        ("POST", "/embed", lambda b: {"branch": b}, ("change", "branch")),
        ("POST", "/embed", lambda b: {"branch": b, "dry_run": True}, ("read", "branch")),
        ("POST", "/revert", lambda b: {"commit": b, "branch": b, "dry_run": True}, ("change", "branch")),
        ("POST", "/restore", lambda b: {"to": b, "branch": b, "dry_run": True}, ("change", "branch")),
        ("POST", "/cherry-pick", lambda b: {"commit": b, "into": b, "dry_run": True}, ("change", "branch")),
        ("GET", "/tags", None, ("read", "main")),
        ("GET", "/recoveries", None, ("read", "main")),
        ("POST", "/tags", lambda b: {"name": world.fresh("tag"), "target": b}, ("admin", None)),
        ("DELETE", "/tags/nothing-like-it", None, ("admin", None)),
        ("POST", "/optimize", lambda b: {"branch": b}, ("admin", None)),
        ("POST", "/ensure-indices", lambda b: {"branch": b}, ("admin", None)),
        ("POST", "/cleanup", lambda b: {"keep_versions": 10}, ("admin", None)),
        ("POST", "/verify", lambda b: {}, ("admin", None)),
        ("POST", "/reload", None, ("admin", None)),
        ("GET", "/graphs", None, ("graph_list", None)),
        ("GET", "/entity?type=Person&id=ada&branch={b}", None, ("read", "branch")),
        ("GET", "/blob?type=Person&id=ada&property=slug&branch={b}", None, ("read", "branch")),
        ("HEAD", "/blob?type=Person&id=ada&property=slug&branch={b}", None, ("read", "branch")),
        ("GET", "/commits/{b}", None, ("read", "branch")),
        ("GET", "/commits/{b}/changes", None, ("read", "branch")),
        ("GET", "/queries", None, ("read", "main")),
        ("POST", "/read", lambda b: {"query_source": world.READ, "branch": b}, ("read", "branch")),
        ("POST", "/change", lambda b: {"query_source": world.NO_CHANGE, "branch": b}, ("change", "branch")),
        ("POST", "/ingest", lambda b: {"data": "", "mode": "merge", "branch": b}, ("change", "branch")),
    ]
    described = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    asked = {(method, _template(path)) for method, path, _, _ in operations}
    for path, methods in described.items():
        for method in methods:
            short = path.removeprefix("/graphs/{graph_id}") or path
            assert (method.upper(), _template(short)) in asked | NO_ONE_ACTION, "a route that the matrix leaves out"
    wrong = []
    with (
        serving(GraphSettings("default", uri, str(tmp_path / "policy.yaml")), tokens=tokens) as running,
        httpx.Client(base_url=running.url, timeout=60) as http,
    ):
        for method, path, body, (action, place) in operations:
            for branch in ("main", "work"):
                for grant in world.GRANTS:
                    where = branch if place == "branch" else place
                    answer = http.request(
                        method,
                        path.replace("{b}", branch),
                        json=body(branch) if body else None,
                        headers={"Authorization": f"Bearer {tokens[grant.actor]}"},
                    )
                    assert answer.status_code < 500, answer.text
                    if (answer.status_code != 403) != grant.covers(action, where):
                        wrong.append((method, path, branch, grant.actor, answer.status_code))
    assert wrong == []


def test_admission_counts_what_one_actor_has_under_way(tmp_path: Path) -> None:
    uri = make(tmp_path)
    graph = GraphSettings("default", uri, str(tmp_path / "policy.yaml"))
    with serving(graph, tokens=TOKENS, actor_requests=2, actor_bytes=1000) as running:
        admission = running.app.state.admission
        held = [admission.enter("act-ada"), admission.enter("act-ada")]
        with running.client(ADA) as http:
            refused = http.post("/query", json={"query": ALL_PEOPLE})
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
            assert int(refused.headers["Retry-After"]) >= 1
            assert status(running, BOB, "POST", "/query", {"query": ALL_PEOPLE}) == 200
            assert status(running, EVE, "POST", "/query", {"query": ALL_PEOPLE}) == 403  # asked before it is counted
            held.pop().release()
            assert http.post("/query", json={"query": ALL_PEOPLE}).status_code == 200
            big = http.post("/query", json={"query": ALL_PEOPLE + " " * 2000})
            assert (big.status_code, "bytes" in big.json()["error"]) == (429, True)
        held.pop().release()
        assert not admission._under_way


def test_the_time_of_a_wrong_token_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is sent, as much is compared: hashes of one length, all of them, by a comparison that does not stop."""
    known = hashed(TOKENS)
    compared: list[tuple[int, int]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr("omnigraph.server.bearer_tokens.hmac", SimpleNamespace(compare_digest=compare))
    seen = []
    for token in (ADA, EVE, ADA[:-1], ADA[:1], ADA + "x", "", "x" * 10_000, "é"):
        compared.clear()
        assert known.actor(token) == {ADA: "act-ada", EVE: "act-eve"}.get(token)
        seen.append(list(compared))
    assert seen == [[(32, 32)] * len(TOKENS)] * len(seen)


def test_no_token_is_told_or_kept(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="omnigraph"):
        status(server, ADA, "POST", "/query", {"query": "query broken("})
        status(server, ADA[:-3] + "zzz", "GET", "/snapshot")
        with server.client(ADA) as http:
            metrics = http.get("/metrics").text
    told = caplog.text + metrics + "".join(str(vars(record)) for record in caplog.records)
    assert "request" in told
    for token in TOKENS.values():
        assert token[:10] not in told
        assert token not in repr(server.app.state.settings) + repr(hashed(TOKENS))


def test_what_a_server_refuses_to_start_with(tmp_path: Path) -> None:
    graph = GraphSettings("default", "nowhere")
    ruled = GraphSettings("default", "nowhere", policy="policy.yaml")
    some, none = hashed(TOKENS), BearerTokens(())
    for settings, tokens, told in (
        (ServerSettings((graph,)), none, "no tokens are set"),
        (ServerSettings((ruled,)), none, "a policy allows things to actors"),
        (ServerSettings((ruled,), unauthenticated=True), none, "a policy allows things to actors"),
        (ServerSettings((graph,), unauthenticated=True), some, "nobody needs one"),
        (ServerSettings((graph, graph)), some, "an id of its own"),
        (ServerSettings(()), some, "an id of its own"),
    ):
        with pytest.raises(BadRequest, match=told):
            refuse_contradictions(settings, tokens)
    refuse_contradictions(ServerSettings((graph,), unauthenticated=True), none)
    refuse_contradictions(ServerSettings((ruled,)), some)


def test_where_tokens_come_from(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text('{"ada": "secret-a", "bob": "secret-b"}')
    of_file = read_tokens({"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file)})
    assert (of_file.actor("secret-b"), of_file.actor("secret")) == ("bob", None)
    assert read_tokens({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": file.read_text()}) == of_file
    assert read_tokens({"OMNIGRAPH_SERVER_BEARER_TOKEN": "x"}).actor("x") == "default"
    assert not read_tokens({})
    for broken in ("secret-broken", "[]", '{"a": 1}', '{"a": ""}', '{"a": "x", "b": "x"}', '{"a": " x"}'):
        with pytest.raises(BadRequest) as caught:
            read_tokens({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": broken})
        assert "secret-broken" not in caught.value.message
    with pytest.raises(BadRequest, match="contradict"):
        read_tokens({"OMNIGRAPH_SERVER_BEARER_TOKEN": "x", "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": "{}"})


def test_settings_are_read_and_travel() -> None:
    assert limits_from({"OMNIGRAPH_PER_ACTOR_BYTES_MAX": "2g", "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "3"}) == {
        "actor_bytes": 2 << 30,
        "actor_requests": 3,
    }
    with pytest.raises(BadRequest, match="OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX"):
        limits_from({"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "0"})
    assert parse_bind("[::1]:80") == ("::1", 80)
    with pytest.raises(BadRequest):
        parse_bind("localhost")
    settings = ServerSettings((GraphSettings("a", "b", "c"),), workers=3)
    assert ServerSettings.from_json(settings.to_json()) == settings


def test_a_graph_that_cannot_be_served_is_set_apart(tmp_path: Path) -> None:
    uri = make(tmp_path)
    good = GraphSettings("good", uri, str(tmp_path / "policy.yaml"))
    bad = GraphSettings("bad", str(tmp_path / "nothing.omni"), str(tmp_path / "policy.yaml"))
    with serving(good, bad, tokens=TOKENS, server_policy=str(tmp_path / "policy.yaml")) as running:
        assert status(running, ADA, "GET", "/graphs/good/snapshot") == 200
        assert status(running, ADA, "GET", "/graphs/bad/snapshot") == 503
        assert status(running, BOB, "GET", "/graphs/bad/snapshot") == 404
        assert status(running, ADA, "GET", "/snapshot") == 404  # no short paths with several graphs
        assert status(running, None, "GET", "/readyz") == 503
        with running.client(ADA) as http:
            assert [graph["status"] for graph in http.get("/graphs").json()["graphs"]] == ["quarantined", "served"]
        og.init(bad.uri, schema="node A { k: String @key }").close()
        assert status(running, ADA, "POST", "/reload") == 200
        assert status(running, ADA, "GET", "/graphs/bad/snapshot") == 200


def test_readers_are_answered_while_writers_wait(server: Running) -> None:
    """Engine calls do not hold up the event loop, nor writers the readers."""
    stop = threading.Event()

    def write(number: int) -> None:
        with server.client(ADA) as http:
            for turn in range(3):
                body = {"query": INSERT, "params": {"s": f"w{number}-{turn}"}}
                assert http.post("/mutate", json=body).status_code == 200
        stop.set()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    answered = 0
    with server.client(BOB) as http:
        while not stop.is_set():
            assert http.get("/healthz").status_code == 200
            assert http.post("/query", json={"query": ALL_PEOPLE}).status_code == 200
            answered += 1
    for writer in writers:
        writer.join()
    assert answered
