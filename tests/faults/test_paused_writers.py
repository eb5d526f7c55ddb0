"""A writer that is stopped past its lease on an object store, while somebody else finishes or undoes its write.

What it is told afterwards must be what happened: a write that stands is a success, one that was undone says so and may
be tried again, and only where nobody can tell is the caller asked to look.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import OmniGraphError
from omnigraph.ledger.store import GraphStore, open_store
from tests.faults.harness import join, start_child, wait_for
from tests.faults.invariants import check_history, check_pins_are_heads
from tests.faults.writers import PERSON, content, new_graph, put_friends
from tests.ledger.places import let_leases_run_out

pytestmark = pytest.mark.s3


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody waits long, here and in the children; leases would last long enough for a slow machine."""
    monkeypatch.setenv("OMNIGRAPH_LEASE_WAIT_SECONDS", "10s")
    with override(lease_wait_seconds=10.0):
        yield


def write_and_tell(uri: str, answer: str) -> None:
    """The write that is stopped; what its caller is told goes to a file."""
    try:
        told = {"commit": put_friends(open_store(uri), {"bob": 7}, [("ada", "bob")]).graph_commit_id}
    except OmniGraphError as error:
        told = {"class": type(error).__name__, "retryable": error.retryable, **error.to_json()}
    Path(answer).write_text(json.dumps(told))


def stopped(uri: str, tmp_path: Path, at: str, meanwhile: Callable[[], object]) -> dict[str, object]:
    """Stop the write at a failpoint, let its lease run out, do something, let it go on; what it is told."""
    gate, answer = tmp_path / "gate", tmp_path / "answer"
    child = start_child(write_and_tell, uri, str(answer), failpoints_on={at: f"pause:{gate}"})
    wait_for(Path(f"{gate}.reached"))
    assert child.pid is not None
    os.kill(child.pid, signal.SIGSTOP)
    try:
        let_leases_run_out(uri, child.pid)
        meanwhile()
    finally:
        gate.touch()
        os.kill(child.pid, signal.SIGCONT)
    assert join(child) == 0
    told: dict[str, object] = json.loads(answer.read_text())
    return told


def people(store: GraphStore) -> set[object]:
    return {row[0] for row in content(store)[PERSON]}


def sound(uri: str) -> GraphStore:
    store = open_store(uri)
    assert store.sidecars.list() == []
    check_pins_are_heads(store)
    check_history(store)
    return store


@pytest.mark.parametrize("at", ["write.tables_committed", "publish.before", "write.published"])
def test_finished_by_somebody_else_is_a_success(s3_uri: Callable[[], str], tmp_path: Path, at: str) -> None:
    uri = new_graph(s3_uri()).uri
    told = stopped(uri, tmp_path, at, lambda: open_store(uri))
    store = sound(uri)
    assert told == {"commit": store.snapshot().head.graph_commit_id}
    assert "bob" in people(store)
    assert len(store.audit.list()) == 1


def test_undone_by_somebody_else_says_so_and_may_be_tried_again(s3_uri: Callable[[], str], tmp_path: Path) -> None:
    uri = new_graph(s3_uri()).uri
    told = stopped(uri, tmp_path, "write.table_committed", lambda: open_store(uri))
    store = sound(uri)
    assert told["class"] == "LeaseLost"
    assert told["retryable"] is True
    assert "undone" in str(told["error"])
    assert told["operation_id"] == store.audit.list()[0].operation_id
    assert "bob" not in people(store)


@pytest.mark.parametrize(("at", "stands"), [("write.tables_committed", True), ("write.table_committed", False)])
def test_when_nobody_came_the_writer_resolves_it_itself(
    s3_uri: Callable[[], str], tmp_path: Path, at: str, stands: bool
) -> None:
    store = new_graph(s3_uri())
    uri = store.uri
    told = stopped(uri, tmp_path, at, lambda: store.objects.delete_prefix("__locks/leases"))
    assert ("commit" in told) == stands
    assert ("bob" in people(sound(uri))) == stands


def test_a_real_doubt_names_the_operation_and_is_not_to_be_tried_again(
    s3_uri: Callable[[], str], tmp_path: Path
) -> None:
    uri = new_graph(s3_uri()).uri
    store = open_store(uri)

    def steal() -> None:
        # Somebody removes the sidecar by hand: nobody can tell any more what the tables on disk mean.
        store.objects.delete_prefix("__recovery")

    told = stopped(uri, tmp_path, "write.table_committed", steal)
    assert told["class"] == "WriteInDoubt"
    assert told["retryable"] is False
    assert told["operation_id"]
