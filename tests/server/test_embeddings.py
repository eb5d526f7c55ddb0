"""Texts over the server: `nearest`, stored queries and `embed` use the provider of the server's process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.errors import BadRequest
from omnigraph.server.server_settings import GraphSettings
from tests.server.running import serving
from tests.write.embedding.test_fill import SCHEMA, note

NEAR = "query near($q: String) { match { $n: Note } return { $n.id } order { nearest($n.vector, $q) } limit 1 }"


def test_a_text_finds_its_neighbours_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    uri = str(tmp_path / "g")
    with og.init(uri, schema=SCHEMA) as graph:
        graph.load([note("a", text="the blue sea"), note("b", text="a red apple")], mode="append")
    (tmp_path / "near.gq").write_text(NEAR)
    with (
        serving(GraphSettings("default", uri, queries=str(tmp_path / "near.gq"))) as running,
        og.connect(running.url) as client,
        running.client() as http,
    ):
        with pytest.raises(BadRequest, match="no embedding provider"):
            client.query(NEAR, q="sea")
        monkeypatch.setenv("OMNIGRAPH_EMBEDDING_PROVIDER", "mock")
        preview = client.embed(["Note"], dry_run=True)
        assert (preview.rows, preview.dry_run, preview.commit) == (2, True, None)
        done = client.embed()
        assert (done.rows, done.commit) == (2, client.head())
        client.load([note("c", text="interest rates")], mode="append")
        client.mutate('query q() { insert Note { id: "d", text: "two dogs" } }')
        for text, found in {"a red apple": "b", "rates": "c", "dogs": "d"}.items():
            assert client.query(NEAR, q=text).rows() == [{"n.id": found}]
            assert client.invoke("near", q=text).rows() == [{"n.id": found}]
            assert http.post("/queries/near", json={"params": {"q": text}}).json()["rows"] == [{"n.id": found}]
        client.mutate('query q() { update Note set { text: "a green pear" } where id = "b" }')
        assert main(["embed", "--server", running.url, "--mode", "stale", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["rows"], told["mode"], told["commit"]["kind"]) == (1, "stale", "Embed")
        assert client.query(NEAR, q="a green pear").rows() == [{"n.id": "b"}]
        assert main(["embed", uri, "--dry-run"]) == 0
        assert "0 rows would get a vector, about 0 tokens" in capsys.readouterr().out
