"""What a write leans on, counted: these tables and no others. A premise too many is a conflict with a stranger."""

from __future__ import annotations

import pytest

from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.store import GraphStore
from omnigraph.write.load.load import load
from omnigraph.write.mutate.combined import mutate_combined
from omnigraph.write.mutate.mutate import mutate
from tests.write.graphs import company, edge, fill, person

PERSON, COMPANY, KNOWS, WORKS, RATES, OWNS = (
    "node:Person",
    "node:Company",
    "edge:Knows",
    "edge:WorksAt",
    "edge:Rates",
    "edge:Owns",
)

MUTATIONS = [
    ('insert Person { slug: "new" }', {PERSON}),
    ('insert Person { slug: "ada", age: 3 }', {PERSON}),
    ('insert Note { text: "t" }', {"node:Note"}),
    ('update Person set { age: 5 } where slug = "ada"', {PERSON}),
    ('update Person set { mail: "x@y" } where age = 5', {PERSON}),
    ('update Company set { size: 5 } where name = "acme"', {COMPANY}),
    ('insert Knows { from: "ada", to: "bob" }', {KNOWS, PERSON}),
    ('update Knows set { strength: 5 } where src = "ada"', {KNOWS}),
    ('delete Knows where src = "bob"', {KNOWS}),
    ('insert WorksAt { from: "bob", to: "acme" }', {WORKS, PERSON, COMPANY}),
    ('insert Rates { from: "bob", to: "acme", stars: 2 }', {RATES, PERSON, COMPANY}),
    ('update Rates set { stars: 4 } where src = "ada"', {RATES}),
    ('delete Company where name = "initech"', {COMPANY, WORKS, RATES, OWNS}),
    ('delete Person where slug = "carl"', {PERSON, KNOWS, WORKS, RATES}),
]


@pytest.fixture
def filled(store: GraphStore) -> GraphStore:
    people = [person("ada", age=40), person("bob"), person("carl"), person("dora")]
    edges = [edge("Knows", "ada", "carl"), edge("Knows", "bob", "ada"), edge("WorksAt", "ada", "acme")]
    fill(store, *people, company("acme"), company("initech"), *edges, edge("Rates", "ada", "acme", stars=1))
    return store


def premises(store: GraphStore) -> list[WriteIntent]:
    """The intents of everything that is committed from now on."""
    noted: list[WriteIntent] = []
    store.after_commit.append(noted.append)
    return noted


def test_a_mutation_leans_on_exactly_the_tables_that_its_meaning_needs(filled: GraphStore):
    noted = premises(filled)
    for body, expected in MUTATIONS:
        mutate(filled, f"query q() {{ {body} }}")
        assert noted[-1].guarded_keys == expected, body
    assert len(noted) == len(MUTATIONS)


def test_a_combined_commit_leans_on_what_its_members_lean_on(filled: GraphStore):
    noted = premises(filled)
    mutate_combined(filled, 'query q() { update Person set { age: 6 } where slug = "ada" }')
    assert noted[-1].guarded_keys == {PERSON}
    mutate_combined(filled, 'query q() { insert Knows { from: "ada", to: "dora" } }')
    assert noted[-1].guarded_keys == {KNOWS, PERSON}


def test_a_load_leans_on_the_tables_of_its_records_and_of_their_ends(filled: GraphStore):
    noted = premises(filled)
    for records, mode, expected in [
        ([person("n1")], "append", {PERSON}),
        ([person("ada", age=7)], "merge", {PERSON}),
        ([edge("Knows", "ada", "bob")], "append", {KNOWS, PERSON}),
        ([edge("WorksAt", "ada", "acme", since="2020-01-01")], "merge", {WORKS, PERSON, COMPANY}),
        ([edge("Knows", "ada", "bob")], "overwrite", {KNOWS, PERSON}),
    ]:
        load(filled, records, mode=mode)
        assert noted[-1].guarded_keys == expected, (mode, records)


def test_appends_to_edges_do_not_refuse_an_update_of_nodes(filled: GraphStore):
    """Prepared before and committed after an unrelated edge: it builds on it, and is prepared once."""
    prepared: list[int] = []
    from omnigraph.ledger.commit.attempts import RetryPolicy, run_write
    from omnigraph.write.mutate.mutate import compiled_mutation, prepare_mutation

    def prepare(snapshot, session):
        import datetime

        prepared.append(1)
        source = 'query q() { update Person set { age: 9 } where slug = "ada" }'
        query = compiled_mutation(filled, source, None, snapshot.schema_digest)
        intent, _ = prepare_mutation(filled, snapshot, session, query, {}, datetime.datetime.now(datetime.UTC))
        mutate(filled, 'query q() { insert Knows { from: "ada", to: "bob" } }')
        return intent

    commit = run_write(filled, "main", prepare, retry=RetryPolicy.SURFACE)
    assert commit is not None
    assert prepared == [1]
