"""The difference between any two states: exact, ordered, filtered, blind to rewrites, and bounded in memory."""

from __future__ import annotations

import tracemalloc

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, HistoryGap, NotFound
from omnigraph.ledger.snapshots import table_of
from omnigraph.merge.changes import EntityChange, Op
from tests.ledger.graphs import counted
from tests.merge.graphs import CITY, KNOWS, PERSON, SCHEMA, changed, city, drop, knows, person, put, store_of


def test_changes_have_exact_images_and_the_ends_of_edges(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1), person("b"), knows("k", "a", "b", since=1))
    before = graph.head().graph_commit_id
    put(graph, "main", person("a", age=2), knows("k", "a", "b", since=2))
    node, edge = graph.diff(before, "main")
    assert (node.kind, node.type, node.id, node.op.value, node.endpoints) == ("node", "Person", "a", "update", None)
    assert node.before == {"@id": "a", "slug": "a", "age": 1, "mail": None, "weight": None}
    assert node.after == {"@id": "a", "slug": "a", "age": 2, "mail": None, "weight": None}
    assert node.changed_fields == ("age",)
    assert (edge.kind, edge.type, edge.endpoints) == ("edge", "Knows", ("a", "b"))
    assert edge.before == {"@id": "k", "@src": "a", "@dst": "b", "since": 1}
    assert edge.to_json()["endpoints"] == {"from": "a", "to": "b"}


def test_the_order_is_nodes_before_edges_then_type_then_id(graph: og.Graph) -> None:
    start = graph.head().graph_commit_id
    put(graph, "main", knows("k", "z", "a"), person("z"), person("a"), city("rome"), city("oslo"), person("B"))
    assert changed(graph, start, "main") == [
        ("insert", "City", "oslo"),
        ("insert", "City", "rome"),
        ("insert", "Person", "B"),
        ("insert", "Person", "a"),
        ("insert", "Person", "z"),
        ("insert", "Knows", "k"),
    ]


def test_any_two_targets_work(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1))
    graph.tags.create("start", "main")
    version = graph.head().manifest_version
    graph.branch_create("side")
    put(graph, "side", person("s", age=1))
    graph.branch_create("child", "side")
    put(graph, "child", person("a", age=2))
    put(graph, "main", person("m", age=1))
    assert changed(graph, "side", "main") == [("insert", "Person", "m"), ("delete", "Person", "s")]
    assert changed(graph, "main", "side") == [("delete", "Person", "m"), ("insert", "Person", "s")]
    assert changed(graph, "start", "child") == [("update", "Person", "a"), ("insert", "Person", "s")]
    assert changed(graph, "child", "start") == [("update", "Person", "a"), ("delete", "Person", "s")]
    assert changed(graph, str(version), "main") == [("insert", "Person", "m")]
    assert changed(graph, graph.head("side").graph_commit_id, "child") == [("update", "Person", "a")]
    assert changed(graph, "main", "main") == []


def test_filters(graph: og.Graph) -> None:
    put(graph, "main", person("a"), person("b"), city("rome"))
    start = graph.head().graph_commit_id
    put(graph, "main", person("c"), person("a", age=1), knows("k", "a", "b"), city("oslo"))
    drop(graph, "main", "City", "rome", by="name")
    assert changed(graph, start, "main", kinds=["edge"]) == [("insert", "Knows", "k")]
    assert changed(graph, start, "main", types=["knows"]) == [("insert", "Knows", "k")]
    assert changed(graph, start, "main", types=["City"]) == [("insert", "City", "oslo"), ("delete", "City", "rome")]
    assert changed(graph, start, "main", ops=["update"]) == [("update", "Person", "a")]
    assert changed(graph, start, "main", kinds=["node"], ops=["delete"]) == [("delete", "City", "rome")]
    summary = graph.diff(start, "main").summary()
    assert [(c.table_key, c.inserts, c.updates, c.deletes) for c in summary] == [
        (CITY, 1, 0, 1),
        (PERSON, 1, 1, 0),
        (KNOWS, 1, 0, 0),
    ]
    with pytest.raises(BadRequest, match="`vertex` is no kind"):
        graph.diff(start, "main", kinds=["vertex"])
    with pytest.raises(BadRequest, match="`upsert` is no operation"):
        graph.diff(start, "main", ops=["upsert"])
    with pytest.raises(NotFound, match="Person"):
        list(graph.diff(start, "main", types=["Persn"]))


