"""Mutations: statements in order over one snapshot, one commit, or nothing."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import (
    BadRequest,
    KeyConflict,
    PreconditionFailed,
    QueryParseError,
    QueryTypeError,
    ValidationFailed,
)
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.store import GraphStore
from omnigraph.write.mutate.mutate import mutate
from tests.write.graphs import company, edge, fill, ids, person, rows, run


@pytest.fixture
def people(store: GraphStore) -> GraphStore:
    fill(
        store, person("ada", name="Ada", age=36), person("bob", name="Bob", age=20), company("acme"), company("initech")
    )
    return store


def kinds(failed: pytest.ExceptionInfo[ValidationFailed]) -> dict[str, int]:
    return failed.value.counts


def test_an_insert_makes_one_row_and_one_commit(store: GraphStore):
    before = store.snapshot().head.graph_commit_id
    result = mutate(
        store, "query q($s: String) { insert Person { slug: $s, age: 3 } }", params={"s": "eve"}, actor="act-x"
    )
    assert (result.affected_nodes, result.affected_edges) == (1, 0)
    assert result.commit is not None
    assert result.commit.parent_commit_id == before
    assert result.commit.actor_id == "act-x"
    assert store.snapshot().head == result.commit
    assert rows(store, "node:Person") == [
        {"id": "eve", "slug": "eve", "name": None, "age": 3, "status": None, "mail": None}
    ]


def test_the_result_is_json_as_the_surfaces_print_it(store: GraphStore):
    result = run(store, "insert Person { slug: $s }", s="eve")
    assert list(result.to_json()) == [
        "branch",
        "query_name",
        "affected_nodes",
        "affected_edges",
        "inserted_ids",
        "commit",
    ]
    assert result.to_json()["commit"]["graph_commit_id"] == result.commit.graph_commit_id


def test_inserting_an_existing_key_updates_the_given_values_only(people: GraphStore):
    result = run(people, 'insert Person { slug: "ada", age: 37 }')
    assert result.affected_nodes == 1
    assert rows(people, "node:Person")[0] | {"age": 37, "name": "Ada"} == rows(people, "node:Person")[0]


def test_a_keyed_edge_is_inserted_or_updated(people: GraphStore):
    run(people, 'insert Rates { from: "ada", to: "acme", stars: 3 }')
    run(people, 'insert Rates { from: "ada", to: "acme", stars: 4 }')
    assert [(row["id"], row["stars"]) for row in rows(people, "edge:Rates")] == [('["ada","acme"]', 4)]


def test_an_unkeyed_row_is_always_new(people: GraphStore):
    for _ in range(2):
        run(people, 'insert Note { text: "same" }')
        run(people, 'insert Knows { from: "ada", to: "bob" }')
    assert len(ids(people, "node:Note")) == 2
    assert len(ids(people, "edge:Knows")) == 2


def test_an_id_that_is_given_for_an_unkeyed_row_must_be_free(people: GraphStore):
    run(people, 'insert Note { id: "n1", text: "a" }')
    with pytest.raises(KeyConflict, match='id "n1" exists already'):
        run(people, 'insert Note { id: "n1", text: "b" }')
    with pytest.raises(KeyConflict, match='"n2"'):
        run(people, 'insert Note { id: "n2", text: "b" } insert Note { id: "n2", text: "c" }')


def test_a_default_fills_what_an_insert_leaves_out_and_an_update_keeps_it(people: GraphStore):
    assert rows(people, "node:Company")[0]["listed"] is False
    run(people, 'insert Company { name: "acme", listed: true }')
    run(people, 'insert Company { name: "acme", size: 5 }')
    assert rows(people, "node:Company")[0]["listed"] is True


def test_every_type_of_value_can_be_inserted(store: GraphStore):
    mutate(
        store,
        """query q($logo: Blob, $shape: Vector(2), $tags: [String]) {
             insert Company { name: "c", size: 9007199254740993, rank: 0.5, born: date("2026-01-02"),
                              seen: datetime("2026-01-02T03:04:05Z"), listed: true, tags: $tags, shape: $shape,
                              logo: $logo } }""",
        params={"logo": "aGk=", "shape": [1, 2], "tags": ["a", "b"]},
    )
    (row,) = rows(store, "node:Company")
    assert row["logo"] == b"hi"
    assert (row["size"], row["rank"], row["tags"], row["shape"]) == (9007199254740993, 0.5, ["a", "b"], [1.0, 2.0])
    assert row["seen"] == datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    run(store, 'update Company set { size: 1 } where name = "c"')
    (row,) = rows(store, "node:Company")
    assert (row["logo"], row["size"]) == (b"hi", 1)


def test_a_blob_may_be_given_by_a_uri_that_is_read_at_once(store: GraphStore, tmp_path: Path):
    run(store, 'insert Company { name: "c", logo: "data:text/plain;base64,aGk=" }')
    query = "query q($logo: Blob) { insert Company { name: $n, logo: $logo } }".replace("$n", '"d"')
    mutate(store, query, params={"logo": "data:,plain"})
    (tmp_path / "a logo").write_bytes(b"from a file")
    run(store, f'insert Company {{ name: "e", logo: "{(tmp_path / "a logo").as_uri()}" }}')
    (tmp_path / "a logo").unlink()
    assert [row["logo"] for row in rows(store, "node:Company")] == [b"hi", b"plain", b"from a file"]
    for uri, words in {
        (tmp_path / "gone").as_uri(): "there is no such file",
        tmp_path.as_uri(): "cannot be read: Is a directory",
        "file://host/x": "by its whole path",
        "http://host/x": "not from http:; give the bytes as base64",
        "data:no-comma": "a comma before its content",
    }.items():
        with pytest.raises(BadRequest, match=words):
            mutate(store, query, params={"logo": uri})
    with override(blob_uris="data,s3"), pytest.raises(BadRequest, match="does not allow to read from file://"):
        mutate(store, query, params={"logo": (tmp_path / "a logo").as_uri()})


def test_a_row_with_blobs_and_vectors_is_found_by_a_predicate_that_cannot_be_looked_up(store: GraphStore):
    run(store, 'insert Company { name: "c", rank: 0.5, logo: "aGk=" } insert Company { name: "d", rank: 2.5 }')
    assert run(store, "update Company set { size: 3 } where rank < 1.0").affected_nodes == 1
    assert [(row["size"], row["logo"]) for row in rows(store, "node:Company")] == [(3, b"hi"), (None, None)]


def test_now_is_one_instant_per_run(store: GraphStore):
    run(store, 'insert Company { name: "a", seen: now() } insert Company { name: "b", seen: now() }')
    first, second = (row["seen"] for row in rows(store, "node:Company"))
    assert first == second
    assert abs((datetime.datetime.now(datetime.UTC) - first).total_seconds()) < 60


def test_statements_see_what_earlier_ones_wrote(store: GraphStore):
    result = run(
        store,
        """insert Person { slug: "a", age: 1 }
           insert Person { slug: "b", age: 2 }
           update Person set { age: 9 } where age >= 2
           insert Knows { from: "a", to: "b" }
           insert Person { slug: "a", name: "A" }""",
    )
    assert (result.affected_nodes, result.affected_edges) == (2, 1)
    assert [(row["age"], row["name"]) for row in rows(store, "node:Person")] == [(1, "A"), (9, None)]


def test_an_update_sees_pending_rows_in_the_place_of_committed_ones(people: GraphStore):
    run(
        people,
        """update Person set { age: 50 } where slug = "ada"
           update Person set { name: "old" } where age >= 50
           update Person set { name: "young" } where age < 40""",
    )
    assert [(row["age"], row["name"]) for row in rows(people, "node:Person")] == [(50, "old"), (20, "young")]


def test_ten_statements_on_one_table_are_one_table_commit(store: GraphStore):
    before = store.snapshot().pin("node:Person").version
    run(
        store,
        " ".join(
            f'insert Person {{ slug: "p{n}" }} update Person set {{ age: {n} }} where slug = "p{n}"' for n in range(5)
        ),
    )
    assert store.snapshot().pin("node:Person").version == before + 1
    assert [row["age"] for row in rows(store, "node:Person")] == [0, 1, 2, 3, 4]


def test_update_and_delete_take_predicates_over_properties(people: GraphStore):
    fill(people, person("cyd", age=40, status="retired"), person("dan", mail="d@x"))
    assert run(people, 'update Person set { age: 1 } where age > 30 and not (status = "retired")').affected_nodes == 0
    assert run(people, 'update Person set { age: 1 } where slug in ["ada", "cyd"] and age >= 36').affected_nodes == 2
    assert (
        run(people, 'update Person set { mail: "b@x" } where name starts_with "B" or name contains "zz"').affected_nodes
        == 1
    )
    assert run(people, "delete Person where age = null").affected_nodes == 1
    assert ids(people, "node:Person") == ["ada", "bob", "cyd"]


def test_an_edge_can_be_updated_but_not_its_ends(people: GraphStore):
    fill(people, edge("Knows", "ada", "bob", strength=1), edge("Knows", "bob", "ada", strength=1))
    assert run(people, 'update Knows set { strength: 5 } where from = "ada"').affected_edges == 1
    assert {(row["src"], row["strength"]) for row in rows(people, "edge:Knows")} == {("ada", 5), ("bob", 1)}
    with pytest.raises(QueryTypeError):
        run(people, 'update Knows set { to: "ada" } where from = "ada"')


def test_a_key_cannot_be_updated_and_the_error_says_what_to_do(people: GraphStore):
    with pytest.raises(QueryTypeError, match="delete the row and insert"):
        run(people, 'update Person set { slug: "x" } where slug = "ada"')


def test_deleting_a_node_deletes_the_edges_that_touch_it_on_every_type(people: GraphStore):
    fill(
        people,
        edge("Knows", "ada", "bob"),
        edge("Knows", "bob", "ada"),
        edge("Knows", "bob", "bob"),
        edge("Knows", "ada", "ada"),
        edge("WorksAt", "ada", "acme"),
        edge("Rates", "bob", "acme", stars=1),
    )
    result = run(people, 'delete Person where slug = "ada"')
    assert (result.affected_nodes, result.affected_edges) == (1, 4)
    assert [(row["src"], row["dst"]) for row in rows(people, "edge:Knows")] == [("bob", "bob")]
    assert ids(people, "edge:WorksAt") == []
    assert len(ids(people, "edge:Rates")) == 1
    assert run(people, 'delete Company where name = "acme"').affected_edges == 1


def test_an_edge_deleted_twice_in_one_query_counts_once(people: GraphStore):
    fill(people, edge("Knows", "ada", "bob", strength=7))
    result = run(
        people, 'delete Knows where strength = 7 delete Person where slug = "ada" delete Person where slug = "bob"'
    )
    assert (result.affected_nodes, result.affected_edges) == (2, 1)


def test_mixing_inserts_and_deletes_is_refused_while_parsing(people: GraphStore):
    with pytest.raises((QueryParseError, QueryTypeError), match="mixes inserts/updates and deletes"):
        run(people, 'insert Person { slug: "x" } delete Person where slug = "ada"')


@pytest.mark.parametrize(
    "body",
    [
        'update Person set { age: 36 } where slug = "ada"',
        'update Person set { age: 5 } where slug = "nobody"',
        'delete Person where slug = "nobody"',
        'insert Person { slug: "ada", age: 36, name: "Ada" }',
        'update Person set { age: 1 } where slug = "ada" update Person set { age: 36 } where slug = "ada"',
    ],
)
def test_a_mutation_that_changes_nothing_publishes_nothing(people: GraphStore, body: str):
    before = people.snapshot()
    result = run(people, body)
    assert (result.affected_nodes, result.affected_edges, result.commit) == (0, 0, None)
    assert result.to_json()["commit"] is None
    assert people.snapshot() == before


def test_an_edge_needs_both_ends_to_exist_after_the_write(people: GraphStore):
    with pytest.raises(ValidationFailed) as failed:
        run(people, 'insert Knows { from: "ada", to: "zoe" } insert WorksAt { from: "yan", to: "acme" }')
    assert kinds(failed) == {"missing_endpoint": 2}
    assert '`to` names Person "zoe", which does not exist' in str(failed.value)
    run(people, 'insert Knows { from: "ada", to: "zoe" } insert Person { slug: "zoe" }')


def test_unique_tuples_count_pending_and_committed_rows_and_exempt_nulls(people: GraphStore):
    run(people, 'update Person set { mail: "a@x" } where slug = "ada"')
    with pytest.raises(ValidationFailed, match=r"@unique\(mail\) is broken by mail=\"a@x\", row \"ada\" has the same"):
        run(people, 'update Person set { mail: "a@x" } where slug = "bob"')
    with pytest.raises(ValidationFailed) as failed:
        run(people, 'insert Person { slug: "x", mail: "n@x" } insert Person { slug: "y", mail: "n@x" }')
    assert kinds(failed) == {"unique": 1}
    with pytest.raises(ValidationFailed):
        run(people, 'insert Person { slug: "z", name: "Ada", age: 36 }')
    run(people, 'insert Person { slug: "z", name: "Ada" } insert Person { slug: "w", name: "Ada" }')
    run(
        people,
        'update Person set { mail: "m@x" } where slug = "ada" update Person set { mail: "a@x" } where slug = "bob"',
    )


def test_cardinality_counts_the_edges_after_the_write(people: GraphStore):
    run(people, 'insert WorksAt { from: "ada", to: "acme" }')
    with pytest.raises(ValidationFailed) as failed:
        run(people, 'insert WorksAt { from: "ada", to: "initech" }')
    assert kinds(failed) == {"cardinality": 1}
    with pytest.raises(ValidationFailed) as failed:
        run(people, 'insert WorksAt { from: "bob", to: "initech" } insert WorksAt { from: "bob", to: "acme" }')
    assert kinds(failed) == {"cardinality": 1}


def test_the_least_cardinality_holds_for_sources_that_have_an_edge(people: GraphStore):
    with pytest.raises(ValidationFailed, match="would have 1 of these edges"):
        run(people, 'insert Owns { from: "acme", to: "initech" }')
    run(people, 'insert Owns { from: "acme", to: "initech" } insert Owns { from: "acme", to: "acme" }')
    with pytest.raises(ValidationFailed) as failed:
        run(people, 'delete Owns where to = "initech"')
    assert kinds(failed) == {"cardinality": 1}
    assert run(people, 'delete Owns where from = "acme"').affected_edges == 2
    run(people, 'insert Owns { from: "acme", to: "initech" } insert Owns { from: "acme", to: "acme" }')
    with pytest.raises(ValidationFailed):
        run(people, 'delete Company where name = "initech"')


def test_value_rules_hold_for_what_is_written(people: GraphStore):
    with pytest.raises(ValidationFailed) as failed:
        run(people, 'insert Person { slug: "UP", age: 200 } update Person set { age: 151 } where slug = "ada"')
    assert kinds(failed) == {"range": 2, "check": 1}


def test_a_refused_mutation_names_the_rows(people: GraphStore):
    with pytest.raises(ValidationFailed, match='node:Person "bob": `age` must lie in'):
        run(people, 'update Person set { age: 151 } where slug = "bob"')


def test_a_refused_mutation_leaves_nothing(people: GraphStore):
    before = people.snapshot()
    files = set(_files(people))
    with pytest.raises(ValidationFailed):
        run(people, 'insert Person { slug: "x" } insert Knows { from: "x", to: "nobody" }')
    assert people.snapshot() == before
    assert set(_files(people)) == files


def _files(store: GraphStore) -> list[str]:
    import os

    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(store.root.uri.removeprefix("file://"))
        for name in names
        if "__locks" not in folder
    ]


def test_if_commit_holds_the_write_to_what_its_author_saw(people: GraphStore):
    head = people.snapshot().head.graph_commit_id
    query = 'query q($a: I32) { update Person set { age: $a } where slug = "ada" }'
    changed = mutate(people, query, params={"a": 40}, if_commit=head)
    assert changed.commit is not None
    with pytest.raises(PreconditionFailed):
        mutate(people, query, params={"a": 41}, if_commit=head)
    assert rows(people, "node:Person")[0]["age"] == 40


def test_a_mutation_on_a_branch_leaves_the_others_alone(people: GraphStore):
    create_branch(people, "review/1")
    run(people, 'update Person set { age: 1 } where slug = "ada"', branch="review/1")
    run(people, 'insert Person { slug: "new" }', branch="review/1")
    assert rows(people, "node:Person", "review/1")[0]["age"] == 1
    assert rows(people, "node:Person")[0]["age"] == 36
    assert "new" not in ids(people, "node:Person")


def test_a_read_is_refused_with_what_to_use(people: GraphStore):
    with pytest.raises(BadRequest, match="run it with `query`"):
        mutate(people, "query q() { match { $p: Person } return { $p } }")


def test_a_parameter_that_is_missing_or_ill_typed_is_named(people: GraphStore):
    with pytest.raises(BadRequest, match=r"\$s"):
        mutate(people, "query q($s: String) { insert Person { slug: $s } }")
    with pytest.raises(BadRequest, match=r"\$a"):
        mutate(people, 'query q($a: I32) { insert Person { slug: "x", age: $a } }', params={"a": "no"})
