"""The Python surface: names, arguments, times, what a person sees, groups, and raw errors that are none any more."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pandas as pd
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, Conflict, NotFound, OmniGraphError

SCHEMA = "node P {\n    k: String @key\n    name: String?\n    n: I32?\n}\nedge K: P -> P\n"
ALL = "query q() { match { $p: P } return { $p.k } order { $p.k } }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Two people and an edge on main, one more on a branch."""
    made = og.init(tmp_path_factory.mktemp("python") / "g.omni", schema=SCHEMA, actor="act-ada")
    rows: list[dict[str, Any]] = [{"type": "P", "data": {"k": k, "name": k.upper()}} for k in "ab"]
    made.load([*rows, {"edge": "K", "from": "a", "to": "b"}], mode="append")
    made.branch_create("review", actor="act-bob")
    made.mutate('query q() { insert P { k: "c" } }', branch="review")
    made.tags.create("v1")
    return made


def test_the_public_names() -> None:
    assert og.__version__[0].isdigit()
    for name in og.__all__:
        assert getattr(og, name) is not None
    assert issubclass(og.errors.NotFound, og.OmniGraphError)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = og.nonsense  # type: ignore[attr-defined]


def test_choices_are_literals() -> None:
    load, merge = get_type_hints(og.Graph.load, _names()), get_type_hints(og.Graph.merge, _names())
    assert get_args(load["mode"]) == ("append", "merge", "overwrite")
    assert get_args(load["engine"]) == ("auto", "local", "spark")
    assert get_args(get_args(merge["strategy"])[0]) == ("ours", "theirs")


def _names() -> dict[str, Any]:
    import omnigraph.graph as module
    from omnigraph import choices
    from omnigraph.ledger import values
    from omnigraph.merge import merge
    from omnigraph.write import results

    return {**vars(choices), **vars(values), **vars(merge), **vars(results), **vars(module)}


def test_every_method_takes_an_actor() -> None:
    for name, method in inspect.getmembers(og.Graph, inspect.isfunction):
        if not name.startswith("_") and name not in ("close", "under"):
            assert "actor" in inspect.signature(method).parameters, name


def test_the_actor_of_a_call_wins(graph: og.Graph) -> None:
    assert graph.head().actor_id == "act-ada"
    assert {ref.name: ref.created_by for ref in graph.branches.list()}["review"] == "act-bob"
    made = graph.mutate("query q() { update P set { n: 1 } where k = 'a' }".replace("'", '"'), actor="act-cy")
    assert made.commit is not None
    assert made.commit.actor_id == "act-cy"


def test_a_keyword_is_an_argument_or_a_parameter_and_never_both(graph: og.Graph) -> None:
    by_name = "query q($name: String?) { match { $p: P { name: $name } } return { $p.k } }"
    on_branch = "query q($branch: String?, $n: I32?) { match { $p: P { name: $branch } } return { $p.k } }"
    assert graph.query(by_name, params={"name": "A"}).rows() == [{"p.k": "a"}]
    assert graph.query(by_name, "q", {"name": "A"}).rows() == [{"p.k": "a"}]
    assert graph.query(on_branch, params={"branch": "A"}, branch="review", n=3).rows() == [{"p.k": "a"}]
    for call in (
        lambda: graph.query(by_name, name="A"),
        lambda: graph.query(on_branch, branch="review"),
        lambda: graph.query(on_branch, branch="A"),
        lambda: graph.explain(on_branch, branch="review"),
        lambda: graph.mutate('query m($actor: String?) { update P set { name: $actor } where k = "zz" }', actor="x"),
    ):
        with pytest.raises(BadRequest, match="give the parameter by params="):
            call()
    with pytest.raises(BadRequest, match="given twice"):
        graph.query(on_branch, params={"n": 1}, n=2)


