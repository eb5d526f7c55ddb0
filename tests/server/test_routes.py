"""Every route with its shape, its errors and its statuses, over real HTTP."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.server.metrics import Metrics
from omnigraph.server.server_settings import GraphSettings
from tests.server.graphs import ALL_PEOPLE, SCHEMA, make
from tests.server.running import Running, serving, until

ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    uri = make(folder)
    with serving(GraphSettings("default", uri, queries=str(folder / "queries.yaml")), body_seconds=2) as running:
        yield running


@pytest.fixture(scope="module")
def http(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def post(http: httpx.Client, path: str, body: Any, status: int = 200, **more: Any) -> Any:
    response = http.post(path, json=body, **more)
    assert response.status_code == status, response.text
    return response.json()


def insert(slug: str) -> dict[str, Any]:
    return {"query": "query m($s: String) { insert Person { slug: $s } }", "params": {"s": slug}}


def test_health_and_readiness(http: httpx.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok"}
    assert http.get("/readyz").json() == {"status": "ready"}
    assert http.get("/graphs").json() == {"graphs": [{"id": "default", "status": "served"}], "revision": None}


def test_query(http: httpx.Client) -> None:
    body = post(http, "/query", {"query": ALL_PEOPLE, "branch": "main"})
    assert set(body) == {"query_name", "target", "columns", "row_count", "rows", "graph_commit_id"}
    assert body["query_name"] == "q"
    assert body["columns"][2] == {"name": "p.born", "type": "Date", "nullable": True}
    assert body["rows"][0] == {"p.slug": "ada", "p.age": 36, "p.born": "1815-12-10"}
    assert post(http, "/graphs/default/query", {"query": ALL_PEOPLE, "snapshot": 1})["rows"] == []
    at = {"query": ALL_PEOPLE, "snapshot": body["graph_commit_id"]}
    assert post(http, "/query", at)["rows"][:1] == body["rows"][:1]


def test_schema(http: httpx.Client) -> None:
    found = http.get("/schema").json()
    assert found["schema_source"] == SCHEMA
    assert post(http, "/schema/plan", {"schema_source": SCHEMA})["steps"] == []
    applied = post(http, "/schema/apply", {"schema_source": SCHEMA})
    assert (applied["applied"], applied["supported"], applied["step_count"]) == (False, True, 0)
    assert {"uri", "steps", "manifest_version"} <= set(applied)


def test_a_mutation_is_no_query_and_a_query_no_mutation(http: httpx.Client) -> None:
    assert "is a mutation" in post(http, "/query", insert("x"), 400)["error"]
    post(http, "/mutate", {"query": ALL_PEOPLE}, 400)


def test_arrow_on_the_wire(http: httpx.Client) -> None:
    response = http.post("/query", json={"query": ALL_PEOPLE}, headers={"Accept": ARROW})
    assert response.headers["content-type"] == ARROW
    stream = pa.ipc.open_stream(response.content)
    assert json.loads(stream.schema.metadata[b"omnigraph"])["query_name"] == "q"
    assert stream.read_all().column("p.slug").to_pylist()[0] == "ada"


def test_mutate_with_a_condition(http: httpx.Client) -> None:
    done = post(http, "/mutate", insert("carl"))
    assert (done["affected_nodes"], done["query_name"], done["branch"]) == (1, "m", "main")
    head = done["commit"]["graph_commit_id"]
    header = {"Omnigraph-If-Graph-Commit": head}
    later = post(http, "/mutate", insert("cleo"), headers=header)["commit"]["graph_commit_id"]
    refused = post(http, "/mutate", insert("cora"), 412, headers=header)
    assert refused["code"] == "precondition_failed"
    assert later == http.get("/snapshot").json()["graph_commit_id"]


def test_load_and_its_violations(http: httpx.Client) -> None:
    line = '{"type": "Person", "data": {"slug": "dora"}}'
    done = post(http, "/load", {"data": line, "mode": "append"})
    assert done["tables"] == [{"table_key": "node:Person", "rows_loaded": 1}]
    assert done["uri"] == "default"
    again = post(http, "/load", {"data": line, "mode": "append"}, 409)
    assert again["code"] == "conflict"
    assert again["violations"][0]["row_id"] == "dora"
    rows = [{"type": "Person", "data": {"slug": 3}}, {"type": "Nobody", "data": {}}]
    broken = post(http, "/load", {"data": rows, "mode": "append"}, 400)
    assert len(broken["violations"]) == 2
    forked = post(http, "/load", {"data": line, "mode": "merge", "branch": "forked", "from": "main"})
    assert (forked["branch_created"], forked["base_branch"]) == (True, "main")


def test_a_path_is_no_data(http: httpx.Client, folder: Path) -> None:
    """What a client sends is never taken for the name of a file of the server."""
    file = folder / "there.jsonl"
    file.write_text('{"type": "Person", "data": {"slug": "leak"}}')
    post(http, "/load", {"data": str(file), "mode": "append"}, 400)
    schema = folder / "there.pg"
    schema.write_text(SCHEMA)
    post(http, "/schema/plan", {"schema_source": str(schema)}, 400)


def test_a_streamed_load(http: httpx.Client) -> None:
    lines = (json.dumps({"type": "Company", "data": {"slug": f"c{i}"}}).encode() + b"\n" for i in range(5000))
    response = http.post("/load/ndjson", params={"mode": "append", "branch": "streamed", "from": "main"}, content=lines)
    assert response.json()["tables"] == [{"table_key": "node:Company", "rows_loaded": 5000}]
    assert http.post("/load/ndjson", content=b"").status_code == 400
    broken = http.post("/load/ndjson?mode=append", content=b'{"type": "Company"}\n{"type": ')
    assert broken.status_code == 400
    assert "/tmp" not in broken.text
    assert {violation["source"] for violation in broken.json()["violations"]} == {"<stream>"}


def test_an_export_loads_back(http: httpx.Client, tmp_path: Path) -> None:
    with http.stream("POST", "/export", json={"branch": "streamed"}) as response:
        assert response.headers["content-type"] == "application/x-ndjson"
        content = b"".join(response.iter_bytes())
    assert content.count(b'"c1') == 1111
    with og.init(tmp_path / "copy", schema=SCHEMA) as copy:
        copy.load(content, mode="append")
        assert len(copy.query(ALL_PEOPLE)) == len(
            post(http, "/query", {"query": ALL_PEOPLE, "branch": "streamed"})["rows"]
        )
    only = http.post("/export", json={"table_keys": ["edge:WorksAt"]})
    assert (only.json()["edge"], only.json()["from"], only.json()["to"]) == ("WorksAt", "ada", "acme")
    assert http.post("/export", json={"type_names": ["Nobody"]}).status_code == 404


def test_branches_and_merges(http: httpx.Client) -> None:
    made = post(http, "/branches", {"name": "review/1", "from": "main"})
    assert made["source_branch"] == "main"
    assert "review/1" in [branch["name"] for branch in http.get("/branches").json()["branches"]]
    set_age = 'query m($a: I32) { update Person set { age: $a } where slug = "bob" }'
    post(http, "/mutate", {"query": set_age, "params": {"a": 21}, "branch": "review/1"})
    preview = post(http, "/branches/merge", {"source": "review/1", "dry_run": True})
    assert (preview["outcome"], preview["changes"][0]["id"]) == ("fast_forward", "bob")
    diff = post(http, "/diff", {"from": "main", "to": "review/1"})
    assert diff["summary"] == [{"table_key": "node:Person", "inserts": 0, "updates": 1, "deletes": 0}]
    post(http, "/mutate", {"query": set_age, "params": {"a": 22}})
    refused = post(http, "/branches/merge", {"source": "review/1", "target": "main"}, 409)
    assert refused["merge_conflicts"][0]["kind"] == "divergent_update"
    assert refused["merge_conflicts"][0]["row_id"] == "bob"
    answers = {"resolutions": {"node:Person": {"bob": "theirs"}}, "delete_branch": True}
    done = post(http, "/branches/merge", {"source": "review/1", **answers})
    assert (done["outcome"], done["source_deleted"]) == ("merged", True)
    post(http, "/branches", {"name": "gone/soon"})
    assert http.delete("/branches/gone/soon").json() == {"name": "gone/soon", "deleted": True}
    assert http.delete("/branches/gone/soon").status_code == 404


def test_history(http: httpx.Client) -> None:
    commits = http.get("/commits", params={"limit": 2}).json()["commits"]
    assert len(commits) == 2
    one = http.get(f"/commits/{commits[0]['graph_commit_id']}").json()
    assert one == commits[0]
    changed = http.get(f"/commits/{one['graph_commit_id']}/changes").json()
    assert {"commit", "summary", "changes"} == set(changed)
    assert http.get("/commits/01AAAAAAAAAAAAAAAAAAAAAAAA").status_code == 404
    page = http.get("/changes", params={"limit": 2}).json()
    assert len(page["blocks"]) == 2
    rest = http.get("/changes", params={"since": page["cursor"]}).json()
    assert rest["blocks"][0]["commit"]["parent_commit_id"] == page["blocks"][1]["commit"]["graph_commit_id"]
    assert http.get("/changes", params={"since": "nonsense"}).json()["kind"] == "stale_cursor"


def test_entities(http: httpx.Client) -> None:
    found = http.get("/entity", params={"type": "Person", "id": "ada"}).json()
    assert found == {"entity": {"@id": "ada", "slug": "ada", "age": 36, "born": "1815-12-10"}}
    assert http.get("/entity", params={"type": "Person", "id": "nobody"}).json() == {"entity": None}
    assert http.get("/entity", params={"type": "Nothing", "id": "x"}).status_code == 404


def test_blobs(http: httpx.Client) -> None:
    photo = bytes(range(256)) * 8192  # 2 MB
    line = {"type": "Person", "data": {"slug": "pia", "photo": {"base64": base64.b64encode(photo).decode()}}}
    post(http, "/load", {"data": [line], "mode": "append"})
    place = {"type": "Person", "id": "pia", "property": "photo"}
    whole = http.get("/blob", params={**place, "entity": "node"})
    assert (whole.status_code, whole.content == photo) == (200, True)
    tag = whole.headers["ETag"]
    assert http.get("/blob", params=place, headers={"If-None-Match": f'"x", {tag}'}).status_code == 304
    head = http.head("/blob", params=place)
    assert (head.headers["ETag"], head.headers["Content-Length"], head.content) == (tag, str(len(photo)), b"")
    for asked, start, stop in (("0-9", 0, 10), ("100-", 100, len(photo)), ("-5", len(photo) - 5, len(photo))):
        part = http.get("/blob", params=place, headers={"Range": f"bytes={asked}"})
        assert (part.status_code, part.content == photo[start:stop]) == (206, True)
        assert part.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{len(photo)}"
    beyond = http.get("/blob", params=place, headers={"Range": f"bytes={len(photo)}-"})
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{len(photo)}")
    for other in ("bytes=-", "bytes=9-1", "lines=1-2", "bytes=1-2,3-4"):
        answer = http.get("/blob", params=place, headers={"Range": other})
        assert (answer.status_code, answer.content == photo) == (200, True)  # as HTTP says of ranges not served
    for known in ("*", f"W/{tag}"):
        assert http.get("/blob", params=place, headers={"If-None-Match": known}).status_code == 304
        assert http.head("/blob", params=place, headers={"If-None-Match": known}).status_code == 304
    for tag_of_the_begun, status in ((tag, 206), ('"older"', 200)):
        resumed = http.get("/blob", params=place, headers={"Range": "bytes=5-", "If-Range": tag_of_the_begun})
        assert resumed.status_code == status
    assert http.get("/blob", params={**place, "id": "ada"}).status_code == 404
    assert http.get("/blob", params={**place, "property": "age"}).status_code == 400
    post(http, "/mutate", insert("pim"))
    assert http.head("/blob", params=place).headers["ETag"] != tag


def test_stored_queries(http: httpx.Client) -> None:
    listed = {query["name"]: query for query in http.get("/queries").json()["queries"]}
    assert set(listed) == {"people", "hire"}  # one is not exposed
    assert listed["people"]["tool_name"] == "find_people"
    assert listed["people"]["description"] == "People of an age."
    assert listed["people"]["parameters"] == [{"name": "least", "kind": "int", "nullable": False}]
    assert listed["hire"]["mutates"] is True
    rows = post(http, "/queries/people", {"params": {"least": 30}})["rows"]
    assert rows == [{"p.slug": "ada", "p.age": 36}]
    assert post(http, "/queries/hire", {"params": {"slug": "zoe"}})["affected_nodes"] == 1
    assert post(http, "/queries/secret", {})["row_count"] == 1
    assert http.post("/queries/secret").status_code == 200
    assert "no stored query" in post(http, "/queries/nothing", {"params": {}}, 404)["error"]
    assert "there is no `query` here" in post(http, "/queries/people", {"query": ALL_PEOPLE}, 400)["error"]
    post(http, "/queries/people", {"params": {"least": "many"}}, 400)
    post(http, "/queries/hire", {"params": {"slug": "x"}, "snapshot": "main"}, 400)


@pytest.mark.parametrize(
    ("old", "new", "body"),
    [
        ("/read", "query", {"query_source": ALL_PEOPLE, "query_name": "q"}),
        ("/change", "mutate", {"query_source": insert("x")["query"], "params": {"s": "ada"}}),
        ("/ingest", "load", {"data": "", "mode": "merge"}),
    ],
)
def test_deprecated_twins(http: httpx.Client, old: str, new: str, body: Any) -> None:
    response = http.post(old, json=body)
    assert response.status_code == 200, response.text
    assert response.headers["Deprecation"] == "true"
    assert response.headers["Link"] == f'</graphs/default/{new}>; rel="successor-version"'
    assert "Deprecation" not in http.post(f"/{new}", json={**body, "query": body.get("query_source")}).headers
    refused = http.post(old, json={})
    assert (refused.status_code, refused.headers["Deprecation"]) == (400, "true")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "required"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"query": "\xff"}', "not UTF-8"),
        (b'{"query": "a", "query": "b"}', "comes twice"),
        (b'{"query": 1}', "query: Input should be a valid string"),
        (b'{"query": "query q() {}", "params": []}', "params: Input should be a valid dictionary"),
        (b'{"query": NaN}', "NaN"),
        (b'{"query": "\\ud800"}', ""),
        (b'{"query": "query q(", "snapshot": {}}', "snapshot"),
        (b"null", "valid dictionary"),
    ],
)
def test_malformed_bodies(http: httpx.Client, content: bytes, told: str) -> None:
    response = http.post("/query", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 400, response.text
    assert told in response.json()["error"]
    assert response.json()["merge_conflicts"] == []


def test_a_body_that_is_not_announced_as_json_is_told_how(http: httpx.Client) -> None:
    """`curl -d` says that it sends a form."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for path in ("/query", "/read", "/mutate", "/load", "/branches/merge", "/queries/people"):
        response = http.post(path, content=b'{"query": "query q() { }", "params": {}}', headers=form)
        assert response.status_code == 400, response.text
        assert "Content-Type: application/json" in response.json()["error"], path


