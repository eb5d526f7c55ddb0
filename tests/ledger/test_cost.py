"""What things cost, counted at the storage hooks: nothing grows with the graph or its history."""

import time
from dataclasses import replace

import lance
import pytest
from ulid import ULID

from omnigraph.ledger.branches import branches
from omnigraph.ledger.history.log_rows import LOG, LogEntry
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.manifest.publish import Publication, publish
from omnigraph.ledger.store import create_store, open_store
from tests.ledger.graphs import PERSON, SCHEMA, add_people, counted, draft, moved, publish_move
from tests.ledger.places import is_on_s3, new_graph_at

FIFTY_TYPES = "\n".join(f"node T{n:02} {{ name: String @key }}" for n in range(50))


@pytest.fixture
def wide(new_place):
    """A new graph with 50 types, on each kind of store."""
    return new_graph_at(new_place(), with_fifty_types, new_place)


def with_fifty_types(uri):
    return create_store(uri, FIFTY_TYPES)


def test_a_snapshot_of_a_graph_with_50_types_reads_one_dataset(wide):
    store = open_store(wide.uri, read_only=True)
    publish_move(wide, table_key="node:T07")
    with counted(store) as calls:
        assert store.snapshot().pin("node:T07").version == 2
        assert len(store.snapshot().tables) == 50
    assert calls["open"] == calls[f"open {MANIFEST}"] == 1


def test_a_publish_of_one_table_costs_one_manifest_commit_and_one_log_write(graph):
    publish_move(graph)
    base = graph.snapshot()
    pin = base.pin(PERSON)
    move = Publication(draft(base), updates=(moved(pin),))
    with counted(graph) as calls:
        publish(graph, base.branch, move, expected={PERSON: pin}, told_by_sidecar=True)
    assert calls["commit"] == 2
    assert (calls[f"commit {MANIFEST}"], calls[f"commit {LOG}"]) == (1, 1)
    assert not [call for call in calls if call.startswith("object")]
    assert calls["open"] <= 2


def test_the_first_publish_of_a_process_loads_no_history(graph, path):
    for _ in range(5):
        publish_move(graph)
    store = open_store(path)
    publish_move(store)
    assert store.commits._loaded is None


def test_an_open_reads_no_table_of_a_type_and_writes_nothing(graph, path):
    add_people(graph, "ada")
    calls_of = []
    for read_only in (True, False):
        store = open_store(path, read_only=read_only)
        assert store.commits._loaded is None, "the commit log is not loaded by an open"
        with counted(store) as calls:
            store.complete_log()
        calls_of.append(calls)
    assert all(not calls["commit"] for calls in calls_of)
    assert all(not [call for call in calls if "nodes/" in call] for calls in calls_of)


def test_creating_a_branch_costs_the_same_on_a_wide_graph_with_history(graph, wide, path):
    for _ in range(5 if is_on_s3(path) else 20):
        publish_move(wide, table_key="node:T07")
    costs = []
    for store in (graph, wide):
        with counted(store) as calls:
            branches.create_branch(store, "b")
        costs.append(sum(calls.values()))
    assert costs[0] == costs[1]


@pytest.mark.slow
def test_opening_a_graph_with_10_000_commits_takes_at_most_twice_as_long_as_with_10(local_path, tmp_path):
    """On local disk: the S3 server of the tests lists the versions of a table in time that grows with their number."""
    short, long = create_store(local_path, SCHEMA), create_store(tmp_path / "long", SCHEMA)
    _commit(short, 10)
    _commit(long, 10_000)
    quickest = {}
    for _ in range(15):
        for name in (local_path, str(tmp_path / "long")):
            start = time.perf_counter()
            store = open_store(name)
            store.snapshot()
            spent = time.perf_counter() - start
            quickest[name] = min(spent, quickest.get(name, spent))
    assert quickest[str(tmp_path / "long")] <= 2 * quickest[local_path], quickest


def _commit(store, count):
    """A history of `count` commits: all of them in the log, and as many versions of the manifest.

    The versions in the middle are made by Lance's cheapest commit, without a publish each, to keep the test short.
    """
    publish_move(store)
    base = store.snapshot()
    entries, parent = [], base.head
    manifest = lance.dataset(store.root.child(MANIFEST))
    for version in range(base.manifest_version + 1, count):
        update = lance.LanceOperation.UpdateMap({"n": str(version)}, False)
        operation = lance.LanceOperation.UpdateConfig(config_updates=update)
        manifest = lance.LanceDataset.commit(manifest, lance.Transaction(manifest.version, operation), max_retries=0)
        commit_id, before = str(ULID()), parent.graph_commit_id
        parent = replace(parent, graph_commit_id=commit_id, parent_commit_id=before, manifest_version=version)
        entries.append(LogEntry(parent, base.tables, base.tables))
    for start in range(0, len(entries), 200):
        store.commits.append(entries[start : start + 200])
    publish_move(store)
    assert store.snapshot().manifest_version == count