def test_a_rewrite_that_changed_no_value_is_no_change(graph: og.Graph) -> None:
    for number in range(6):
        put(graph, "main", person(f"p{number}", age=number))
    drop(graph, "main", "Person", "p5")
    start = graph.head().graph_commit_id
    graph.branch_create("side")
    assert graph.optimize().commit is not None
    put(graph, "main", person("p0", age=0))
    put(graph, "main", person("p1", age=9))
    put(graph, "main", person("p1", age=1), person("brief"))
    drop(graph, "main", "Person", "brief", "p2")
    put(graph, "main", person("p2", age=2))
    graph.optimize()
    assert changed(graph, start, "main") == []
    assert changed(graph, "main", "side") == []
    assert graph.diff(start, "main").summary() == ()
    put(graph, "main", person("p3", age=30))
    assert changed(graph, "side", "main") == [("update", "Person", "p3")]


def test_changes_after_an_overwrite_are_exact(graph: og.Graph) -> None:
    put(graph, "main", *(person(f"p{n}", age=n) for n in range(5)))
    start = graph.head().graph_commit_id
    graph.load([person(f"p{n}", age=n if n != 3 else 33) for n in range(1, 6)], mode="overwrite")
    assert changed(graph, start, "main") == [
        ("delete", "Person", "p0"),
        ("update", "Person", "p3"),
        ("insert", "Person", "p5"),
    ]


def test_changes_are_exact_when_the_lineage_was_cleaned_up(graph: og.Graph) -> None:
    put(graph, "main", *(person(f"p{n}", age=n) for n in range(5)))
    start = graph.head().graph_commit_id
    first = graph.snapshot().pin(PERSON)
    graph.branch_create("side")
    put(graph, "side", person("p1", age=11))
    put(graph, "main", person("p2", age=22))
    middle = graph.snapshot().pin(PERSON)
    put(graph, "main", person("p3", age=33))
    drop(graph, "main", "Person", "p4")
    store = store_of(graph)
    store.tables.remove_versions(middle.location, None, [middle.version])
    assert changed(graph, start, "main") == [
        ("update", "Person", "p2"),
        ("update", "Person", "p3"),
        ("delete", "Person", "p4"),
    ]
    store.tables.remove_versions(first.location, None, [first.version])
    assert changed(graph, "side", "main") == [
        ("update", "Person", "p1"),
        ("update", "Person", "p2"),
        ("update", "Person", "p3"),
        ("delete", "Person", "p4"),
    ]


def test_a_state_that_was_cleaned_up_is_a_gap(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1))
    old = graph.head().graph_commit_id
    pin = graph.snapshot().pin(PERSON)
    put(graph, "main", person("a", age=2))
    put(graph, "main", person("a", age=3))
    store = store_of(graph)
    store.tables.remove_versions(pin.location, None, [pin.version])
    with pytest.raises(HistoryGap, match="cleanup") as caught:
        list(graph.diff(old, "main"))
    assert caught.value.details["graph_commit_id"] == old


def test_changes_of_blobs_are_shown_by_their_digests(graph: og.Graph) -> None:
    put(graph, "main", city("rome", map="b25l"), city("oslo", map="b25l"))
    start = graph.head().graph_commit_id
    put(graph, "main", city("rome", map="dHdv"), city("oslo", map="b25l"))
    (change,) = graph.diff(start, "main")
    ((name, old, new),) = change.differing()
    assert change.changed_fields == (name,) == ("map",)
    assert {old[:7], new[:7]} == {"sha256:"}
    expected = {"@id": "rome", "name": "rome", "founded": None, "seen": None, "tags": None}
    assert change.before == change.after == expected == graph.entity("City", "rome")


def test_tables_that_nobody_touched_are_never_opened(graph: og.Graph) -> None:
    put(graph, "main", person("a"), person("b"), city("rome"), knows("k", "a", "b"))
    graph.branch_create("side")
    put(graph, "side", person("a", age=1))
    put(graph, "main", person("b", age=2))
    touched = graph.snapshot().pin(PERSON).location
    with og.open(graph.uri) as fresh:
        with counted(store_of(fresh)) as calls:
            assert len(list(fresh.diff("main", "side"))) == 2
        opened = {name.removeprefix("open ") for name in calls if name.startswith("open ")}
        assert opened <= {touched, "__manifest", "_graph_commits.lance"}
    with og.open(graph.uri) as fresh:
        with counted(store_of(fresh)) as calls:
            fresh.merge("side")
        opened = {name.removeprefix("open ") for name in calls if name.startswith("open ")}
        assert opened <= {touched, "__manifest", "_graph_commits.lance"}


