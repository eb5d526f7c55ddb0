"""Faults of the sidecar's own I/O: each row of the table of page 04."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import orjson
import pytest

from omnigraph.errors import BranchNotFound, RecoveryRequired
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.storage.lance_errors import FileDamaged
from tests.faults.invariants import check_history, check_pins_are_heads, observe
from tests.faults.scenarios import work
from tests.faults.writers import PERSON, content, new_graph, put_company, put_people
from tests.ledger.processes import run_killed


def people(store: GraphStore) -> set[object]:
    return {row[0] for row in content(store)[PERSON]}


def test_phase_a_put_fails_the_write_aborts_and_the_next_works(store: GraphStore) -> None:
    before = observe(store)
    with active("sidecar.put", "raise"), pytest.raises(FailpointError):
        put_people(store, {"bob": 1})
    assert observe(store) == before
    check_pins_are_heads(store)
    assert store.sidecars.list() == []
    put_people(store, {"bob": 1})
    assert "bob" in people(store)
    assert store.audit.list() == []


def test_phase_d_delete_fails_the_write_succeeds_and_the_next_heal_retires_it(
    store: GraphStore, caplog: pytest.LogCaptureFixture
) -> None:
    with active("sidecar.delete", "raise"), caplog.at_level(logging.WARNING, "omnigraph.ledger"):
        commit = put_people(store, {"bob": 1})
    assert store.snapshot().head == commit
    assert "could not be deleted" in caplog.text
    pending = store.sidecars.list()
    assert len(pending) == 1
    put_people(store, {"carl": 1})
    assert store.sidecars.list() == []
    rows = store.audit.list()
    assert [(row.operation_id, row.kind, row.graph_commit_id) for row in rows] == [
        (pending[0], RecoveryKind.COMPLETED, commit.graph_commit_id)
    ]
    check_history(store)


def test_listing_fails_loudly_for_writes_and_opens(store: GraphStore) -> None:
    before = observe(store)
    with active("sidecar.list", "raise"):
        with pytest.raises(FailpointError):
            put_people(store, {"bob": 1})
        with pytest.raises(FailpointError):
            open_store(store.uri)
        assert observe(open_store(store.uri, read_only=True)) == before
    assert observe(store) == before


@pytest.mark.parametrize("newer", [False, True], ids=["corrupt", "newer"])
def test_a_sidecar_that_cannot_be_read_blocks_its_own_tables_only(
    store: GraphStore, newer: bool, caplog: pytest.LogCaptureFixture
) -> None:
    run_killed(work, store.uri, "main", at="write.tables_committed")
    (operation_id,) = store.sidecars.list()
    path = f"__recovery/{operation_id}.json"
    content = orjson.loads(store.objects.get(path)[0])
    data = orjson.dumps({**content, "schema_version": 99}) if newer else b"{ torn"
    store.objects.put(path, data)
    before = observe(open_store(store.uri, read_only=True))
    reopened = open_store(store.uri)
    assert path in caplog.text
    assert observe(reopened) == before
    for attempt in (reopened, store):
        with pytest.raises(RecoveryRequired, match=path) as caught:
            put_people(attempt, {"carl": 1})
        assert (caught.value.operation_id, caught.value.details["table_key"]) == (operation_id, PERSON)
    put_company(reopened, "acme")
    create_branch(reopened, "side")
    put_people(reopened, {"carl": 1}, "side")
    assert store.objects.get(path)[0] == data
    check_history(reopened)


def test_a_damaged_sidecar_does_not_keep_the_others_unresolved(store: GraphStore) -> None:
    run_killed(work, store.uri, "main", at="write.tables_committed")
    store.objects.put("__recovery/00000000000000000000000000.json", b"")
    reopened = open_store(store.uri)
    assert store.sidecars.list() == ["00000000000000000000000000"]
    assert "bob" in people(store)
    put_people(reopened, {"carl": 1})


@pytest.mark.parametrize(
    ("crash", "kind"),
    [
        ("write.tables_committed", RecoveryKind.ROLLED_FORWARD),
        ("write.table_committed", RecoveryKind.ROLLED_BACK),
        ("write.published", RecoveryKind.COMPLETED),
    ],
)
@pytest.mark.parametrize("fault", ["audit.append.before", "audit.append.after"])
def test_audit_append_fails_after_a_publish_then_exactly_one_row(
    store: GraphStore, crash: str, kind: RecoveryKind, fault: str
) -> None:
    run_killed(work, store.uri, "main", at=crash)
    for _ in range(2):
        with active(fault, "raise"), pytest.raises(FailpointError):
            open_store(store.uri)
        assert len(store.sidecars.list()) == 1
    open_store(store.uri)
    assert [row.kind for row in store.audit.list()] == [kind]
    assert store.sidecars.list() == []
    check_pins_are_heads(store)
    check_history(store)


def test_a_temporary_beside_the_sidecars_goes_at_the_next_open(tmp_path: Path) -> None:
    with new_graph(str(tmp_path / "graph")) as store:
        old, young = (Path(store.uri, "__recovery", f"01JZ000000000000000000000{n}.json#1") for n in (0, 1))
        old.parent.mkdir(exist_ok=True)
        for file in (old, young):
            file.write_bytes(b"{")
        os.utime(old, (0, 0))
        open_store(store.uri).close()
        assert (old.exists(), young.exists()) == (False, True)


def test_what_is_missing_is_called_by_its_name(tmp_path: Path) -> None:
    with new_graph(str(tmp_path / "graph")) as store:
        create_branch(store, "side")
        with pytest.raises(BranchNotFound):
            store.branch("gone")
        pin = store.snapshot().pin(PERSON)
        for file in Path(store.uri, pin.location, "data").glob("*.lance"):
            file.unlink()
    with open_store(tmp_path / "graph", read_only=True) as reader:
        with pytest.raises(FileDamaged, match=r"data/\S+\.lance is missing") as caught:
            reader.tables.scan_table(table_of(pin))
        assert "branch was deleted" not in caught.value.message
        assert caught.value.details["path"].startswith(pin.location)
