"""Branches with different schemas: schema and rows come together in one commit, or not at all."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts
from tests.merge.graphs import PERSON, SCHEMA, changed, content, drop, person, put, rows, store_of

WIDER = SCHEMA.replace("age: I32?", 'years: I64? @rename_from("age")\n    mood: String? @default("calm")').replace(
    "@range(age,", "@range(years,"
)
TAGGED = SCHEMA.replace("weight: F64?", "weight: F64?\n    tag: String?")


def refused(graph: og.Graph, source: str = "side", into: str = "main") -> list[tuple[str, str]]:
    before = graph.head(into)
    with pytest.raises(MergeConflicts) as caught:
        graph.merge(source, into)
    assert graph.head(into) == before
    return [(conflict.kind.value, conflict.message) for conflict in caught.value.conflicts]


def test_both_schemas_and_all_rows_land_in_one_commit(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1, mail="a@x"), person("b", age=2))
    graph.branch_create("side")
    old = graph.head().graph_commit_id
    graph.apply_schema(WIDER + "\nnode Cat { name: String @key }", branch="side")
    cat = {"type": "Cat", "data": {"name": "tom"}}
    put(graph, "side", cat, person("a", mood="glad"), person("c", years=100))
    graph.apply_schema(TAGGED)
    put(graph, "main", person("d", age=4, tag="new"))
    drop(graph, "main", "Person", "b")
    planned = graph.merge("side", dry_run=True)
    assert [(c.op.value, c.type, c.id) for c in planned.changes] == [
        ("insert", "Cat", "tom"),
        ("update", "Person", "a"),
        ("insert", "Person", "c"),
    ]
    versions = graph.snapshot().manifest_version
    result = graph.merge("side")
    assert graph.snapshot().manifest_version == versions + 1
    assert result.commit is not None
    assert result.commit.schema_digest == graph.snapshot().schema_digest
    found = {key: (row["years"], row["mood"], row["tag"], row["mail"]) for key, row in rows(graph, PERSON).items()}
    assert found == {
        "a": (1, "glad", None, "a@x"),
        "c": (100, "calm", None, None),
        "d": (4, "calm", "new", None),
    }
    assert list(rows(graph, "node:Cat")) == ["tom"]
    assert rows(graph, PERSON, old)["b"]["age"] == 2
    assert changed(graph, f"{result.commit.parent_commit_id}", "main") == [
        ("insert", "Cat", "tom"),
        ("update", "Person", "a"),
        ("insert", "Person", "c"),
    ]
    assert graph.merge("side").outcome == "already_up_to_date"
    assert graph.merge("main", "side").outcome == "fast_forward"
    assert content(graph) == content(graph, "side")
    put(graph, "side", person("c", years=101, tag="later"))
    graph.merge("side")
    assert rows(graph, PERSON)["c"]["years"] == 101
    assert graph.verify().findings == ()


def test_a_branch_without_writes_points_at_the_tables_of_main(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1))
    graph.branch_create("side")
    graph.apply_schema(WIDER)
    graph.merge("main", "side")
    pins = [store_of(graph).snapshot(at).pin(PERSON) for at in ("main", "side")]
    assert pins[0] == pins[1]


def test_a_dropped_type_and_property_go_and_what_was_written_to_them_meanwhile_is_a_conflict(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1, weight=1.5))
    for name in ("type", "property"):
        graph.branch_create(name)
    without_edge = SCHEMA.replace("edge Knows: Person -> Person {\n    since: I32?\n}\n", "")
    graph.apply_schema(without_edge, branch="type")
    graph.apply_schema(SCHEMA.replace("weight: F64?", ""), branch="property")
    graph.merge("type")
    graph.merge("property")
    assert "edge:Knows" not in graph.snapshot().tables
    assert "weight" not in rows(graph, PERSON)["a"]
    graph.branch_create("writes")
    graph.apply_schema(without_edge.replace("weight: F64?", "").replace("mail: String? @unique", ""))
    put(graph, "writes", person("a", mail="new@x"), person("z", mail="z@x"))
    [(kind, message)] = refused(graph, "writes")
    assert kind == "SchemaConflict"
    assert "`Person.mail` is dropped on the target, and 2 rows of the source got values in it since" in message
    graph.apply_schema(without_edge.replace("weight: F64?", "").replace("mail: String? @unique", ""), branch="writes")
    graph.merge("writes")
    assert sorted(rows(graph, PERSON)) == ["a", "z"]


def test_rules_of_one_side_are_checked_on_the_rows_of_the_other(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1, weight=1.0), person("b", age=2, weight=2.0))
    graph.branch_create("side")
    stricter = SCHEMA.replace("weight: F64?", "weight: F64\n    @unique(weight)").replace("0..150", "0..50")
    graph.apply_schema(stricter, branch="side")
    put(graph, "main", person("c", age=100, weight=1.0), person("d"))
    found = refused(graph)
    assert {kind for kind, _ in found} == {"ValueConstraintViolation", "UniqueViolation"}
    assert any("`weight`" in message and kind == "ValueConstraintViolation" for kind, message in found)
    assert any("0..50" in message for _, message in found)
    # And the other way round, where the rows of the source come to the stricter target.
    assert {kind for kind, _ in refused(graph, "main", "side")} == {"ValueConstraintViolation", "UniqueViolation"}
    put(graph, "main", person("c", age=10, weight=3.0), person("d", weight=4.0))
    graph.merge("side")
    assert sorted(rows(graph, PERSON)) == ["a", "b", "c", "d"]


def test_rows_that_the_source_mended_for_its_new_rule_do_not_stand_in_its_way(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1), person("b", age=140))
    graph.branch_create("side")
    put(graph, "side", person("a", weight=1.0), person("b", age=40, weight=2.0))
    graph.apply_schema(SCHEMA.replace("weight: F64?", "weight: F64").replace("0..150", "0..50"), branch="side")
    put(graph, "main", {"type": "City", "data": {"name": "x"}})
    assert graph.merge("side").outcome == "merged"
    assert {key: row["age"] for key, row in rows(graph, PERSON).items()} == {"a": 1, "b": 40}


def test_changes_of_one_thing_on_both_sides_are_named(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1))
    graph.branch_create("side")
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: I64?"), branch="side")
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: F64?"))
    [(kind, message)] = refused(graph)
    assert kind == "SchemaConflict"
    assert message == "the type of `Person.age` was changed on both sides: `I64` on the source, `F64` on the target"
    dry = graph.merge("side", dry_run=True)
    assert dry.outcome == "conflicts"
    assert dry.conflicts[0].table_key == PERSON


def test_no_strategy_and_no_answer_settles_a_schema(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1))
    graph.branch_create("side")
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: I64?"), branch="side")
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: F64?"))
    before = graph.head()
    for answers in ({"strategy": "ours"}, {"strategy": "theirs"}, {"resolutions": {(PERSON, "a"): "theirs"}}):
        with pytest.raises(MergeConflicts, match="settle rows, not schemas: apply to one of the branches") as caught:
            graph.merge("side", **answers)
        assert [conflict.kind.value for conflict in caught.value.conflicts] == ["SchemaConflict"]
    assert graph.head() == before
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: F64?"), branch="side")
    assert graph.merge("side").outcome == "merged"


def test_edges_of_a_new_type_need_the_nodes_that_the_target_still_has(graph: og.Graph) -> None:
    put(graph, "main", person("a"), person("b"))
    graph.branch_create("side")
    graph.apply_schema(SCHEMA + "\nedge Likes: Person -> Person", branch="side")
    put(graph, "side", {"edge": "Likes", "from": "a", "to": "b"})
    drop(graph, "main", "Person", "b")
    assert [kind for kind, _ in refused(graph)] == ["OrphanEdge"]
    put(graph, "main", person("b"))
    graph.merge("side", delete_source=True)
    assert len(rows(graph, "edge:Likes")) == 1


def test_divergent_rows_are_settled_under_the_merged_schema(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1), person("b", age=1))
    graph.branch_create("side")
    graph.apply_schema(WIDER, branch="side")
    put(graph, "side", person("a", years=2), person("b", years=2))
    put(graph, "main", person("a", age=3), person("b", weight=1.0))
    assert [kind for kind, _ in refused(graph)] == ["DivergentUpdate", "DivergentUpdate"]
    graph.merge("side", granularity="property", resolutions={(PERSON, "a"): {"years": 9}})
    found = {key: (row["years"], row["mood"], row["weight"]) for key, row in rows(graph, PERSON).items()}
    assert found == {"a": (9, "calm", None), "b": (2, "calm", 1.0)}


def test_rows_keep_the_default_that_a_property_came_with(graph: og.Graph) -> None:
    put(graph, "main", person("a"))
    graph.branch_create("side")
    graph.apply_schema(SCHEMA.replace("weight: F64?", 'weight: F64?\n    mood: String @default("calm")'), branch="side")
    graph.apply_schema(SCHEMA.replace("weight: F64?", 'weight: F64?\n    mood: String @default("wild")'), branch="side")
    put(graph, "side", person("b"))
    put(graph, "main", person("c"))
    graph.merge("side")
    assert {key: row["mood"] for key, row in rows(graph, PERSON).items()} == {"a": "calm", "b": "wild", "c": "calm"}


def test_a_criss_cross_of_schemas(graph: og.Graph) -> None:
    put(graph, "main", person("a", age=1))
    graph.branch_create("side")
    graph.apply_schema(WIDER, branch="side")
    graph.apply_schema(TAGGED)
    left, right = graph.head("side").graph_commit_id, graph.head().graph_commit_id
    for name, commit in (("left", left), ("right", right)):
        graph.branch_create(name, commit)
    graph.merge("left")
    graph.merge("right", "side")
    both = graph.schema_source("side")
    graph.apply_schema(both.replace("tag: String?", ""), branch="side")
    put(graph, "main", person("a", years=5))
    graph.merge("side")
    assert "tag" not in rows(graph, PERSON)["a"]
    assert rows(graph, PERSON)["a"]["years"] == 5


def test_a_criss_cross_of_schemas_knows_what_a_row_was_before(graph: og.Graph) -> None:
    """Both common ancestors have other columns than the merged type: their rows are read as it sees them."""
    put(graph, "main", person("a", age=1), person("b", age=1))
    graph.branch_create("side")
    graph.apply_schema(WIDER, branch="side")
    put(graph, "side", person("a", years=2))
    graph.apply_schema(TAGGED)
    put(graph, "main", person("b", tag="t"))
    for name, commit in (("left", graph.head("side")), ("right", graph.head())):
        graph.branch_create(name, commit.graph_commit_id)
    graph.merge("left")
    graph.merge("right", "side")
    put(graph, "main", person("a", tag="x"))
    put(graph, "side", person("b", years=3))
    graph.merge("side")
    found = rows(graph, PERSON)
    assert {key: (row["years"], row["tag"]) for key, row in found.items()} == {"a": (2, "x"), "b": (3, "t")}
