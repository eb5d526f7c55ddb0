"""Nobody waits for long: a large load ends beside small writers, which go on; and they go on beside maintenance."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.failpoints import active
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.maintain import cleanup as _declares_its_failpoints  # noqa: F401
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate
from tests.faults.harness import start_child, wait_for
from tests.write.graphs import SCHEMA, edge, fill, ids, person

pytestmark = pytest.mark.usefixtures("logged_soon")

INSERT = "query q($s: String) { insert Person { slug: $s } }"


def keep_writing(uri: str, name: str, stop: str) -> None:
    """Small writes from another process, until a file says stop."""
    with og.open(uri) as graph:
        number = 0
        while not Path(stop).exists():
            graph.mutate(INSERT, s=f"{name}-{number}")
            number += 1
            Path(f"{stop}.{name}").touch()


class Beside:
    """Threads that write all the time; what they wrote and what went wrong."""

    def __init__(self, store: GraphStore, writers: int) -> None:
        self.written = 0
        self.errors: list[Exception] = []
        self._stop = threading.Event()
        self._store = store
        self._threads = [threading.Thread(target=self._write, args=(n,)) for n in range(writers)]

    def _write(self, name: int) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                mutate(self._store, INSERT, params={"s": f"w{name}-{number}"})
                self.written += 1
            except Exception as error:
                self.errors.append(error)
            number += 1

    def __enter__(self) -> Beside:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_large_load_ends_beside_small_writers_and_they_go_on(store: GraphStore, mode: str):
    fill(store, person("big-1"))
    during: list[int] = []
    with override(queued_load_bytes=0), Beside(store, 4) as beside:

        def rows():
            for number in range(2, 402):
                if number % 100 == 0:
                    at = beside.written
                    deadline = time.monotonic() + 60
                    # In its first round the load waits for the writers: they must not wait for it.
                    while not during and beside.written < at + 2 and time.monotonic() < deadline:
                        time.sleep(0.001)
                yield person(f"big-{number}")
            during.append(beside.written)

        result = load(store, rows_again(rows), mode=mode)
        assert result.rows_loaded == 400
        after = beside.written
        deadline = time.monotonic() + 60
        while beside.written == after and time.monotonic() < deadline:
            time.sleep(0.001)
        assert beside.written > after, "they go on afterwards"
    assert beside.errors == []
    assert during[0] >= 6, "they went on while it was read"
    most = 1 if mode == "append" else 3
    assert len(during) <= most, "an append is read once; a merge again when it lost, and when tails were compacted"
    assert len(ids(store, "node:Person")) == 401 + beside.written


def rows_again(rows: Callable[[], object]) -> object:
    """An input that can be read more than once, as files can."""

    class Again:
        def __iter__(self):
            return iter(rows())

    return Again()


def test_a_large_merge_is_prepared_three_times_at_most(store: GraphStore):
    """Whoever comes between two times finds the door closed at the third: the load holds the window by then."""
    fill(store, person("big-1"))
    came: list[bool] = []

    def rows():
        yield person("big-1", age=1)
        # A write from inside waits for no turn, like one of another process.
        with override(queue_wait_seconds=0.1, lease_wait_seconds=0.1):
            try:
                mutate(store, INSERT, params={"s": f"between-{len(came)}"})
                came.append(True)
            except og.errors.Busy:
                came.append(False)
        yield person("big-2", age=2)

    with override(queued_load_bytes=0):
        assert load(store, rows_again(rows), mode="merge").rows_loaded == 2
    assert came == [True, True, False]
    assert ids(store, "node:Person") == ["between-0", "between-1", "big-1", "big-2"]


DELETE = "query q($s: String) { delete Person where slug = $s }"


@pytest.mark.parametrize(
    ("meanwhile", "slug", "refused"),
    [(INSERT, "big-2", "big-2"), (DELETE, "p1", "p1"), (INSERT, "other", None), (DELETE, "p0", None)],
)
def test_an_append_that_lost_is_checked_against_what_came_first(
    store: GraphStore, meanwhile: str, slug: str, refused: str | None
):
    """Nothing is decoded or written again, and still no id is there twice and no edge is left without its end."""
    fill(store, person("p0"), person("p1"), person("p2"))
    rounds: list[int] = []

    def rows():
        rounds.append(1)
        yield person("big-1")
        mutate(store, meanwhile, params={"s": slug})
        yield person("big-2")
        yield edge("Knows", "p1", "p2")

    data = Path(store.uri, store.snapshot().pin("node:Person").location, "data")
    with override(queued_load_bytes=0):
        if refused is None:
            assert load(store, rows_again(rows), mode="append").rows_loaded == 3
        else:
            with pytest.raises(og.errors.ValidationFailed, match=refused):
                load(store, rows_again(rows), mode="append")
    assert len(rounds) == 1
    there = ids(store, "node:Person")
    assert ("big-1" in there) == (refused is None)
    assert len(there) == len(set(there))
    assert len(list(data.glob("*.lance"))) == 1 + (meanwhile == INSERT) + (refused is None), "no file is left over"


@pytest.mark.slow
def test_a_large_load_ends_beside_writers_of_other_processes(tmp_path: Path):
    uri, stop = str(tmp_path / "g"), str(tmp_path / "stop")
    with create_store(uri, SCHEMA) as store:
        fill(store, person("first"))
        children = [start_child(keep_writing, uri, name, stop) for name in ("x", "y")]
        try:
            for name in ("x", "y"):
                wait_for(Path(f"{stop}.{name}"))
            with override(queued_load_bytes=0):
                load(store, [person(f"big-{number}") for number in range(3000)], mode="append")
                load(store, [person(f"big-{number}", age=3) for number in range(1000)], mode="merge")
        finally:
            Path(stop).touch()
            for child in children:
                child.join(60)
        assert [child.exitcode for child in children] == [0, 0]
        assert sum(one.startswith("big-") for one in ids(store, "node:Person")) == 3000


@pytest.mark.parametrize(
    "failpoint", ["optimize.prepared", "cleanup.chosen", "cleanup.before_versions", "cleanup.between_tables"]
)
def test_writers_do_not_wait_while_maintenance_works(tmp_path: Path, failpoint: str):
    """Stopped in the middle of the long part of its work, maintenance holds no turn and no window."""
    gate = tmp_path / "gate"
    with override(cleanup_grace=0.0), og.init(tmp_path / "g", schema="node Person { slug: String @key }") as graph:
        for number in range(4):
            graph.mutate(INSERT, s=f"p{number}")
        if failpoint.startswith("cleanup"):
            graph.optimize(engine="local")

        def maintain() -> None:
            if failpoint.startswith("optimize"):
                graph.optimize(engine="local")
            else:
                graph.cleanup(keep_versions=1, confirm=True, force=True)

        with active(failpoint, f"pause:{gate}"):
            working = threading.Thread(target=maintain)
            working.start()
            try:
                wait_for(Path(f"{gate}.reached"))
                with override(lease_wait_seconds=20.0, queue_wait_seconds=20.0):
                    graph.mutate(INSERT, s="meanwhile")
            finally:
                gate.touch()
                working.join()
        assert graph.entity("Person", "meanwhile") is not None
        graph.mutate(INSERT, s="afterwards")
        assert graph.verify().ok