def test_the_short_way_and_the_framework_answer_alike(server: Running, http: httpx.Client) -> None:
    """Plain JSON goes one way; with another name for JSON it goes the other."""
    good = {"query": ALL_PEOPLE, "params": {}}
    bodies = [
        good,
        {**good, "query_name": "q", "branch": "main", "actor": "evil"},
        {**good, "snapshot": "nothing"},
        {**good, "branch": 7, "params": []},
        {"query": "query q( {"},
        {"query_source": ALL_PEOPLE, "snapshot": {}},
        {"query": "query m() { insert Person { slug: 3 } }"},
        {"params": {"least": 30}},
        {"params": {"least": "x"}},
        {},
        [],
        None,
    ]
    for path in ("/query", "/mutate", "/queries/people", "/queries/nothing", "/graphs/none/query"):
        for body in bodies:
            told = []
            for kind in ("application/json", "application/x+json"):
                sent = json.dumps(body).encode()
                headers = {"Content-Type": kind, "X-Request-Id": "both"}
                response = http.post(path, content=sent, headers=headers)
                headers_told = {key for key in response.headers if key != "date"}
                told.append((response.status_code, response.json(), headers_told))
            assert told[0] == told[1], (path, body)
    refused = [
        http.post(
            "/mutate",
            content=json.dumps({"query": 'query m() { insert Person { slug: "both" } }'}).encode(),
            headers={"Content-Type": kind, "Omnigraph-If-Graph-Commit": "another"},
        ).json()["code"]
        for kind in ("application/json", "application/x+json")
    ]
    assert refused == ["precondition_failed"] * 2
    assert 'route="none",status="200"' not in http.get("/metrics").text


