"""Handles are shared by threads: no call may lock one for itself while another thread uses it."""

import threading

import pyarrow as pa
import pytest

from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root


@pytest.fixture
def store(tmp_path):
    store = TableStore(parse_root(str(tmp_path)))
    table = store.create("t", pa.schema([pa.field("id", pa.string())]), rows=pa.table({"id": ["a"]}))
    for name in "bcd":
        table = store.commit_staged(store.stage_append(table, pa.table({"id": [name]})), "op")
    return store


def test_guard_lance_locks_a_handle_while_it_reads_a_transaction(store):
    """The behaviour that `Handles.private` works around; if this fails, Lance has become kinder."""
    handle = store.handles.at(store.head("t"))
    assert _trouble(lambda: handle.read_transaction(4), lambda: handle.version) > 0


@pytest.mark.parametrize("call", ["transactions", "create_fork", "delete_fork"])
def test_others_can_use_a_table_meanwhile(store, call):
    table = store.head("t")
    numbers = iter(range(10**6))
    calls = {
        "transactions": lambda: store.transactions("t", None, 1, 4),
        "create_fork": lambda: store.create_fork(table, f"f-{next(numbers)}"),
        "delete_fork": lambda: store.delete_fork("t", "f-none"),
    }
    assert _trouble(calls[call], lambda: store.head("t")) == 0


def _trouble(work, look, seconds=0.4):
    """How often `look` fails in one thread while another one works."""
    stop, failures = threading.Event(), []

    def looking():
        while not stop.is_set():
            try:
                look()
            except RuntimeError as error:
                failures.append(error)

    thread = threading.Thread(target=looking)
    thread.start()
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    while not stop.is_set():
        work()
    thread.join()
    return len(failures)