def test_what_a_schema_change_did_to_all_rows_is_no_change_of_theirs(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1), person("b", age=1), city("rome", tags=["x"]))
    start = graph.head().graph_commit_id
    source = graph.schema_source()
    source = source.replace("age: I32?", 'years: I32? @rename_from("age")\n    mood: String @default("calm")')
    source = source.replace("@range(age,", "@range(years,").replace("tags: [String]?", "")
    graph.apply_schema(source, allow_data_loss=False)
    assert changed(graph, start, "main") == []
    assert changed(graph, "main", start) == []
    put(graph, "main", person("a", mood="wild"))
    (change,) = graph.diff(start, "main")
    assert change.differing() == (("mood", "calm", "wild"),)
    (back,) = graph.diff("main", start)
    assert back.differing() == (("mood", "wild", "calm"),)
    assert change.before is not None
    assert change.after is not None
    assert (change.id, change.before["age"], change.after["years"], change.after["mood"]) == ("a", 1, 1, "wild")


def test_a_property_is_compared_with_the_default_it_came_with(graph: og.Graph) -> None:
    put(graph, "main", person("a"), person("b"))
    start = graph.head().graph_commit_id
    for default in ("calm", "wild"):
        mood = f'mail: String? @unique\n    mood: String @default("{default}")'
        graph.apply_schema(SCHEMA.replace("mail: String? @unique", mood))
    assert changed(graph, start, "main") == []
    put(graph, "main", person("c"), person("b", mood="wild"))
    assert changed(graph, start, "main") == [("update", "Person", "b"), ("insert", "Person", "c")]
    assert changed(graph, "main", start) == [("update", "Person", "b"), ("delete", "Person", "c")]


def test_rows_of_a_type_that_was_dropped_go_before_those_of_one_made_again_come(graph: og.Graph) -> None:
    cat = "node Cat { name: String @key }"
    tom = {"type": "Cat", "data": {"name": "tom"}}
    graph.apply_schema(SCHEMA + cat)
    graph.load([tom], mode="append")
    start = graph.head().graph_commit_id
    graph.apply_schema(SCHEMA)
    graph.apply_schema(SCHEMA + cat)
    graph.load([tom], mode="append")
    assert changed(graph, start, "main") == [("delete", "Cat", "tom"), ("insert", "Cat", "tom")]
    (counts,) = graph.diff(start, "main").summary()
    assert (counts.inserts, counts.updates, counts.deletes) == (1, 0, 1)


def test_a_type_is_found_by_every_name_that_it_has_in_the_states(graph: og.Graph) -> None:
    put(graph, "main", person("a"))
    start = graph.head().graph_commit_id
    source = graph.schema_source().replace("node Person {", 'node Human @rename_from("Person") {')
    graph.apply_schema(source.replace("Person ->", "Human ->").replace("-> Person", "-> Human"))
    graph.load([{"type": "Human", "data": {"slug": "b"}}], mode="append")
    for name in ("Person", "Human"):
        assert changed(graph, start, "main", types=[name]) == [("insert", "Human", "b")]


@pytest.mark.slow
def test_a_large_difference_streams(graph: og.Graph) -> None:
    count = 60_000
    start = graph.head().graph_commit_id
    graph.load([{"slug": f"p{n:06}", "age": n % 90, "mail": f"{n}@" + "x" * 100} for n in range(count)],
               type="Person", mode="append")  # fmt: skip
    list(graph.diff(start, start))
    tracemalloc.start()
    seen = 0
    last = ""
    for change in graph.diff(start, "main"):
        seen += 1
        assert change.id > last
        last = change.id
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == count
    assert peak < 40 << 20, f"{peak >> 20} MiB of Python objects at once"


def test_a_merge_builds_no_index(graph: og.Graph) -> None:
    put(graph, "main", person("a"))
    graph.optimize()
    graph.branch_create("side")
    put(graph, "side", person("b"))
    graph.merge("side")
    store = store_of(graph)
    indexes = store.tables.list_indexes(table_of(store.snapshot().pin(PERSON)))
    assert indexes
    assert all(len(index.uncovered_fragments) == 1 for index in indexes)


def test_a_number_and_no_number_are_told_apart_either_way() -> None:
    nan = float("nan")
    for old, new, differs in ((nan, 1.0, True), (1.0, nan, True), (nan, None, True), (nan, nan, False)):
        change = EntityChange("node", "Person", "a", Op.UPDATE, {"weight": old}, {"weight": new})
        assert change.changed_fields == (("weight",) if differs else ())
