"""The commit log: complete, once each, small, loaded incrementally, shared by racing branches."""

import threading
import time

import pytest
from ulid import ULID

from omnigraph.config import override
from omnigraph.errors import NotFound
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.branches import branches
from omnigraph.ledger.history.commit_log import KEPT_LOG_VERSIONS, CommitLog, ParentNotLogged
from omnigraph.ledger.history.log_rows import ID, LOG, LogEntry
from omnigraph.ledger.manifest.pins import CHECKPOINT_EVERY, decode_pins, encode_pins
from omnigraph.ledger.snapshots import get_commit
from omnigraph.ledger.store import create_store, open_store
from omnigraph.ledger.values import GraphCommit, TablePin, WriterKind
from tests.faults.harness import answers_of
from tests.ledger.graphs import KNOWS, PERSON, SCHEMA, add_people, counted, publish_move
from tests.ledger.places import everything_at, is_on_s3
from tests.ledger.processes import add_ada, publish_moves, run_killed


def ids_in_log(store):
    return store.tables.scan_table(store.tables.head(LOG), columns=[ID])[ID].to_pylist()


def head(store, branch="main"):
    return store.snapshot(branch=branch).head


def made_up(number, parent, pins):
    commit = GraphCommit(
        str(ULID()),
        None,
        number,
        parent,
        None,
        f"act-{number % 7}",
        number,
        WriterKind.LOAD,
        True,
        "main",
        "i",
        "d" * 64,
    )
    return LogEntry(commit, pins)


def test_every_publish_has_its_commit_in_head_and_log_alike(path):
    store = create_store(path, SCHEMA, actor="act-init")
    first = head(store)
    commit = add_people(store, "ada", actor="act-ada")
    assert commit == head(store) == store.commits.get(commit.graph_commit_id)
    assert commit.parent_commit_id == first.graph_commit_id
    assert [c.actor_id for c in store.commits.log(commit.graph_commit_id)] == ["act-ada", "act-init"]
    assert store.commits.pins(commit.graph_commit_id) == store.snapshot().tables
    assert store.commits.pins(first.graph_commit_id) == store.snapshot(first.graph_commit_id).tables


def test_the_log_of_a_branch_includes_inherited_history_and_filters(graph):
    add_people(graph, "ada", actor="act-a")
    branches.create_branch(graph, "b")
    on_main = add_people(graph, "bob", actor="act-b")
    on_branch = add_people(graph, "cyd", branch="b", actor="act-c")
    log = graph.commits.log(head(graph, "b").graph_commit_id)
    assert [(c.branch, c.actor_id) for c in log] == [("b", "act-c"), ("main", "act-a"), ("main", None)]
    assert on_main not in log
    by_actor = graph.commits.log(on_branch.graph_commit_id, actor="act-a")
    assert [c.actor_id for c in by_actor] == ["act-a"]
    recent = graph.commits.log(on_branch.graph_commit_id, since=on_branch.created_at)
    assert recent == [on_branch]
    assert graph.commits.log(on_branch.graph_commit_id, until=log[-1].created_at, limit=1) == [log[-1]]


