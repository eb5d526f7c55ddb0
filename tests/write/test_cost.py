"""What a one-row insert costs, counted: nothing of it grows with the graph or with its history."""

from __future__ import annotations

from collections import Counter

from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate
from tests.ledger.graphs import counted
from tests.write.graphs import fill, person

INSERT = "query q($s: String) { insert Person { slug: $s } }"
LINK = 'query q($a: String) { insert Knows { from: $a, to: "p0" } }'


def cost(store: GraphStore, query: str, **params: str) -> Counter[str]:
    """The calls of Lance and of the object store that one mutation makes."""
    with counted(store) as calls:
        result = mutate(store, query, params=params)
    assert result.affected_nodes + result.affected_edges == 1
    return calls


def test_a_one_row_insert_makes_one_table_commit_one_publish_and_one_write_of_the_log(store: GraphStore):
    fill(store, person("p0"))
    location = store.snapshot().pin("node:Person").location
    calls = cost(store, INSERT, s="new")
    commits = {name: count for name, count in calls.items() if name.startswith("commit ")}
    assert commits == {f"commit {location}": 1, "commit __manifest": 1, "commit _graph_commits.lance": 1}
    puts = calls["object put"] + calls["object put_if_absent"]
    assert puts == 1, "the sidecar"
    assert calls["object delete"] == 1, "the sidecar"
    assert calls["object list"] == 1, "the look for unfinished writes"


def test_the_cost_does_not_grow_with_the_history(store: GraphStore):
    fill(store, person("p0"))
    cost(store, INSERT, s="warm")
    early = cost(store, INSERT, s="early")
    for number in range(25):
        mutate(store, INSERT, params={"s": f"more-{number}"})
    assert cost(store, INSERT, s="late") == early


def test_the_cost_does_not_grow_with_the_graph(store: GraphStore):
    fill(store, person("p0"))
    cost(store, LINK, a="p0")
    small = cost(store, LINK, a="p0")
    load(store, [person(f"big-{number}") for number in range(5000)], mode="append")
    cost(store, LINK, a="big-7")
    assert cost(store, LINK, a="big-8") == small


def test_a_mutation_reads_no_table_that_it_does_not_need(store: GraphStore):
    fill(store, person("p0"))
    mutate(store, LINK, params={"a": "p0"})
    with open_store(store.uri) as other, counted(other) as calls:
        mutate(other, LINK, params={"a": "p0"})
        needed = {other.snapshot().pin(key).location for key in ("node:Person", "edge:Knows")}
    opened = {name.removeprefix("open ") for name in calls if name.startswith("open ")}
    assert opened <= needed | {"__manifest", "_graph_commits.lance"}