def test_errors_have_one_body_and_every_response_a_request_id(http: httpx.Client) -> None:
    for response, status, code in (
        (http.get("/nowhere/at/all"), 404, "not_found"),
        (http.get("/graphs/other/snapshot"), 404, "not_found"),
        (http.delete("/query"), 405, "method_not_allowed"),
        (http.get("/snapshot?branch=none"), 404, "not_found"),
        (http.get("/commits?limit=-1"), 400, "bad_request"),
    ):
        assert (response.status_code, response.json()["code"]) == (status, code)
        assert response.json()["request_id"] == response.headers["X-Request-Id"]
    assert http.get("/healthz", headers={"X-Request-Id": "mine-1"}).headers["X-Request-Id"] == "mine-1"
    assert http.get("/healthz", headers={"X-Request-Id": "no good\tone"}).headers["X-Request-Id"] != "no good\tone"
    problem = post(http, "/query", {"query": "query q() { match { $p: Persn } return { $p } }"}, 400)
    assert (problem["kind"], problem["diagnostics"][0]["line"]) == ("type", 1)


def test_bodies_that_are_too_large_or_too_slow(server: Running, http: httpx.Client) -> None:
    big = b'{"query": "' + b"x" * (1 << 20) + b'"}'
    headers = {"Content-Type": "application/json"}
    assert http.post("/query", content=big, headers=headers).status_code == 413
    assert http.post("/query", content=iter([big[:1000], big[1000:]]), headers=headers).status_code == 413
    assert http.post("/load", content=b" " * (1 << 20) + b"{}", headers=headers).status_code == 400

    def slow() -> Iterator[bytes]:
        yield b'{"query": '
        time.sleep(3)
        yield b'"x"}'

    try:
        response = http.post("/query", content=slow(), headers=headers)
        assert (response.status_code, "did not go on" in response.text) == (400, True)
    except httpx.HTTPError:
        pass  # the connection may be closed under the sender
    assert http.get("/healthz").status_code == 200


