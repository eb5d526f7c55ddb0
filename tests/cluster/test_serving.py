"""Serving a cluster: the applied revision and nothing else, quarantine, refusals that say what mends them, reload."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cluster import operations
from omnigraph.config import override
from omnigraph.errors import BadRequest, NotFound, StorageError
from omnigraph.server.bearer_tokens import hashed
from omnigraph.server.launch import read_arguments
from omnigraph.server.served import ServedGraphs
from omnigraph.server.server_settings import ServerSettings
from tests.cluster.deployments import change, load_people, without_people, write
from tests.server.running import Running, serving

TOKENS = {"act-ada": "token-of-ada-123456", "act-eve": "token-of-eve-000000"}
ALL = {"query": "query q() { match { $p: Person } return { $p.slug } order { $p.slug } }"}


def applied(folder: Path) -> Path:
    write(folder)
    assert operations.apply(folder, None).converged
    load_people(folder, "ada")
    return folder


def graphs(running: Running, actor: str = "act-ada") -> dict[str, str]:
    with running.client(TOKENS[actor]) as http:
        return {entry["id"]: entry["status"] for entry in http.get("/graphs").json()["graphs"]}


def damage(folder: Path, address: str) -> None:
    """Change a payload behind the ledger's back."""
    state = json.loads((folder / "__cluster/state.json").read_text())
    (folder / "__cluster/resources" / state["resources"][address]["payload"]).write_text("changed")


def test_what_was_applied_is_served_and_a_reload_takes_what_was_applied_since(tmp_path: Path) -> None:
    applied(tmp_path)
    with serving(cluster=str(tmp_path), tokens=TOKENS) as running, running.client(TOKENS["act-ada"]) as ada:
        assert graphs(running) == {"notes": "served", "people": "served"}
        assert ada.get("/readyz").json() == {"status": "ready"}
        assert ada.post("/graphs/people/query", json=ALL).json()["rows"] == [{"p.slug": "ada"}]
        assert ada.post("/query", json=ALL).status_code == 404  # no short paths: a graph is named
        insert = {"query": 'query m() { insert Note { slug: "n", text: "cats" } }'}
        assert ada.post("/graphs/notes/mutate", json=insert).status_code == 200
        assert ada.post("/graphs/people/mutate", json=insert).status_code == 403  # it has no policy: only reading
        assert ada.post("/graphs/notes/queries/all_notes", json={}).json()["rows"][0]["n.slug"] == "n"
        revision = ada.get("/graphs").json()["revision"]

        # What is merely written is not served.
        change(tmp_path, "notes.pg", "text: String?", "text: String?\n    stars: I32?")
        change(tmp_path, "queries/notes.gq", "$n.slug, $n.text", "$n.slug, $n.stars")
        assert ada.post("/reload").json() == {"reloaded": True, "revision": revision}
        assert "n.text" in ada.post("/graphs/notes/queries/all_notes", json={}).json()["rows"][0]

        # Under load, nobody notices that it was applied and taken.
        failed: list[str] = []
        stop = threading.Event()

        def ask() -> None:
            with running.client(TOKENS["act-ada"]) as http:
                while not stop.is_set():
                    for path, body in (("people/query", ALL), ("notes/queries/all_notes", {})):
                        answer = http.post(f"/graphs/{path}", json=body)
                        if answer.status_code != 200:
                            failed.append(answer.text)

        askers = [threading.Thread(target=ask) for _ in range(3)]
        for asker in askers:
            asker.start()
        try:
            assert operations.apply(tmp_path, None).converged
            assert ada.post("/reload").json()["revision"] > revision
            assert "n.stars" in ada.post("/graphs/notes/queries/all_notes", json={}).json()["rows"][0]
            change(tmp_path, "cluster.yaml", "kind: mock", "kind: mock, batch: 8")  # opens `notes` anew
            assert operations.apply(tmp_path, None).converged
            assert ada.post("/reload").status_code == 200
        finally:
            stop.set()
            for asker in askers:
                asker.join()
        assert failed == []

        with running.client(TOKENS["act-eve"]) as eve:
            assert eve.post("/reload").status_code == 403
        change(tmp_path, "base.policy.yaml", "[act-ada]", "[act-ada, act-eve]")
        without_people(tmp_path)
        operations.approve(tmp_path, "graph.people", None)
        assert operations.apply(tmp_path, None).converged
        assert ada.post("/reload").status_code == 200
        assert graphs(running, "act-eve") == {"notes": "served"}
        assert ada.post("/graphs/people/query", json=ALL).status_code == 404


