"""Optimize: one commit, no data changed, drift settled or reported, writers never lost."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import Busy, RecoveryRequired
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.branches.schema_lock import hold_schema_lock
from omnigraph.ledger.history.log_rows import LOG
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.ledger.values import WriterKind
from omnigraph.maintain.optimize import bookkeeping
from omnigraph.maintain.optimize.optimize import TableReport, optimize
from omnigraph.maintain.optimize.workers import SMALLEST_TARGET, local_workers
from omnigraph.maintain.verify import verify
from omnigraph.merge.merge import merge
from omnigraph.storage.constants import ROWS_PER_FILE
from omnigraph.write.load.load import load
from tests.faults.harness import run_killed
from tests.maintain.graphs import KNOWS, PERSON, content, interrupted, knows, people, put


@pytest.fixture
def filled(store: GraphStore) -> GraphStore:
    """Two tables of several fragments each."""
    for number in range(5):
        put(store, **{f"p{number}": number})
    for number in range(3):
        knows(store, "p0", f"p{number + 1}")
    return store


def fragments(store: GraphStore, key: str, branch: str = "main") -> int:
    return len(store.tables.fragments(table_of(store.snapshot(branch=branch).pin(key))))


def report(store: GraphStore, key: str = PERSON, **options) -> TableReport:
    return next(table for table in optimize(store, **options).tables if table.table_key == key)


def test_compacts_and_indexes_every_table_in_one_commit_that_changes_no_data(filled: GraphStore) -> None:
    before, old = content(filled, filled.snapshot()), filled.snapshot()
    result = optimize(filled, actor="act-ada")
    assert result.commit is not None
    assert (result.commit.kind, result.commit.changes_data) == (WriterKind.OPTIMIZE, False)
    assert result.commit.parent_commit_id == old.head.graph_commit_id
    assert all(table.committed and not table.skipped for table in result.tables)
    assert (fragments(filled, PERSON), fragments(filled, KNOWS)) == (1, 1)
    assert content(filled, filled.snapshot()) == before
    # A reader that is pinned to the older snapshot is undisturbed.
    assert content(filled, old) == before
    assert optimize(filled).commit is None


def test_a_table_is_cut_so_that_every_worker_has_tasks_and_a_second_run_finds_nothing_to_do() -> None:
    def target(parts: int, rows: int) -> int:
        return replace(local_workers(), parts=parts).options_for(rows).target_rows

    assert target(1, 1_000_000) == target(1, 10) == ROWS_PER_FILE
    assert target(2, 1_000_000) * 2 <= 1_000_000
    assert target(2, 10) == target(64, 5_000_000) == SMALLEST_TARGET
    assert target(4, 50_000_000) == ROWS_PER_FILE
    # Fragments that were full stay full while the table grows by little.
    assert len({target(8, rows) for rows in range(8_000_000, 40_000_000, 500_000)}) <= 3


def test_a_write_a_merge_and_a_reopen_right_after_it_work(filled: GraphStore) -> None:
    create_branch(filled, "review")
    put(filled, "review", ada=1)
    optimize(filled)
    optimize(filled, "review")
    put(filled, bob=1)
    merge(filled, "review", "main")
    with open_store(filled.uri) as reopened:
        assert {"ada", "bob"} <= people(reopened).keys()
        assert verify(reopened).ok


def test_refuses_while_a_write_has_to_be_recovered(filled: GraphStore) -> None:
    run_killed(write_and_die, filled.uri, at="write.table_committed")
    line = table_of(filled.snapshot().pin(PERSON))
    head = filled.tables.head(line.location)
    filled.tables.commit_staged(filled.tables.stage_delete(head, ["p0"]), "somebody")
    with pytest.raises(RecoveryRequired, match="recovered first"):
        optimize(filled)


def write_and_die(uri: str) -> None:
    """A write, to be killed."""
    put(open_store(uri), zoe=1)


def test_drift_that_changes_no_content_is_published_along(filled: GraphStore) -> None:
    line = table_of(filled.snapshot().pin(PERSON))
    staged = filled.tables.stage_compaction(line)
    assert staged is not None
    landed = filled.tables.commit_compaction(staged)
    found = report(filled)
    assert (found.committed, found.skipped) == (True, None)
    assert filled.snapshot().pin(PERSON).version >= landed.version
    assert verify(filled).ok


def test_other_drift_is_skipped_and_reported_and_the_rest_goes_on(filled: GraphStore) -> None:
    line = table_of(filled.snapshot().pin(PERSON))
    filled.tables.commit_staged(filled.tables.stage_delete(line, ["p4"]), "somebody")
    result = optimize(filled)
    by_key = {table.table_key: table for table in result.tables}
    assert (by_key[PERSON].skipped, by_key[PERSON].committed) == ("DriftNeedsRepair", False)
    assert by_key[KNOWS].committed
    assert filled.snapshot().pin(PERSON).version == line.version


def test_a_table_that_a_writer_moved_meanwhile_is_left_out_and_no_write_is_lost(
    filled: GraphStore, tmp_path: Path
) -> None:
    results = []
    interrupted(
        "optimize.prepared",
        tmp_path / "gate",
        lambda: results.append(optimize(filled)),
        lambda: put(filled, late=1),
    )
    by_key = {table.table_key: table for table in results[0].tables}
    assert (by_key[PERSON].skipped, by_key[KNOWS].committed) == ("MovedByWriter", True)
    assert people(filled)["late"] == 1
    assert fragments(filled, PERSON) == 6
    assert report(filled).committed
    assert people(filled)["late"] == 1


@pytest.mark.parametrize(
    "at",
    ["optimize.prepared", "storage.compaction.after", "write.table_committed", "write.tables_committed"],
)
def test_a_kill_at_any_step_loses_nothing(filled: GraphStore, at: str) -> None:
    before = content(filled, filled.snapshot())
    run_killed(optimize_and_die, filled.uri, at=at)
    with open_store(filled.uri) as reopened:
        assert content(reopened, reopened.snapshot()) == before
        assert reopened.sidecars.list() == []
        optimize(reopened)
        assert content(reopened, reopened.snapshot()) == before
        put(reopened, zoe=1)
        assert verify(reopened).ok


def optimize_and_die(uri: str) -> None:
    """An optimize, to be killed."""
    optimize(open_store(uri))


def test_the_graphs_own_tables_are_compacted(filled: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookkeeping, "FRAGMENTS_LEFT_ALONE", 1)
    with override(commit_log_tail_rows=2):
        for number in range(4):
            put(filled, zoe=number + 1)
        before = logged(filled)
        assert len(filled.tables.fragments(filled.tables.head(LOG))) > 2
        done = {table.table_key for table in optimize(filled).tables}
        assert LOG in done
        assert len(filled.tables.fragments(filled.tables.head(LOG))) == 1
        put(filled, yan=2)
        with open_store(filled.uri) as reopened:
            assert logged(reopened)[2:] == before
            assert verify(reopened).ok
            assert people(reopened).keys() >= {"zoe", "yan"}


def test_a_line_of_the_manifest_is_compacted_and_repeats_its_commit(
    filled: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookkeeping, "FRAGMENTS_LEFT_ALONE", 1)
    before = filled.snapshot()
    assert MANIFEST in [one.location for one in bookkeeping.compact_internal(filled, filled.branch("main"))]
    after = filled.snapshot()
    assert (after.head, after.tables) == (before.head, before.tables)
    assert after.manifest_version > before.manifest_version
    put(filled, yan=2)
    with open_store(filled.uri) as reopened:
        assert verify(reopened).ok


def logged(store: GraphStore) -> list[str]:
    return [commit.graph_commit_id for commit in store.commits.log(store.snapshot().head.graph_commit_id)]


def test_a_table_with_blobs_is_compacted_like_any_other(tmp_path: Path) -> None:
    schema = "node Doc {\n    name: String @key\n    body: Blob?\n}\n"
    with create_store(tmp_path / "docs", schema) as store:
        for number in range(4):
            body = bytes([number]) * 100_000
            row = {"type": "Doc", "data": {"name": f"d{number}", "body": _base64(body)}}
            load(store, [row], mode="append")
        assert report(store, "node:Doc").committed
        table = table_of(store.snapshot().pin("node:Doc"))
        assert len(store.tables.fragments(table)) == 1
        rows = store.tables.scan_table(table, blobs="bytes").to_pylist()
        assert {row["name"]: row["body"][:1] for row in rows} == {f"d{n}": bytes([n]) for n in range(4)}


def test_where_lance_damages_blobs_such_tables_are_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("omnigraph.maintain.optimize.optimize.LANCE_COMPACTS_BLOBS", False)
    schema = "node Doc {\n    name: String @key\n    body: Blob?\n}\n"
    with create_store(tmp_path / "docs", schema) as store:
        for number in range(3):
            load(store, [{"type": "Doc", "data": {"name": f"d{number}"}}], mode="append")
        found = report(store, "node:Doc")
        assert (found.skipped, found.committed) == ("BlobColumnsUnsupportedByLance", False)
        assert found.to_json()["skipped"] == "BlobColumnsUnsupportedByLance"
        assert "BlobColumnsUnsupportedByLance" in caplog.text
        assert fragments(store, "node:Doc") == 3


def test_refuses_while_a_schema_is_applied(filled: GraphStore) -> None:
    with hold_schema_lock(filled, "apply"), pytest.raises(Busy, match="schema apply"):
        optimize(filled)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