def test_deadlines(http: httpx.Client) -> None:
    slow = "query q() { match { $a: Person $b: Person $c: Person $d: Person $e: Person } return { count($a) as n } }"
    late = http.post("/query", json={"query": slow}, headers={"Omnigraph-Timeout": "0.0001"})
    assert (late.status_code, late.json()["code"]) == (504, "timeout")
    assert http.post("/query", json={"query": slow}, headers={"Omnigraph-Timeout": "soon"}).status_code == 400


def test_events_go_on_after_a_cursor(server: Running) -> None:
    seen: list[dict[str, Any]] = []
    ids: list[str] = []
    started = threading.Event()

    def listen(**headers: str) -> None:
        with (
            server.client() as client,
            client.stream("GET", "/changes?since=now", headers={"Accept": "text/event-stream", **headers}) as response,
        ):
            for line in response.iter_lines():
                started.set()
                if line.startswith("id: "):
                    ids.append(line[4:])
                if line.startswith("data: "):
                    seen.append(json.loads(line[6:]))
                    return

    listener = threading.Thread(target=listen)
    listener.start()
    assert started.wait(90)
    with server.client() as client:
        post(client, "/mutate", insert("eventful"))
        listener.join(90)
        assert seen[0]["changes"][0]["id"] == "eventful"
        post(client, "/mutate", insert("evermore"))
    listen(**{"Last-Event-ID": ids[0]})
    assert seen[1]["changes"][0]["id"] == "evermore"
    assert seen[1]["cursor"] == ids[1]