RAW: list[tuple[Callable[[og.Graph], object], type[OmniGraphError], str]] = [
    (lambda g: g.entity(1, "a"), BadRequest, "entity: the type is a text"),  # type: ignore[arg-type]
    (lambda g: g.query(Path("no.gq")), NotFound, "the query file no.gq does not exist"),
    (lambda g: g.query(7), BadRequest, "a query is a text"),  # type: ignore[arg-type]
    (lambda g: g.query(ALL, params=[1]), BadRequest, "params is a mapping"),  # type: ignore[arg-type]
    (lambda g: g.log(since=datetime(2026, 1, 1)), BadRequest, "has no time zone"),
    (lambda g: g.log(until="yesterday"), BadRequest, "until: `yesterday` is not an ISO time"),
    (lambda g: g.log(until=1.5), BadRequest, "until is a time"),  # type: ignore[arg-type]
    (lambda g: g.snapshot(2.5), BadRequest, "a target is a branch"),  # type: ignore[arg-type]
    (lambda g: g.branch_create(3), BadRequest, "named by a text"),  # type: ignore[arg-type]
    (lambda g: g.tags.create(3), BadRequest, "named by a text"),  # type: ignore[arg-type]
    (lambda g: g.export("."), BadRequest, "is a directory; name the file"),
    (lambda g: g.load(pd.DataFrame([["a", "b"]], columns=["k", "k"]), mode="merge", type="P"), BadRequest, "`k`"),
    (lambda g: g.load(pd.DataFrame({"x": ["a"]}), mode="merge", type="K", src="x"), BadRequest, r"dst=… \(--dst\)"),
    (lambda g: g.load(pd.DataFrame({"x": ["a"]}), mode="merge", type="K", src="y"), BadRequest, "src names the column"),
    (lambda g: g.load(pd.DataFrame({"k": ["a"]}), mode="merge", type="P", src="k"), BadRequest, "P is a node type"),
    (lambda g: g.load([], mode="merge", type=5), BadRequest, "type is a text"),  # type: ignore[arg-type]
    (lambda g: g.log(limit=-1), BadRequest, "limit is a whole number"),
    (lambda g: g.log(limit="x"), BadRequest, "limit is a whole number"),  # type: ignore[arg-type]
    (lambda g: g.merge("__schema_apply_lock__"), BadRequest, "^merge: "),
    (lambda g: g.merge("review", into="__schema_apply_lock__"), BadRequest, "^merge: "),
    (lambda g: g.branch_create("x", from_="__schema_apply_lock__"), BadRequest, "^branch create: "),
    (lambda g: g.query(ALL, branch="__schema_apply_lock__"), BadRequest, "^query: "),
    (lambda g: g.optimize("__schema_apply_lock__"), BadRequest, "^optimize: "),
    (lambda g: g.changes("__schema_apply_lock__"), BadRequest, "^changes: "),
    (lambda g: og.open(7), BadRequest, "a path or a URI"),  # type: ignore[arg-type]
    (lambda g: og.init("x", schema=7), BadRequest, "a schema is a text"),  # type: ignore[arg-type]
    (lambda g: og.init("x", schema="no.pg"), NotFound, "the schema file no.pg does not exist"),
    (lambda g: og.init(Path(g.uri).parent, schema=SCHEMA), BadRequest, "is not empty: it holds g.omni"),
]


@pytest.mark.parametrize("number", range(len(RAW)))
def test_wrong_arguments_are_answered_in_our_words(number: int, graph: og.Graph) -> None:
    call, kind, words = RAW[number]
    with pytest.raises(kind, match=words):
        call(graph)


def test_a_query_may_be_a_file_which_errors_name(graph: og.Graph, tmp_path: Path) -> None:
    good, bad, schema = tmp_path / "q.gq", tmp_path / "bad.gq", tmp_path / "bad.pg"
    good.write_text(ALL)
    bad.write_text("query q() { match { $p: Pers } return { $p } }")
    schema.write_text("node P {\n    k: Strin @key\n}\n")
    assert len(graph.query(good)) == 2
    for call in (lambda: graph.query(bad), lambda: graph.explain(bad)):
        with pytest.raises(OmniGraphError, match=r"bad\.gq:1:25"):
            call()
    for call in (
        lambda: graph.plan_schema(schema),
        lambda: graph.apply_schema(schema),
        lambda: og.init(tmp_path / "new", schema=schema),
        lambda: og.init(tmp_path / "new", schema=str(schema)),
    ):
        with pytest.raises(OmniGraphError, match=r"bad\.pg:2:8"):
            call()