def test_one_graph_that_cannot_be_served_leaves_the_others_alone(tmp_path: Path) -> None:
    applied(tmp_path)
    damage(tmp_path, "query.notes.all_notes")
    with serving(cluster=str(tmp_path), tokens=TOKENS) as running, running.client(TOKENS["act-ada"]) as ada:
        assert graphs(running) == {"notes": "quarantined", "people": "served"}
        assert ada.get("/readyz").status_code == 503
        assert ada.post("/graphs/people/query", json=ALL).status_code == 200
        told = ada.post("/graphs/notes/query", json=ALL)
        assert told.status_code == 503
        assert "omnigraph cluster refresh" in told.json()["error"]
        with running.client(TOKENS["act-eve"]) as eve:
            assert eve.post("/graphs/notes/query", json=ALL).status_code == 404
            assert eve.get("/graphs").status_code == 403
        assert operations.refresh(tmp_path, None).findings[0].condition == "payload_damaged"
        assert operations.apply(tmp_path, None).converged
        assert ada.post("/reload").status_code == 200
        assert graphs(running) == {"notes": "served", "people": "served"}

        # A graph that is served does not go because of a broken reload.
        with og.open(str(tmp_path / "graphs/notes.omni")) as graph:
            graph.apply_schema("node Note {\n    slug: String @key\n}\n")
        refused = ada.post("/reload")
        assert refused.status_code == 400
        assert "stored queries do not fit" in refused.json()["error"]
        assert graphs(running) == {"notes": "served", "people": "served"}
    strict = ServerSettings(cluster=str(tmp_path), require_all_graphs=True)
    with pytest.raises(BadRequest, match=r"graph `notes`: stored queries do not fit"):
        ServedGraphs(strict, hashed(TOKENS)).open()


def test_what_cannot_be_served_at_all_says_what_mends_it(tmp_path: Path) -> None:
    write(tmp_path)
    settings, tokens = ServerSettings(cluster=str(tmp_path)), hashed(TOKENS)
    with pytest.raises(NotFound, match="run `omnigraph cluster apply`"):
        ServedGraphs(settings, tokens)
    operations.apply(tmp_path, None)
    with pytest.raises(BadRequest, match="without tokens the server knows none"):
        ServedGraphs(ServerSettings(cluster=str(tmp_path), unauthenticated=True), hashed({}))
    damage(tmp_path, "policy.base")
    with pytest.raises(BadRequest, match=r"policy\.base, which cluster and notes share.*omnigraph cluster refresh"):
        ServedGraphs(settings, tokens)
    operations.refresh(tmp_path, None)
    operations.apply(tmp_path, None)
    for name in ("notes", "people"):
        (tmp_path / f"graphs/{name}.omni").rename(tmp_path / f"{name}.away")
    with pytest.raises(BadRequest, match="there is no graph at"):
        ServedGraphs(settings, tokens).open()
    (tmp_path / "__cluster/state.json").write_text("{}")
    with pytest.raises(StorageError, match="omnigraph cluster import"):
        ServedGraphs(settings, tokens)


def test_a_step_that_was_cut_off_keeps_its_graph_back(tmp_path: Path) -> None:
    applied(tmp_path)
    (tmp_path / "__cluster/recoveries/1.json").write_text(
        json.dumps(
            {"step": "apply_schema", "graph": "notes", "actor": None, "started_at": "", "config_digest": "", "id": "1"}
            | {"details": {"digest": "x"}}
        )
    )
    found = ServedGraphs(ServerSettings(cluster=str(tmp_path)), hashed(TOKENS))
    found.open()
    reasons = [getattr(graph, "reason", None) for graph in found.listed("act-ada")]
    found.close()
    assert reasons == ["a step (apply_schema) was cut off: run `omnigraph cluster apply`", None]


