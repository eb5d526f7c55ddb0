"""The publisher: expected versions, exactly one winner, the retry budget, idempotence."""

import itertools
import threading
from collections import Counter

import pytest

from omnigraph.config import override
from omnigraph.errors import RowLevelCasContention, TableMoved
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.manifest.manifest_rows import KEY_COLUMN, MANIFEST
from omnigraph.ledger.manifest.publish import Publication, publish
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import open_store
from omnigraph.storage.published_files import PublishedFiles
from tests.faults.harness import answers_of
from tests.ledger.graphs import KNOWS, PERSON, add_people, draft, moved, publish_move
from tests.ledger.places import is_on_s3
from tests.ledger.processes import publish_rounds


def attempt(store, base, table_key=PERSON):
    """Publish the next version of a table from a state that may be old."""
    pin = base.pin(table_key)
    return publish(store, base.branch, Publication(draft(base), updates=(moved(pin),)), expected={table_key: pin})


def assert_consistent(store):
    """No duplicate row, and the log has every commit of the line once, each on the one before."""
    ids = store.tables.scan_table(store.tables.head(MANIFEST), columns=[KEY_COLUMN])[KEY_COLUMN].to_pylist()
    assert len(ids) == len(set(ids))
    log = store.commits.log(store.snapshot().head.graph_commit_id)
    assert [commit.manifest_version for commit in log] == list(range(len(log), 0, -1))
    for newer, older in itertools.pairwise(log):
        assert newer.parent_commit_id == older.graph_commit_id


def test_a_moved_table_is_a_typed_conflict(graph):
    base = graph.snapshot()
    attempt(graph, base)
    with pytest.raises(TableMoved, match="node:Person on branch `main`") as raised:
        attempt(graph, base)
    assert raised.value.details["manifest_conflict"] == {"table_key": PERSON, "expected": 1, "actual": 2}
    assert raised.value.data_changed
    assert raised.value.outcome.http_status == 409
    assert graph.snapshot().pin(PERSON).version == 2


def test_a_table_that_is_only_expected_is_checked_too(graph):
    base = graph.snapshot()
    attempt(graph, base, KNOWS)
    publication = Publication(draft(base), updates=(moved(base.pin(PERSON)),))
    with pytest.raises(TableMoved, match=KNOWS):
        publish(graph, base.branch, publication, expected={PERSON: base.pin(PERSON), KNOWS: base.pin(KNOWS)})
    with pytest.raises(TableMoved, match="version none was expected"):
        publish(graph, base.branch, publication, expected={KNOWS: None})


def test_a_line_is_part_of_what_is_expected(graph):
    base = graph.snapshot()
    pin = base.pin(PERSON)
    elsewhere = moved(pin, lance_branch="f-x", version=pin.version)
    publish(graph, base.branch, Publication(draft(base), updates=(elsewhere,)))
    with pytest.raises(TableMoved):
        attempt(graph, base)


def test_disjoint_tables_from_one_state_both_land_in_a_row(graph):
    base = graph.snapshot()
    first = attempt(graph, base)
    second = attempt(graph, base, KNOWS)
    assert second.parent_commit_id == first.graph_commit_id
    assert {key: pin.version for key, pin in graph.snapshot().tables.items()} == {PERSON: 2, KNOWS: 2}
    assert_consistent(graph)


def test_a_mismatch_from_commits_that_changed_no_data_says_so(graph):
    base = graph.snapshot()
    publish_move(graph, changes_data=False)
    publish_move(graph, table_key=KNOWS, changes_data=True)
    with pytest.raises(TableMoved) as raised:
        attempt(graph, base)
    assert raised.value.data_changed is False, "data changed in another table only"
    with pytest.raises(TableMoved) as raised:
        attempt(graph, base, KNOWS)
    assert raised.value.data_changed is True