def test_a_client_that_goes_cancels_its_query(server: Running) -> None:
    lines = "".join(f'{{"type": "Company", "data": {{"slug": "c{number}"}}}}\n' for number in range(5000))
    with server.client() as client:
        where = {"mode": "append", "branch": "slow", "from": "main"}
        assert client.post("/load/ndjson", params=where, content=lines).status_code == 200
    slow = "query q() { match { $a: Company $b: Company $c: Company } return { $a.slug, $b.slug, $c.slug } }"
    state = server.app.state
    with pytest.raises(httpx.ReadTimeout), server.client() as client:
        client.post("/query", json={"query": slow, "branch": "slow"}, timeout=1)
    until(lambda: not state.admission._under_way)


def test_metrics_count_by_route(http: httpx.Client) -> None:
    query = "query q() { match { $a: Company } return { $a.slug } limit 1 }"
    assert http.post("/graphs/default/query", json={"query": query}).status_code == 200
    text = http.get("/metrics").text
    assert 'omnigraph_requests_total{method="POST",route="/graphs/{graph_id}/query",status="200"}' in text
    assert "review/1" not in text


def test_made_up_methods_make_no_series_of_their_own() -> None:
    counted = Metrics()
    for number in range(50):
        counted.answered(f"M{number}", "none", 405, 0.1)
    counted.answered("GET", "none", 404, 0.1)
    text = counted.text().decode()
    assert 'omnigraph_requests_total{method="other",route="none",status="405"} 50.0' in text
    assert 'omnigraph_requests_total{method="GET",route="none",status="404"} 1.0' in text
    assert "M7" not in text