def test_a_graph_has_the_embedding_provider_of_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    change(tmp_path, "notes.pg", "text: String?", 'text: String?\n    vector: Vector(16)? @embed("text")')
    change(
        tmp_path, "cluster.yaml", "policies:\n  base: { file: base.policy.yaml, applies_to: [notes, cluster] }\n", ""
    )
    (tmp_path / "queries/near.gq").write_text(
        "query near($q: String) { match { $n: Note } return { $n.slug } order { nearest($n.vector, $q) } limit 1 }\n"
    )
    assert operations.apply(tmp_path, None).converged
    from omnigraph.embed.mock import MockEmbeddings

    texts = {"a": "the cat sleeps", "b": "interest rates rise"}
    vectors = MockEmbeddings().embed(list(texts.values()), dim=16)
    with og.open(str(tmp_path / "graphs/notes.omni")) as graph:
        rows = [{"slug": s, "text": t, "vector": v} for (s, t), v in zip(texts.items(), vectors)]
        graph.load([{"type": "Note", "data": row} for row in rows], mode="append")
    monkeypatch.delenv("OMNIGRAPH_EMBEDDING_PROVIDER", raising=False)
    with serving(cluster=str(tmp_path)) as running, running.client() as http:
        answer = http.post("/graphs/notes/queries/near", json={"params": {"q": "rates of interest rise"}})
        assert answer.json()["rows"] == [{"n.slug": "b"}], answer.text


def test_a_graph_reads_blobs_from_its_own_places_only(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "a.bin").write_bytes(b"ours")
    (tmp_path / "secret.bin").write_bytes(b"not ours")
    (assets / "link.bin").symlink_to(tmp_path / "secret.bin")
    folder = write(tmp_path / "deployment")
    change(folder, "notes.pg", "text: String?", "photo: Blob?")
    change(folder, "queries/notes.gq", ", $n.text", "")
    place = f"    blob_uris: {{ allow: [ {{ base: file://{assets}/ }} ] }}\n    queries"
    change(folder, "cluster.yaml", "    queries", place)
    assert operations.apply(folder, None).converged
    insert = "query m($s: String, $b: Blob) { insert Note { slug: $s, photo: $b } }"
    with (
        override(blob_uris="data"),
        serving(cluster=str(folder), tokens=TOKENS) as running,
        running.client(TOKENS["act-ada"]) as ada,
    ):
        for uri, status in (
            (f"file://{assets}/a.bin", 200),
            (f"file://{tmp_path}/secret.bin", 400),
            (f"file://{assets}/../secret.bin", 400),
            (f"file://{assets}/%2e%2e/secret.bin", 400),
            (f"file://{assets}/link.bin", 400),
            ("s3://bucket/key", 400),
        ):
            answer = ada.post("/graphs/notes/mutate", json={"query": insert, "params": {"s": "n", "b": uri}})
            assert answer.status_code == status, (uri, answer.text)
            assert status == 200 or "this graph reads blobs from below" in answer.json()["error"]
        record = json.dumps({"type": "Note", "data": {"slug": "m", "photo": f"file://{assets}/a.bin"}})
        assert ada.post("/graphs/notes/load/ndjson?mode=append", content=record).status_code == 200
    with og.open(str(folder / "graphs/notes.omni"), read_only=True) as graph:
        assert graph.read_blob("Note", "n", "photo") == graph.read_blob("Note", "m", "photo") == b"ours"


def test_what_the_command_line_contradicts() -> None:
    told = read_arguments(["--cluster", "c", "--require-all-graphs"], {})
    assert (told.cluster, told.graphs, told.require_all_graphs) == ("c", (), True)
    assert read_arguments([], {"OMNIGRAPH_CLUSTER": "s3://b/c"}).cluster == "s3://b/c"
    for words, environment, reason in (
        (["g", "--cluster", "c"], {}, "g is a graph and c a cluster"),
        (["--cluster", "c"], {"OMNIGRAPH_TARGET_URI": "g"}, "g is a graph and c a cluster"),
        (["--cluster", "c"], {"OMNIGRAPH_CLUSTER": "d"}, "leave out one"),
        (["--cluster", "c", "--policy", "p"], {}, "a cluster has its own policy"),
        (["--cluster", "c"], {"OMNIGRAPH_QUERIES": "q"}, "a cluster has its own queries"),
    ):
        with pytest.raises(BadRequest, match=reason):
            read_arguments(words, environment)