def test_a_missing_commit_is_not_found(graph):
    with pytest.raises(NotFound, match="no commit 01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        get_commit(graph, "01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_pins_come_back_across_checkpoints_and_changes_of_the_table_set(graph):
    expected = {}
    for number in range(CHECKPOINT_EVERY + 2):
        commit = publish_move(graph, table_key=KNOWS if number % 3 else PERSON)
        expected[commit.graph_commit_id] = dict(graph.snapshot().tables)
    fresh = CommitLog(graph.tables)
    for commit_id, pins in expected.items():
        assert fresh.pins(commit_id) == pins


def test_pins_as_bytes_say_what_changed_came_and_went():
    def pin(key, version):
        return TablePin(key, key, f"nodes/{key}", None, version, 5, "i")

    before = {key: pin(key, 1) for key in ("a", "b", "c")}
    after = {"a": pin("a", 2), "b": pin("b", 1), "d": pin("d", 1)}
    assert decode_pins(encode_pins(after, before), before) == after
    assert decode_pins(encode_pins(after, None), None) == after
    wide = {f"t{n:03}": pin(f"t{n:03}", 1) for n in range(50)}
    moved = {**wide, "t007": pin("t007", 2)}
    assert len(encode_pins(moved, wide)) < 120 < len(encode_pins(moved, None))


def test_loading_reads_only_what_is_new(graph, path):
    reader = CommitLog(graph.tables)
    for _ in range(5):
        publish_move(graph)
    assert len(reader.graph()) == 6
    other = open_store(path)
    publish_move(other)
    seen = []
    scan = graph.tables.scan_table

    def spy(table, **options):
        seen.append(options.get("offset"))
        return scan(table, **options)

    graph.tables.scan_table = spy
    assert len(reader.graph()) == 7
    assert seen == [5], "the last known row and what follows"
    seen.clear()
    reader.graph()
    assert seen == []


def test_a_log_that_was_rewritten_is_read_anew(graph):
    reader = CommitLog(graph.tables)
    for _ in range(3):
        publish_move(graph)
    assert len(reader.graph()) == 4
    head_version = graph.tables.head(LOG)
    rows = graph.tables.scan_table(head_version)
    graph.tables.commit_staged(graph.tables.stage_overwrite(head_version, rows.slice(0, 2)), "test")
    assert len(reader.graph()) == 2


def test_the_log_stays_a_few_fragments_and_versions(graph, path):
    rows, publishes = (4, 14) if is_on_s3(path) else (16, 60)
    with override(commit_log_tail_rows=rows, commit_log_prune_every=rows // 2):
        for _ in range(publishes):
            publish_move(graph)
    fragments = graph.tables.fragments(graph.tables.head(LOG))
    assert [f.rows for f in fragments] == [rows, rows, rows, publishes + 1 - 3 * rows]
    assert len(graph.tables.versions(LOG)) <= KEPT_LOG_VERSIONS + rows // 2
    log = graph.commits.log(head(graph).graph_commit_id)
    assert [c.manifest_version for c in log] == list(range(publishes + 1, 0, -1))


def test_a_commit_is_never_logged_twice(graph):
    """Not even by a process that slept while others completed its work and wrote much more."""
    with override(commit_log_tail_rows=4):
        commit = publish_move(graph)
        entry = LogEntry(commit, graph.snapshot().tables)
        sleeper = CommitLog(graph.tables)
        for _ in range(9):
            publish_move(graph)
        sleeper.append([entry])
    ids = ids_in_log(graph)
    assert len(ids) == len(set(ids)) == 11


def test_a_commit_does_not_go_in_before_its_parent(graph):
    with pytest.raises(ParentNotLogged):
        graph.commits.append([made_up(9, "01ARZ3NDEKTSV4RRFFQ69G5FAV", {})])


def test_branches_race_on_the_log_and_nothing_is_lost(graph, path):
    count = 2 if is_on_s3(path) else 8
    names = [f"b{n}" for n in range(4)]
    for name in names:
        branches.create_branch(graph, name)

    def work(name):
        store = open_store(path)
        for _ in range(count):
            publish_move(store, branch=name)

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = ids_in_log(graph)
    assert len(ids) == len(set(ids)) == 1 + 4 * count
    for name in names:
        assert len(graph.commits.log(head(graph, name).graph_commit_id)) == 1 + count


@pytest.mark.parametrize("branch", ["main", "b"])
@pytest.mark.parametrize("failpoint", ["publish.after", "log.append.before"])
def test_a_crash_between_publish_and_log_is_completed_by_the_next_open(graph, path, branch, failpoint):
    branches.create_branch(graph, "b")
    run_killed(add_ada, path, branch, at=failpoint)
    lost = head(graph, branch)
    assert lost.graph_commit_id not in ids_in_log(graph)
    reopened = open_store(path)
    assert ids_in_log(reopened).count(lost.graph_commit_id) == 1
    assert reopened.commits.get(lost.graph_commit_id) == lost
    assert reopened.commits.pins(lost.graph_commit_id) == reopened.snapshot(branch=branch).tables
    before = everything_at(path, LOG)
    open_store(path)
    assert everything_at(path, LOG) == before, "a second open changes nothing"


def test_a_crash_between_publish_and_log_is_completed_by_the_next_write(graph, path):
    with active("publish.after", "raise"), pytest.raises(FailpointError):
        publish_move(graph)
    lost = head(graph)
    branches.create_branch(graph, "b")
    commit = publish_move(graph, branch="b")
    assert ids_in_log(graph)[-2:] == [lost.graph_commit_id, commit.graph_commit_id]
    assert commit.parent_commit_id == lost.graph_commit_id


def test_a_read_only_handle_sees_the_commit_that_the_log_lacks_and_writes_nothing(graph, path):
    with active("publish.after", "raise"), pytest.raises(FailpointError):
        add_people(graph, "ada")
    before = everything_at(path)
    reader = open_store(path, read_only=True)
    lost = head(reader)
    assert get_commit(reader, lost.graph_commit_id) == lost
    assert [c.manifest_version for c in reader.commits.log(lost.graph_commit_id)] == [2, 1]
    assert reader.commits.pins(lost.graph_commit_id) == reader.snapshot().tables
    assert everything_at(path) == before


def test_trouble_with_the_log_does_not_fail_an_acknowledged_write(graph, path):
    other = open_store(path)
    with override(commit_log_retry_budget=0):

        def hook(name, location):
            if (name, location) == ("commit", LOG):
                other.commits.append([made_up(99, other.snapshot().head.parent_commit_id, {})], after_gap=True)

        graph.tables.on_call = hook
        commit = publish_move(graph)
        graph.tables.on_call = None
    assert head(graph) == commit
    assert commit.graph_commit_id not in ids_in_log(graph)
    later = publish_move(graph)
    assert ids_in_log(graph)[-2:] == [commit.graph_commit_id, later.graph_commit_id]


@pytest.mark.slow
def test_ten_thousand_commits_are_under_20_mb_and_read_in_under_100_ms(local_path):
    """One entry per append, as writers do it, in the last part; in batches before, to keep the test short.

    On local disk: what is measured is the size of files and the time to read them.
    """
    store = create_store(local_path, "\n".join(f"node T{n:02} {{ name: String @key }}" for n in range(50)))
    pins = dict(store.snapshot().tables)
    keys = sorted(pins)
    parent, entries = store.snapshot().head.graph_commit_id, []
    for number in range(2, 10_001):
        key = keys[number % len(keys)]
        moved = TablePin(key, key, f"nodes/{key}", f"f-{ULID()}", number, number, str(ULID()))
        before, pins = pins, {**pins, key: moved}
        entry = made_up(number, parent, pins)
        entries.append(LogEntry(entry.commit, pins, before))
        parent = entry.commit.graph_commit_id
        if len(entries) >= (100 if number < 9_000 else 1):
            store.commits.append(entries)
            entries = []
    size = sum(entry.size for entry in store.objects.list(LOG))
    assert size < 20_000_000
    times = []
    for _ in range(5):
        fresh = CommitLog(open_store(local_path, read_only=True).tables)
        start = time.perf_counter()
        assert len(fresh.graph()) == 10_000
        times.append(time.perf_counter() - start)
    assert min(times) < 0.1, times
    assert fresh.pins(parent) == pins


def test_the_cost_of_one_publish_in_the_log_is_one_commit(graph):
    publish_move(graph)
    with counted(graph) as calls:
        publish_move(graph)
    assert calls[f"commit {LOG}"] == 1


def test_processes_of_different_branches_race_on_the_log(graph, path):
    for name in ("x", "y"):
        branches.create_branch(graph, name)
    count = 3 if is_on_s3(path) else 10
    answers_of(publish_moves, [(path, name, count) for name in ("main", "x", "y")])
    graph.complete_log()
    ids = ids_in_log(graph)
    assert len(ids) == len(set(ids)) == 1 + 3 * count
