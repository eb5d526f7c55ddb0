"""The recovery audit: one row per operation and kind, whoever writes it how often; small whatever its length."""

from __future__ import annotations

import threading

import pytest

from omnigraph.config import override
from omnigraph.errors import Conflict
from omnigraph.ledger.layout import RECOVERIES
from omnigraph.ledger.recovery.audit import RecoveryAudit, RecoveryKind, RecoveryRecord
from omnigraph.ledger.recovery.sidecars import RecoveredTable
from omnigraph.ledger.values import WriterKind
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from tests.ledger.places import everything_at


@pytest.fixture
def tables(path: str) -> TableStore:
    return TableStore(parse_root(path))


def record(operation_id: str, kind: RecoveryKind = RecoveryKind.ROLLED_BACK, created_at: int = 1) -> RecoveryRecord:
    moved = (RecoveredTable("node:Person", 6, 5), RecoveredTable("edge:Knows", None, None))
    return RecoveryRecord(operation_id, kind, "c1", WriterKind.LOAD, None, "main", moved, created_at)


def test_round_trip_in_the_order_of_time(tables: TableStore) -> None:
    audit = RecoveryAudit(tables)
    assert audit.list() == []
    late, early = record("b", created_at=9), record("a", RecoveryKind.COMPLETED, created_at=3)
    audit.record(late)
    audit.record(early)
    assert audit.list() == [early, late]
    assert late.to_json()["tables"][0] == {"table_key": "node:Person", "from_version": 6, "to_version": 5}


def test_keyed_by_operation_and_kind(tables: TableStore) -> None:
    audit = RecoveryAudit(tables)
    for _ in range(3):
        audit.record(record("a"))
        audit.record(record("a", RecoveryKind.COMPLETED))
    assert len(audit.list()) == 2


def test_recoveries_of_several_branches_at_once_are_all_there_once(tables: TableStore) -> None:
    def write(worker: int) -> None:
        for number in range(4):
            RecoveryAudit(tables).record(record(f"{worker}-{number}"))
            RecoveryAudit(tables).record(record(f"shared-{number}"))

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = sorted(row.operation_id for row in RecoveryAudit(tables).list())
    assert found == sorted([f"{w}-{n}" for w in range(3) for n in range(4)] + [f"shared-{n}" for n in range(4)])


def test_the_last_fragment_is_rewritten_while_it_is_small(tables: TableStore) -> None:
    audit = RecoveryAudit(tables)
    with override(commit_log_tail_rows=3):
        for number in range(7):
            audit.record(record(f"{number}"))
    assert [fragment.rows for fragment in tables.fragments(tables.head(RECOVERIES))] == [3, 3, 1]
    assert len(audit.list()) == 7


def test_a_row_that_came_too_late_leaves_no_file(
    tables: TableStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = RecoveryAudit(tables)
    audit.record(record("a"))
    before = everything_at(path, RECOVERIES).keys()

    def too_late(*_: object) -> None:
        raise Conflict("another recovery was quicker")

    monkeypatch.setattr(TableStore, "commit_staged", too_late)
    for rows in (5, 1):
        with override(commit_log_retry_budget=1, commit_log_tail_rows=rows), pytest.raises(Conflict):
            audit.record(record("b"))
    assert everything_at(path, RECOVERIES).keys() == before
