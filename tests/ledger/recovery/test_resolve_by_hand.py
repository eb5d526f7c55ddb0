"""Resolving a refused sidecar by force: published as it stands, or put back, with one audit row; never otherwise."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequest, NotFound
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.recovery.resolve_by_hand import force_sidecar
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import WriterKind
from tests.faults.invariants import check_history, check_pins_are_heads, observe
from tests.faults.scenarios import work
from tests.faults.writers import KNOWS, PERSON, content, put_friends
from tests.ledger.processes import run_killed


@pytest.fixture
def refused(store: GraphStore) -> GraphStore:
    """A graph with a dead writer whose tables somebody else committed to as well."""
    run_killed(work, store.uri, "main", at="write.tables_committed")
    pin = store.snapshot().pin(PERSON)
    head = store.tables.head(pin.location)
    rows = store.tables.take_ids(head, ["grace"])
    store.tables.commit_staged(store.tables.stage_delete(head, rows["id"]), "somebody")
    return open_store(store.uri)


@pytest.mark.parametrize("restore", [False, True])
def test_resolves_with_one_audit_row_and_the_next_write_works(refused: GraphStore, restore: bool) -> None:
    before, operation_id = observe(refused), refused.sidecars.list()[0]
    pins = refused.snapshot().tables
    heads = {key: refused.tables.head(pin.location).version for key, pin in pins.items()}
    commit = force_sidecar(refused, operation_id, restore=restore, actor="act-ada")
    assert commit is not None
    assert (commit.kind, commit.actor_id, commit.changes_data) == (WriterKind.REPAIR, "act-ada", not restore)
    people = {row[0] for row in content(refused)[PERSON]}
    assert people == ({"ada", "grace", "alan"} if restore else {"ada", "alan", "bob"})
    if restore:
        assert observe(refused) == before
    assert refused.sidecars.list() == []
    (row,) = refused.audit.list()
    assert row.kind is (RecoveryKind.ROLLED_BACK if restore else RecoveryKind.ROLLED_FORWARD)
    assert row.graph_commit_id == commit.graph_commit_id
    assert {table.table_key for table in row.tables} == {PERSON, KNOWS}
    for table in row.tables:
        assert heads[table.table_key] > pins[table.table_key].version
        stands = pins[table.table_key].version if restore else heads[table.table_key]
        assert (table.from_version, table.to_version) == (heads[table.table_key], stands)
    check_pins_are_heads(refused)
    check_history(refused)
    put_friends(open_store(refused.uri), {"zoe": 1}, [("zoe", "ada")])


def test_what_recovery_can_handle_is_left_to_recovery(store: GraphStore) -> None:
    run_killed(work, store.uri, "main", at="write.table_committed")
    before = observe(store)
    with pytest.raises(BadRequest, match="by itself"):
        force_sidecar(store, store.sidecars.list()[0], restore=False)
    assert observe(store) == before
    assert len(store.sidecars.list()) == 1
    open_store(store.uri)
    assert observe(store) == before
    with pytest.raises(NotFound):
        force_sidecar(store, "01JZ0000000000000000000000", restore=True)