def test_times_go_in_and_out_as_aware_datetimes(graph: og.Graph) -> None:
    commits = graph.log()
    newest = commits[0].created
    assert newest.tzinfo is UTC
    assert abs(datetime.now(UTC) - newest) < timedelta(minutes=10)
    assert graph.log(since=newest) == commits[:1]
    assert graph.log(since=newest.isoformat()) == commits[:1]
    assert graph.log(until=newest - timedelta(microseconds=1)) == commits[1:]
    assert graph.log(since=commits[0].created_at) == commits[:1]
    made = {ref.name: ref.created for ref in graph.branches.list()}
    assert made["review"] is not None
    assert made["review"] <= newest
    assert graph.tags.list()[0].created.tzinfo is UTC


def test_what_a_person_sees(graph: og.Graph) -> None:
    head = graph.head()
    assert repr(graph) == f"<Graph {graph.uri}, branch main, as act-ada>"
    assert f"{head.graph_commit_id}: {head.kind} on main by " in repr(head)
    assert "node:P 2 rows" in repr(graph.snapshot())
    assert repr(graph.catalog()) == "<Catalog: nodes P; edges K (P -> P)>"
    assert repr(graph.diff("main", "review")).startswith("<Diff from main at ")
    assert "would" not in repr(graph.merge("review", dry_run=True))
    assert "dry run" in repr(graph.merge("review", dry_run=True))
    assert "read-only" in repr(og.open(graph.uri, read_only=True))


def test_notebooks_get_tables_and_pictures(graph: og.Graph) -> None:
    shown: list[Any] = [graph, graph.snapshot(), graph.log(), graph.diff("main", "review"), graph.branches]
    shown += [graph.merge("review", dry_run=True), graph.query(ALL)]
    for value in shown:
        html = value._repr_html_()
        assert html.count("<table") == 1, value
        assert "<script" not in html
    assert "classDiagram" in graph.schema._repr_mimebundle_()["text/vnd.mermaid"]


def test_groups_are_second_names(graph: og.Graph) -> None:
    assert graph.branches.create == graph.branch_create
    assert graph.branches.merge == graph.merge
    assert graph.schema.apply == graph.apply_schema
    assert str(graph.schema) == graph.schema_source() == SCHEMA
    assert graph.schema.diagram().startswith("classDiagram")
    assert graph.maintenance.verify().ok
    assert repr(graph.maintenance).startswith("<MaintenanceGroup: cleanup, ensure_indices")


def test_an_export_replaces_nothing_in_silence(graph: og.Graph, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    graph.export(target)
    before = target.read_bytes()
    with pytest.raises(Conflict, match="--overwrite"):
        graph.export(target, types=["P"])
    assert target.read_bytes() == before
    graph.export(target, types=["P"], overwrite=True)
    assert target.read_bytes() != before
    graph.export(tmp_path / "out", format="parquet")
    with pytest.raises(Conflict, match="--overwrite"):
        graph.export(tmp_path / "out", format="parquet")
    with pytest.raises(BadRequest, match="is a file"):
        graph.export(target, format="parquet")


def test_an_export_to_a_directory_is_all_that_is_there_afterwards(graph: og.Graph, tmp_path: Path) -> None:
    target = tmp_path / "out"
    graph.export(target, format="parquet")
    earlier = target / "node-Gone" / "part-00003.parquet"
    earlier.parent.mkdir()
    earlier.write_bytes(b"of a type that there was once")
    for own in (target / "notes.txt", target / "node-P" / "notes.txt"):
        own.write_text("not of an export")
    graph.export(target, types=["P"], format="parquet", overwrite=True)
    left = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert left == ["node-P/notes.txt", "node-P/part-00000.parquet", "notes.txt"]
    assert not earlier.parent.exists()


def test_pages_of_changes_can_be_read_again(graph: og.Graph) -> None:
    page = graph.changes(limit=2)
    once = [[change.id for change in block.changes] for block in page.blocks]
    assert once == [[change.id for change in block.changes] for block in page.blocks]
    assert len(page) == 2
    assert [block.cursor for block in page] == [block.cursor for block in page.blocks]
