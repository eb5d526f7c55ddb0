"""Small writes to `main` are logged together after they were acknowledged, and nobody can tell the difference."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.history.acknowledged import lost_head
from omnigraph.ledger.history.log_rows import ID, LOG
from omnigraph.ledger.history.unlogged import MOST_UNLOGGED
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.maintain.repair import repair
from omnigraph.maintain.verify import verify
from omnigraph.merge.merge import merge
from omnigraph.write.mutate.mutate import mutate
from tests.faults.harness import join, start_child
from tests.ledger.graphs import counted
from tests.write.graphs import SCHEMA, fill, ids, person

ROOT = Path(__file__).resolve().parents[3]
INSERT = "query q($s: String) { insert Person { slug: $s } }"


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[GraphStore]:
    """A graph whose commits wait for as long as nobody asks for the log."""
    with override(commit_log_delay=600.0), create_store(tmp_path / "g", SCHEMA) as store:
        fill(store, person("p0"))
        store.unlogged.flush()
        yield store


def logged(uri: str) -> list[str]:
    """The rows of the log as they are on disk."""
    with open_store(uri, read_only=True) as other:
        return list(other.tables.scan_table(other.tables.head(LOG), columns=[ID])[ID].to_pylist())


def put(store: GraphStore, *slugs: str, branch: str = "main") -> list[str]:
    results = [mutate(store, INSERT, params={"s": slug}, branch=branch) for slug in slugs]
    return [result.commit.graph_commit_id for result in results if result.commit is not None]


def test_small_writes_are_logged_by_one_append_when_the_log_is_asked_for(waiting: GraphStore):
    with counted(waiting) as calls:
        made = put(waiting, "a", "b", "c")
    assert calls[f"commit {LOG}"] == 0
    assert not set(made) & set(logged(waiting.uri))
    with counted(waiting) as calls:
        assert set(made) <= set(waiting.commits.graph().ids())
    assert calls[f"commit {LOG}"] == 1
    assert logged(waiting.uri)[-3:] == made, "in the order in which they were published"


def test_a_close_leaves_nothing_unlogged(waiting: GraphStore):
    made = put(waiting, "a", "b")
    waiting.close()
    assert logged(waiting.uri)[-2:] == made


def test_so_many_at_most_wait(waiting: GraphStore):
    made = put(waiting, *(f"p-{number}" for number in range(MOST_UNLOGGED + 1)))
    assert set(made[:-1]) <= set(logged(waiting.uri))


def test_they_are_logged_soon_without_being_asked_for(tmp_path: Path):
    with override(commit_log_delay=0.01), create_store(tmp_path / "g", SCHEMA) as store:
        made = put(store, "a")
        deadline = time.monotonic() + 60
        while logged(store.uri)[-1:] != made and time.monotonic() < deadline:
            time.sleep(0.01)
        assert logged(store.uri)[-1:] == made


def test_other_handles_see_them_and_log_each_once(waiting: GraphStore):
    made = put(waiting, "a", "b")
    with open_store(waiting.uri, read_only=True) as reader:
        assert reader.snapshot(made[0]).head.graph_commit_id == made[0]
    with open_store(waiting.uri, read_only=True) as reader:
        assert verify(reader, deep=True).ok, "that commits are not logged yet is no damage"
    assert not set(made) & set(logged(waiting.uri)), "who only reads writes nothing"
    with open_store(waiting.uri) as other:
        assert set(made) <= set(other.commits.graph().ids())
        made += put(other, "c")
        made += put(waiting, "d")
    waiting.unlogged.flush()
    rows = logged(waiting.uri)
    assert rows[-4:] == made
    assert len(rows) == len(set(rows))
    assert verify(waiting, deep=True).ok


def test_a_write_to_a_branch_and_a_merge_are_logged_before_they_are_acknowledged(waiting: GraphStore):
    before = put(waiting, "a")
    create_branch(waiting, "review")
    on_branch = put(waiting, "b", branch="review")
    assert logged(waiting.uri)[-1:] == on_branch
    before += put(waiting, "c")
    merged = merge(waiting, "review", "main").commit
    assert merged is not None
    rows = logged(waiting.uri)
    assert rows[-1] == merged.graph_commit_id
    assert set(before) <= set(rows), "parents come first"


def write_and_die(uri: str) -> None:
    with override(commit_log_delay=600.0):
        put(open_store(uri), "x", "y", "z")
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_had_not_logged_is_logged_by_the_next_open(waiting: GraphStore):
    child = start_child(write_and_die, waiting.uri)
    assert join(child) == -signal.SIGKILL
    before = logged(waiting.uri)
    with open_store(waiting.uri) as store:
        assert {"x", "y", "z"} <= set(ids(store, "node:Person"))
        after = logged(waiting.uri)
        assert len(after) == len(before) + 3
        assert store.audit.list() == [], "there was nothing to recover"
        assert verify(store, deep=True).ok
        head = store.manifest.read(store.branch("main")).table
        recorded = store.commits.files()
        for version in range(head.version - 2, head.version + 1):
            assert store.tables.files.manifest(head.at(version)).items() <= recorded.items()


def write_and_leave(uri: str) -> None:
    """Nothing is closed."""
    with override(commit_log_delay=0.1):
        put(open_store(uri), "x", "y")


def test_a_program_that_ends_without_closing_its_graph_ends_well_and_has_logged_everything(tmp_path: Path):
    uri = str(tmp_path / "g")
    create_store(uri, SCHEMA).close()
    program = f"from tests.ledger.history.test_unlogged import write_and_leave; write_and_leave({uri!r})"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert len(logged(uri)) == 3


def test_a_commit_of_a_graph_that_was_replaced_is_not_logged_in_its_successor(waiting: GraphStore):
    put(waiting, "a")
    shutil.rmtree(waiting.uri)
    with create_store(waiting.uri, SCHEMA) as other:
        put(other, "b")
    waiting.unlogged.flush()
    with open_store(waiting.uri) as other:
        assert ids(other, "node:Person") == ["b"]
        assert verify(other).ok


def test_a_commit_that_was_never_logged_and_lost_its_manifest_is_known_to_a_branch_made_from_it(waiting: GraphStore):
    put(waiting, "a")
    create_branch(waiting, "b")
    waiting.unlogged._waiting.clear()  # the process dies before it logs
    newest = min(entry.path for entry in waiting.objects.list("__manifest/_versions") if "manifest" in entry.path)
    waiting.objects.delete("__manifest/_versions/latest_version_hint.json")
    waiting.objects.delete(newest)
    with open_store(waiting.uri) as other:
        mended = repair(other, confirm=True, force=True)
        assert [head.action for head in mended.heads] == ["published"]
        assert verify(other).ok
        put(other, "c")
        assert ids(other, "node:Person") == ["a", "c", "p0"]


def test_a_state_that_others_went_past_while_it_was_looked_at_is_no_loss(waiting: GraphStore):
    """One of their commits is logged and the next one is not: the log's last is neither that state's nor the newest."""
    main = waiting.branch("main")
    with open_store(waiting.uri) as other:
        seen = other.manifest.read(main)
        put(waiting, "a")
        waiting.unlogged.flush()
        put(waiting, "b")
        assert lost_head(other, main, seen) is None


def test_a_newest_version_that_is_gone_is_a_loss_whoever_has_seen_it(waiting: GraphStore):
    main = waiting.branch("main")
    put(waiting, "a")
    waiting.unlogged.flush()
    newest = waiting.manifest.read(main)
    Path(waiting.root.local_child(newest.table.manifest_file)).unlink()
    lost = lost_head(waiting, main, waiting.manifest.read(main))
    assert lost is not None
    assert lost.acknowledged.graph_commit_id == newest.head.graph_commit_id
