"""One script of calls, on a store and on a server: the same values, the same errors, the same documents."""

from __future__ import annotations

import asyncio
import datetime
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.aio import AsyncRemoteGraph
from omnigraph.cli.main import main
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.server.server_settings import GraphSettings
from tests.server.graphs import ALL_PEOPLE, SCHEMA, make
from tests.server.running import Running, serving

INSERT = "query m($s: String, $a: I32?) { insert Person { slug: $s, age: $a } }"
SET_AGE = 'query m($a: I32) { update Person set { age: $a } where slug = "bob" }'


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph of its own for each surface, and one that both look at."""
    return make(tmp_path_factory.mktemp("parity"))


@pytest.fixture(scope="module")
def server(uri: str) -> Iterator[Running]:
    with serving(GraphSettings("default", uri, queries=str(Path(uri).parent / "queries"))) as running:
        yield running


@pytest.fixture(params=["store", "server"])
def g(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    own = make(tmp_path)
    if request.param == "store":
        with og.open(own) as graph:
            yield graph
        return
    with serving(GraphSettings("default", own)) as running, og.connect(running.url) as graph:
        yield graph


def test_the_same_calls_give_the_same_values(g: Any, tmp_path: Path) -> None:
    # reading
    rows = g.query(ALL_PEOPLE)
    assert rows.rows()[0] == {"p.slug": "ada", "p.age": 36, "p.born": datetime.date(1815, 12, 10)}
    assert [str(column.type) for column in rows.columns] == ["String", "I32", "Date"]
    assert rows.schema.types == [pa.string(), pa.int32(), pa.date32()]
    assert len(rows) == 2
    assert rows.to_pandas()["p.age"].tolist() == [36, 20]
    by_date = "query q($d: Date) { match { $p: Person  $p.born = $d } return { $p } }"
    assert g.query(by_date, d=datetime.date(1815, 12, 10)).rows()[0]["p"]["slug"] == "ada"
    assert g.query(by_date, params={"d": "1900-01-01"}).rows() == []
    assert g.entity("Person", "nobody") is None
    # writing
    before = g.head()
    done = g.mutate(INSERT, s="carl", a=7)
    assert (done.affected_nodes, done.query_name, done.inserted_ids) == (1, "m", {"node:Person": ("carl",)})
    assert done.commit.parent_commit_id == before.graph_commit_id
    assert g.head() == done.commit
    assert g.mutate(INSERT, s="carl", a=7).commit is None
    with pytest.raises(errors.PreconditionFailed):
        g.mutate(INSERT, s="cleo", if_commit=before.graph_commit_id)
    # loads in every form
    line = b'{"type": "Person", "data": {"slug": "d1"}}\n'
    file = tmp_path / "d.jsonl"
    file.write_bytes(line.replace(b"d1", b"d2"))
    assert g.load(line, mode="append").rows_loaded == 1
    assert g.load(file, mode="append").rows_loaded == 1
    assert g.load([{"type": "Person", "data": {"slug": "d3", "born": "2000-01-01"}}], mode="append").rows_loaded == 1
    frame = pa.table({"slug": ["d4", "d5"], "years": pa.array([1, None], pa.int32())})
    assert g.load(frame, mode="append", type="Person", columns={"years": "age"}).rows_loaded == 2
    ends = pa.table({"who": ["d4"], "at": ["acme"]})
    assert g.load(ends, mode="append", type="WorksAt", src="who", dst="at").rows_loaded == 1
    with pytest.raises(errors.KeyConflict) as twice:
        g.load(line, mode="append")
    assert (twice.value.violations[0].row_id, twice.value.counts) == ("d1", {"existing_id": 1})
    forked = g.load(line, mode="merge", branch="fork", from_="main")
    assert (forked.branch_created, forked.branch, forked.base_branch) == (True, "fork", "main")
    # branches, differences, merges
    with g.branch("review") as review:
        review.mutate(SET_AGE, a=21)
        assert review.query(ALL_PEOPLE).rows()[1]["p.age"] == 21
    assert g.branch_list() == ["fork", "main", "review"]
    difference = g.diff("main", "review")
    assert [(c.type, c.id, c.op.value, c.changed_fields) for c in difference] == [("Person", "bob", "update", ("age",))]
    assert difference.summary()[0].to_json() == {"table_key": "node:Person", "inserts": 0, "updates": 1, "deletes": 0}
    assert repr(difference).endswith("iterate for the changes, summary() for the counts>")
    assert g.merge("review", dry_run=True).outcome.value == "fast_forward"
    g.mutate(SET_AGE, a=22)
    with pytest.raises(errors.MergeConflicts) as collided:
        g.merge("review")
    assert [(c.table_key, c.row_id, c.kind.value) for c in collided.value.conflicts] == [
        ("node:Person", "bob", "DivergentUpdate")
    ]
    merged = g.merge("review", resolutions={("node:Person", "bob"): "theirs"}, delete_source=True)
    assert (merged.outcome.value, merged.source_deleted) == ("merged", True)
    g.branch_delete("fork")
    # history
    log = g.log(limit=2)
    assert log[0] == g.head() == g.commit(log[0].graph_commit_id)
    assert [change.id for change in g.commit_changes(log[0].graph_commit_id)] == ["bob"]
    page = g.changes(limit=3)
    assert len(page) == 3
    assert [change.op.value for change in page.blocks[1].changes] == ["insert"] * 4
    assert g.changes(since=page.cursor).blocks[0].commit.parent_commit_id == page.blocks[-1].commit.graph_commit_id
    assert g.query(ALL_PEOPLE, at=before.graph_commit_id).rows() == rows.rows()
    assert g.query(ALL_PEOPLE, at=before.created).rows() == rows.rows()
    # blobs
    g.load([{"type": "Person", "data": {"slug": "pia", "photo": {"base64": "AAECAwQ="}}}], mode="append")
    assert g.read_blob("Person", "pia", "photo") == b"\x00\x01\x02\x03\x04"
    assert g.read_blob("Person", "pia", "photo", start=1, end=3) == b"\x01\x02"
    assert (g.read_blob("Person", "pia", "photo", start=9), g.read_blob("Person", "pia", "photo", end=0)) == (b"", b"")
    with g.open_blob("Person", "pia", "photo") as file:
        assert (file.seek(0, 2), file.seek(1), file.read(2), file.tell()) == (5, 1, b"\x01\x02", 3)
        assert file.read() == b"\x03\x04"
        g.load([{"type": "Person", "data": {"slug": "pia", "photo": {"base64": "/w=="}}}], mode="merge")
        file.seek(0)
        assert file.read() == b"\x00\x01\x02\x03\x04"
    assert g.open_blob("Person", "pia", "photo").read() == b"\xff"
    # schema
    assert g.schema_source() == SCHEMA
    wider = SCHEMA + "node City { name: String @key }\n"
    assert g.plan_schema(wider).to_json()["steps"][0]["kind"] == "add_type"
    applied = g.apply_schema(wider)
    assert (applied.to_json()["applied"], applied.commit) == (True, g.head())
    g.branch_create("wide")
    widest = wider + "node River { name: String @key }\n"
    assert g.plan_schema(widest, branch="wide").to_json()["steps"][0]["kind"] == "add_type"
    assert g.apply_schema(widest, branch="wide").commit == g.head("wide")
    assert (g.schema_source(), g.schema_source("wide")) == (wider, widest)
    assert g.export(tmp_path / "out.jsonl").rows == len(list(g.export_lines()))
    assert g.snapshot().to_json()["graph_commit_id"] == g.head().graph_commit_id


def test_blobs_on_the_command_line(g: Any, tmp_path: Path, capfdbinary: Any) -> None:
    g.load([{"type": "Person", "data": {"slug": "pia", "photo": {"base64": "AAECAwQ="}}}], mode="append")
    place = ["--store" if isinstance(g, og.Graph) else "--server", g.uri]
    words = ["blob", "get", "Person", "pia", "photo", *place]
    assert main([*words, "--start", "1", "--end", "4"]) == 0
    assert capfdbinary.readouterr().out == b"\x01\x02\x03"
    assert main([*words, "--out", str(tmp_path / "photo"), "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["size"] == 5
    assert (tmp_path / "photo").read_bytes() == b"\x00\x01\x02\x03\x04"
    for wrong in (["Person", "nobody", "photo"], ["Person", "ada", "photo"], ["Person", "ada", "age"]):
        assert main(["blob", "get", *wrong, *place]) == 1
        assert wrong[1] in (told := capfdbinary.readouterr().err.decode()) or wrong[2] in told


def test_undo_tags_and_maintenance_are_the_same(g: Any) -> None:
    first = g.head()
    g.mutate(SET_AGE, a=21)
    g.branch_create("side")
    second = g.mutate(SET_AGE, a=22).commit
    picked = g.cherry_pick(second.graph_commit_id, into="side", dry_run=True)
    assert (picked.outcome.value, picked.dry_run, [c.id for c in picked.changes]) == ("done", True, ["bob"])
    done = g.cherry_pick(second.graph_commit_id, into="side")
    assert (done.operation, done.branch, done.commit) == ("cherry_pick", "side", g.head("side"))
    with pytest.raises(errors.MergeConflicts):
        g.revert(g.log()[1].graph_commit_id)
    assert g.revert(g.log()[1].graph_commit_id, dry_run=True).conflicts[0].row_id == "bob"
    answered = g.revert(g.log()[1].graph_commit_id, resolutions={("node:Person", "bob"): {"age": 5}})
    assert (answered.tables[0].updates, g.query(ALL_PEOPLE).rows()[1]["p.age"]) == (1, 5)
    tag = g.tags.create("start", first.graph_commit_id)
    assert ([tag], tag.graph_commit_id) == (g.tags.list(), first.graph_commit_id)
    with pytest.raises(errors.Conflict):
        g.tags.create("start")
    restored = g.restore("start")
    assert (restored.operation, restored.commit) == ("restore", g.head())
    assert g.query(ALL_PEOPLE).rows()[1]["p.age"] == 20
    assert g.restore(first.created, branch="side").commit == g.head("side")
    g.tags.delete("start")
    with pytest.raises(errors.NotFound):
        g.tags.delete("start")
    assert g.tags.list() == []
    assert g.optimize(tables=["node:Person"]).branch == "main"
    assert g.ensure_indices("side").branch == "side"
    preview = g.cleanup(keep_versions=3)
    assert (preview.preview, preview.commits_kept > 0) == (True, True)
    with pytest.raises(errors.BadRequest):
        g.cleanup(keep_versions=1, older_than="never", confirm=True)
    assert not g.cleanup(keep_versions=5, older_than="30d", confirm=True).failed
    report = g.verify(deep=True)
    assert (report.ok, report.branches, report.files.checked > 0) == (True, 2, True)
    assert g.recoveries() == []


def test_the_same_mistakes_are_the_same_errors(g: Any) -> None:
    for call, kind in (
        (lambda: g.query("query q( {"), errors.QueryParseError),
        (lambda: g.query("query q() { match { $p: Persn } return { $p } }"), errors.QueryTypeError),
        (lambda: g.query(INSERT, s="x"), errors.BadRequest),
        (lambda: g.query(ALL_PEOPLE, nobody=1), errors.BadRequest),
        (lambda: g.query(ALL_PEOPLE, branch="none"), errors.NotFound),
        (lambda: g.query(ALL_PEOPLE, at="none"), errors.NotFound),
        (lambda: g.commit("01AAAAAAAAAAAAAAAAAAAAAAAA"), errors.NotFound),
        (lambda: g.changes(since="nonsense"), errors.StaleCursor),
        (lambda: g.branch_create("main"), errors.BadRequest),
        (lambda: g.load([{"type": "Person", "data": {}}], mode="append"), errors.ValidationFailed),
        (lambda: g.load([], mode="sideways"), errors.BadRequest),
        (lambda: g.entity("Nothing", "x"), errors.NotFound),
        (lambda: g.plan_schema("node {"), errors.LanguageError),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert "Traceback" not in caught.value.message
    with pytest.raises(errors.QueryTypeError) as typed:
        g.query("query q() { match { $p: Persn } return { $p } }")
    assert typed.value.codes
    assert typed.value.diagnostics[0].span.line == 1


READS = [
    ["query", "-e", ALL_PEOPLE],
    ["query", "-e", ALL_PEOPLE, "--format", "csv"],
    ["snapshot"],
    ["branch", "list"],
    ["branch", "diff", "main", "main"],
    ["commit", "list"],
    ["commit", "list", "--limit", "1"],
    ["changes"],
    ["schema", "show"],
    ["schema", "diagram"],
    ["export", "--to", "-"],
    ["tag", "list"],
    ["verify"],
    ["cleanup"],
    ["restore", "main", "--dry-run"],
    ["commit", "recoveries"],
    ["query", "-e", ALL_PEOPLE, "--explain"],
]


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_commands_print_the_same(words: list[str], uri: str, server: Running, capfdbinary: Any) -> None:
    for extra in ([], ["--json"]):
        assert main([*words, "--store", uri, *extra]) == 0
        local = capfdbinary.readouterr().out
        assert main([*words, "--server", server.url, *extra]) == 0
        assert capfdbinary.readouterr().out == local


def test_the_document_of_a_query_is_the_response_of_the_server(uri: str, server: Running, capsys: Any) -> None:
    assert main(["query", "-e", ALL_PEOPLE, "--store", uri, "--json"]) == 0
    with server.client() as http:
        assert json.loads(capsys.readouterr().out) == http.post("/query", json={"query": ALL_PEOPLE}).json()


def test_what_goes_through_no_server_says_so(server: Running, tmp_path: Path, capsys: Any) -> None:
    for words in (["repair"], ["relocate"]):
        assert main([*words, "--server", server.url]) == 1
        assert "not through a server" in capsys.readouterr().err
    assert main(["snapshot", "--server", server.url, "--as", "act-ada"]) == 1
    assert "takes the actor from the token" in capsys.readouterr().err
    assert main(["snapshot", "g.omni", "--server", server.url]) == 1
    schema = tmp_path / "s.pg"
    schema.write_text(SCHEMA)
    assert main(["init", "--schema", str(schema), "--server", server.url]) == 1
    with pytest.raises(errors.Unavailable):
        og.connect("http://127.0.0.1:9").query(ALL_PEOPLE)
    with pytest.raises(errors.BadRequest, match="starts with http"):
        og.connect("127.0.0.1")


def test_stored_queries_by_the_client(server: Running) -> None:
    with og.connect(server.url, graph="default") as graph:
        assert [query["name"] for query in graph.stored_queries()] == ["hire", "people", "secret"]
        assert graph.invoke("people", least=30).rows() == [{"p.slug": "ada", "p.age": 36}]
        graph.branch_create("hiring")
        assert graph.invoke("hire", {"slug": "zed"}, branch="hiring").affected_nodes == 1
        with pytest.raises(errors.NotFound):
            graph.invoke("nothing")
        graph.branch_delete("hiring")


def test_the_async_twin(server: Running) -> None:
    async def script() -> int:
        async with await og.aio.connect(server.url) as graph:
            one, two = await asyncio.gather(graph.query(ALL_PEOPLE), graph.branch_list())
            async with graph.branch("async/1") as bound:
                assert (bound.branch_name, graph.branch_name) == ("async/1", "main")
                await bound.mutate(INSERT, s="async")
                assert len([line async for line in bound.export_lines(types=["Person"])]) == len(one) + 1
            assert (await graph.merge("async/1", dry_run=True)).tables[0].inserts == 1
            await graph.branch_delete("async/1")
            return len(one) + len(two)

    assert asyncio.run(script()) == 3
    missing = {
        name
        for name in dir(RemoteGraph)
        if not name.startswith("_")
        and name not in ("branches", "schema", "maintenance")  # groups of what is there by itself
        and not hasattr(AsyncRemoteGraph(og.connect(server.url)), name)
    }
    assert missing == set()


def test_a_load_that_is_sent_again_is_skipped(server: Running) -> None:
    with og.connect(server.url) as graph:
        graph.branch_create("twice")
        rows = [{"type": "Person", "data": {"slug": "tim"}}]
        sent = [graph.load(rows, mode="append", branch="twice", batch=("queue/1", 7)) for _ in range(2)]
        assert [found.skipped for found in sent] == [False, True]
        assert str(sent[1].batch) == "batch 7 of stream queue/1"
        with pytest.raises(errors.BadRequest, match="go together"):
            graph._transport.send("/load/ndjson", [b""], {"mode": "append", "stream": "s"}, {})
        graph.branch_delete("twice")


def test_following_changes(server: Running) -> None:
    with og.connect(server.url) as graph:
        feed = graph.follow(since="beginning")
        first = next(feed)
        assert [block.commit.kind.value for block in first] == ["Init"]
        assert [len(page) for page in (next(feed), next(graph.follow(since=first.cursor)))] == [1, 1]
        feed.close()


def test_profiles_and_tokens(
    uri: str, server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    import io

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO("sesame\n"))
    assert main(["login", "work", "--url", server.url, "--token-stdin"]) == 0
    kept = tmp_path / ".omnigraph" / "credentials.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "sesame" not in (tmp_path / ".omnigraph" / "config.yaml").read_text()
    assert main(["profile", "set", "here", "--server", "work", "--default"]) == 0
    capsys.readouterr()
    assert main(["snapshot", "--json"]) == 0
    through = json.loads(capsys.readouterr().out)
    assert main(["snapshot", "--store", uri, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == through
    assert main(["graphs", "list", "--server", "work"]) == 0
    assert "served" in capsys.readouterr().out
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr().out
    assert "servers.work.token" in shown
    assert "sesame" not in shown
    _precedence(uri, monkeypatch, capsys)
    kept.chmod(0o644)
    assert main(["snapshot", "--server", "work"]) == 1
    assert "can be read by others" in capsys.readouterr().err
    monkeypatch.setenv("OMNIGRAPH_TOKEN_WORK", "other")
    assert main(["snapshot", "--server", "work"]) == 0
    kept.chmod(0o600)
    assert main(["logout", "work"]) == 0
    assert main(["profile", "delete", "here"]) == 0
    assert main(["snapshot"]) == 1
    assert main(["snapshot", "--profile", "nowhere"]) == 1
    assert main(["snapshot", "--server", "wrok"]) == 1
    assert "did you mean `work`" in capsys.readouterr().err


def test_a_flag_wins_over_the_environment(
    uri: str, server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Which graph is meant, above all: what is written must not go elsewhere than the line of the command says."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OMNIGRAPH_SERVER", "http://127.0.0.1:1")
    assert main(["snapshot", "--store", uri]) == 0
    assert main(["snapshot", uri]) == 0
    assert main(["snapshot", "--server", server.url]) == 0
    assert main(["snapshot"]) == 5  # nobody is there
    monkeypatch.setenv("OMNIGRAPH_STORE", uri)
    assert main(["snapshot", "--server", server.url]) == 0
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "act-env")
    assert main(["snapshot", "--server", server.url]) == 0  # for stores; the token says who asks
    capsys.readouterr()
    for words, told in (
        ([], "OMNIGRAPH_STORE names"),
        (["--store", uri, "--server", server.url], "name one of the two"),
        ([uri, "--store", "other.omni"], "name one of the two"),
        (["--server", server.url, "--as", "act-ada"], "from the token"),
        (["--server", server.url, "--policy", "p.yaml"], "a policy of its own"),
    ):
        assert main(["snapshot", *words]) == 1
        assert told in capsys.readouterr().err


def test_what_login_cannot_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for url, token, told in (
        ("http://ada:secret@graphs.example", "t", "no name and no password"),
        ("ftp://graphs.example", "t", "no address of a server"),
        ("http://graphs.example", "two words", "without spaces"),
    ):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{token}\n"))
        assert main(["login", "work", "--url", url]) == 1
        said = capsys.readouterr().err
        assert told in said
        assert "secret" not in said
        assert "two words" not in said
    assert not (tmp_path / ".omnigraph").exists()


def _precedence(uri: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A flag, then the environment, the profile, the file, the default; and commands go by what is shown."""
    words = ["--store", uri, "--as", "act-profile", "--output", "csv"]
    assert main(["profile", "set", "local", *words]) == 0
    file = Path.home() / ".omnigraph" / "config.yaml"
    file.write_text(file.read_text() + "actor: act-file\noutput: kv\n")

    def shown(*flags: str) -> dict[str, tuple[str, str]]:
        capsys.readouterr()
        assert main(["config", "show", "--json", *flags]) == 0
        return {one["name"]: (one["value"], one["from"]) for one in json.loads(capsys.readouterr().out)["values"]}

    assert shown()["actor"] == ("act-file", str(file))
    assert shown()["server"] == ("work", "profile here")
    assert shown()["output"] == ("kv", str(file))
    assert shown()["policy"] == (None, "default")
    assert shown("--profile", "local")["actor"] == ("act-profile", "profile local")
    assert shown("--profile", "local")["output"] == ("csv", "profile local")
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "act-env")
    monkeypatch.setenv("OMNIGRAPH_OUTPUT", "jsonl")
    assert shown("--profile", "local")["actor"] == ("act-env", "OMNIGRAPH_ACTOR")
    assert shown("--profile", "local")["output"] == ("jsonl", "OMNIGRAPH_OUTPUT")
    assert shown("--profile", "local", "--as", "act-flag")["actor"] == ("act-flag", "--as")
    monkeypatch.delenv("OMNIGRAPH_ACTOR")
    monkeypatch.delenv("OMNIGRAPH_OUTPUT")
    counts = ["query", "-e", "query q() { match { $p: Person } return { count($p) as n } }", "--profile", "local"]
    assert main(counts) == 0
    assert capsys.readouterr().out.splitlines()[0] == "n"  # rows as CSV
    assert main([*counts, "--format", "jsonl"]) == 0
    assert capsys.readouterr().out.startswith('{"n":')
    file.write_text(file.read_text() + "tokens: {}\n")
    assert main(["config", "show"]) == 1
    assert "unknown key `tokens`" in capsys.readouterr().err
    file.write_text(file.read_text().replace("tokens: {}\n", "").replace("output: kv", "output: wild"))
    assert main(["config", "show"]) == 1
    assert "output is one of" in capsys.readouterr().err
    file.write_text(file.read_text().replace("output: wild\n", ""))


def test_the_queries_command(uri: str, server: Running, capsys: Any) -> None:
    folder = str(Path(uri).parent / "queries")
    assert main(["queries", "list", "--store", uri, "--queries", folder, "--json"]) == 0
    local = capsys.readouterr().out
    assert main(["queries", "list", "--server", server.url, "--json"]) == 0
    assert capsys.readouterr().out == local
    assert main(["queries", "validate", uri, "--queries", folder]) == 0
    assert "3 queries fit the schema" in capsys.readouterr().out
    broken = Path(uri).parent / "broken.gq"
    broken.write_text(
        "query a() { match { $p: Persn } return { $p } }\nquery b() { match { $c: Cmpny } return { $c } }"
    )
    assert main(["queries", "validate", uri, "--queries", str(broken)]) == 1
    told = capsys.readouterr().err
    assert "Persn" in told
    assert "Cmpny" in told