def test_publishing_the_same_commit_again_changes_nothing(graph):
    base = graph.snapshot()
    publication = Publication(draft(base), updates=(moved(base.pin(PERSON)),))
    first = publish(graph, base.branch, publication)
    assert publish(graph, base.branch, publication) == first
    publish_move(graph, table_key=KNOWS)
    assert publish(graph, base.branch, publication) == first, "also when others published since"
    assert graph.snapshot().pin(PERSON).version == 2
    assert_consistent(graph)


def interfere(store, path, times):
    """Let another handle publish just before each of the first commits of `store` to the manifest."""
    other = open_store(path)
    left = [times]

    def hook(name, location):
        if (name, location) == ("commit", MANIFEST) and left[0]:
            left[0] -= 1
            publish_move(other, table_key=KNOWS)

    store.tables.on_call = hook
    return left


def test_a_lost_race_is_tried_again(graph, path):
    left = interfere(graph, path, 3)
    publish_move(graph)
    assert left == [0]
    assert {key: pin.version for key, pin in graph.snapshot().tables.items()} == {PERSON: 2, KNOWS: 4}
    assert_consistent(graph)


def test_a_lost_race_on_the_same_table_is_the_conflict(graph, path):
    interfere(graph, path, 1)
    base = graph.snapshot()
    with pytest.raises(TableMoved):
        attempt(graph, base, KNOWS)


def test_a_spent_retry_budget_is_contention(graph, path):
    interfere(graph, path, 3)
    with override(publisher_retry_budget=2), pytest.raises(RowLevelCasContention, match="lost its race 3 times"):
        publish_move(graph)
    graph.tables.on_call = None
    assert graph.snapshot().pin(PERSON).version == 1
    publish_move(graph)
    assert_consistent(graph)


def race(store, rounds, wins, name, barrier):
    for _ in range(rounds):
        base = store.snapshot()
        barrier.wait(timeout=60)
        try:
            attempt(store, base)
            wins[base.pin(PERSON).version].append(name)
        except TableMoved:
            pass
        barrier.wait(timeout=60)


@pytest.mark.parametrize("shared", [True, False], ids=["one-handle", "eight-handles"])
def test_eight_threads_have_exactly_one_winner_per_round(graph, path, shared):
    rounds, threads = 2 if is_on_s3(path) else 8, 8
    wins = {version: [] for version in range(1, rounds + 1)}
    barrier = threading.Barrier(threads)
    stores = [graph if shared else open_store(path) for _ in range(threads)]
    workers = [threading.Thread(target=race, args=(store, rounds, wins, n, barrier)) for n, store in enumerate(stores)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [len(winners) for winners in wins.values()] == [1] * rounds
    assert graph.snapshot().pin(PERSON).version == rounds + 1
    assert_consistent(graph)


def test_four_processes_have_exactly_one_winner_per_round(graph, path):
    rounds = 3 if is_on_s3(path) else 12
    won = Counter(number for mine in answers_of(publish_rounds, [(path, rounds)] * 4) for number in mine)
    assert won == dict.fromkeys(range(1, rounds + 1), 1)
    assert graph.snapshot().pin(PERSON).version == rounds + 1
    graph.complete_log()
    assert_consistent(graph)


def test_only_the_files_that_a_publish_adds_are_summed(graph, monkeypatch):
    """A checksum reads the whole file: that of a table that was published before is known already."""
    asked = []
    added = PublishedFiles.added
    monkeypatch.setattr(
        PublishedFiles, "added", lambda self, before, after: asked.append((before, after)) or added(self, before, after)
    )
    pins = [graph.snapshot().pin(PERSON)]
    create_branch(graph, "b")
    for branch in ("main", "main", "b", "b"):
        add_people(graph, f"p{len(pins)}", branch=branch)
        pins.append(graph.snapshot(branch=branch).pin(PERSON))
    empty, first, second, forked, last = map(table_of, pins)
    of_people = [pair for pair in asked if pair[1].location == first.location]
    assert of_people == [(empty, first), (first, second), (None, forked), (forked, last)]
