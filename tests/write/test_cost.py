"""What a one-row insert costs, counted: nothing of it grows with the graph or with its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from benchmarks.slow_store import SlowStore

from omnigraph.config import override
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate
from tests.ledger.graphs import counted
from tests.write.graphs import SCHEMA, fill, person

INSERT = "query q($s: String) { insert Person { slug: $s } }"
LINK = 'query q($a: String) { insert Knows { from: $a, to: "p0" } }'


@pytest.fixture(autouse=True)
def logged_when_asked_for() -> Iterator[None]:
    """The log is written by a thread of its own, some time later: not while something is counted."""
    with override(commit_log_delay=600.0):
        yield


def cost(store: GraphStore, query: str, **params: str) -> Counter[str]:
    """The calls of Lance and of the object store that one mutation makes."""
    with counted(store) as calls:
        result = mutate(store, query, params=params)
    assert result.affected_nodes + result.affected_edges == 1
    return calls


def test_a_one_row_insert_makes_one_table_commit_and_one_publish(store: GraphStore):
    fill(store, person("p0"))
    location = store.snapshot().pin("node:Person").location
    calls = cost(store, INSERT, s="new")
    commits = {name: count for name, count in calls.items() if name.startswith("commit ")}
    assert commits == {f"commit {location}": 1, "commit __manifest": 1}
    puts = calls["object put"] + calls["object put_if_absent"]
    assert puts == 1, "the sidecar"
    assert calls["object delete"] == 1, "the sidecar"
    assert calls["object list"] == 1, "the look for unfinished writes"


UPDATE = 'query q($a: I32) { update Person set { age: $a } where slug = "p0" }'
DELETE = "query q($s: String) { delete Person where slug = $s }"
SMALL_WRITES = [(INSERT, {"s": "new"}), (UPDATE, {"a": 5}), (DELETE, {"s": "new"})]


@pytest.mark.parametrize("branch", ["main", "review"])
def test_what_an_insert_an_update_and_a_delete_cost(store: GraphStore, branch: str):
    """The floor is two commits, and the log on a branch; what comes on top is counted, so that nobody adds to it
    unnoticed."""
    fill(store, person("p0"), person("p1"))
    if branch != "main":
        create_branch(store, branch)
    mutate(store, INSERT, params={"s": "warm"}, branch=branch)
    location = store.snapshot(branch=branch).pin("node:Person").location
    for query, params in SMALL_WRITES:
        with counted(store) as calls:
            mutate(store, query, params=params, branch=branch)
        commits = {name: count for name, count in calls.items() if name.startswith("commit ")}
        log = {} if branch == "main" else {"commit _graph_commits.lance": 1}
        assert commits == {f"commit {location}": 1, "commit __manifest": 1, **log}, query
        objects = {name.removeprefix("object "): n for name, n in calls.items() if name.startswith("object ")}
        assert objects == {"list": 1, "get": 5, "put_if_absent": 1, "delete": 1}, query
        assert calls["open"] == 0, query


@pytest.mark.s3
def test_the_requests_of_small_writes_on_an_object_store(s3_server: str, s3_uri: Callable[[], str]):
    store_of = SlowStore(s3_server, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", store_of.endpoint)
        with create_store(s3_uri(), SCHEMA) as store:
            fill(store, person("p0"), person("p1"))
            mutate(store, INSERT, params={"s": "warm"})
            mutate(store, UPDATE, params={"a": 1})
            for (query, params), most in zip(SMALL_WRITES, (27, 29, 26)):
                store_of.reset()
                mutate(store, query, params=params)
                assert sum(store_of.requests.values()) <= most, (query, store_of.paths)
    store_of.close()


def test_the_cost_does_not_grow_with_the_history(store: GraphStore):
    fill(store, person("p0"))
    cost(store, INSERT, s="warm")
    early = cost(store, INSERT, s="early")
    for number in range(25):
        mutate(store, INSERT, params={"s": f"more-{number}"})
    assert cost(store, INSERT, s="late") == early


def test_after_writes_of_another_process_the_manifest_and_the_table_are_opened_once(store: GraphStore):
    fill(store, person("p0"))
    cost(store, INSERT, s="warm")
    alone = cost(store, INSERT, s="alone")
    location = store.snapshot().pin("node:Person").location
    with open_store(store.uri) as other:
        for number in range(5):
            mutate(other, INSERT, params={"s": f"theirs-{number}"})
        beside = cost(store, INSERT, s="beside")
    assert beside - alone == {"open": 2, "open __manifest": 1, f"open {location}": 1}


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
