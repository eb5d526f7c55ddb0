"""Beside writers of other processes: a mutation is written while another process has the window, keeps its place when
it lost a race, and leaves no file that nobody refers to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph.errors import ValidationFailed
from omnigraph.ledger.commit import attempts
from omnigraph.ledger.commit.window import lease_name
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.maintain.verify import verify
from omnigraph.storage.staging import staging
from omnigraph.write.mutate.mutate import mutate
from omnigraph.write.results import MutationResult
from tests.write.graphs import SCHEMA, fill, ids, person, rows

INSERT = "query q($s: String) { insert Person { slug: $s } }"
UPDATE = "query q($s: String, $a: I32) { update Person set { age: $a } where slug = $s }"
GONE = "query q($s: String) { delete Person where slug = $s }"
RETIRE = 'query q() { update Person set { status: "retired" } where slug = "p0" }'


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[GraphStore]:
    with create_store(tmp_path / "graph", SCHEMA) as made:
        fill(made, person("p0"), person("p1"))
        yield made


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that files of rows are written for."""
    found: list[str] = []
    write_rows = staging.write_rows

    def noted(handle: object, table: object, rows: object) -> object:
        found.append(table.location)  # type: ignore[attr-defined]
        return write_rows(handle, table, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(staging, "write_rows", noted)
    return found


def loose_files(store: GraphStore) -> set[str]:
    """Data files of people that no version refers to."""
    location = store.snapshot().pin("node:Person").location
    there = {entry.path.rpartition("/")[2] for entry in store.objects.list(f"{location}/data")}
    used = set()
    for info in store.tables.versions(location, None):
        version = store.tables.head(location).at(info.version)
        handle = store.tables.handles.at(version)
        used |= {str(file.path) for fragment in handle.get_fragments() for file in fragment.metadata.files}
    return there - used


def beside(store: GraphStore, work: Callable[[], object], meanwhile: Callable[[], object]) -> list[object]:
    """Run `work` while another process has the window, let that do something, and go on; what came of it."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    name = lease_name(store.branch("main"))
    store.queue.note_lost("main")
    with open_store(store.uri) as other:
        # Nobody knows that it is this process: the lock of the operating system is all that there is.
        with other.leases.acquire(name, "another process", again=True):
            writer = threading.Thread(target=run)
            writer.start()
            deadline = time.monotonic() + 60
            while not list(Path(store.root.path).glob("__locks/os/*.line")) or not writer.is_alive():
                assert time.monotonic() < deadline
                time.sleep(0.005)
        meanwhile()
        writer.join()
    return results


def test_the_file_of_an_insert_is_there_before_its_turn(graph: GraphStore, written: list[str]) -> None:
    beside(graph, lambda: mutate(graph, INSERT, params={"s": "new"}), lambda: None)
    location = graph.snapshot().pin("node:Person").location
    assert written.count(location) == 1, "written ahead, and not again in the window"
    assert ids(graph, "node:Person") == ["new", "p0", "p1"]
    assert loose_files(graph) == set()
    assert verify(graph).ok


def test_without_anybody_in_the_window_nothing_is_prepared_twice(
    graph: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_prepare_ahead", None)
    graph.queue.note_lost("main")
    mutate(graph, INSERT, params={"s": "new"})
    assert ids(graph, "node:Person") == ["new", "p0", "p1"]


def test_what_is_wrong_with_a_write_is_told_on_the_state_that_it_meets(graph: GraphStore) -> None:
    (failure,) = beside(graph, lambda: mutate(graph, UPDATE, params={"s": "p0", "a": 999}), lambda: None)
    assert isinstance(failure, ValidationFailed)
    assert loose_files(graph) == set()
    with open_store(graph.uri) as other:
        mutate(other, GONE, params={"s": "p0"})
    # What this process has seen last has the row; it is gone, and may come again.
    (result,) = beside(graph, lambda: mutate(graph, INSERT, params={"s": "p0"}), lambda: None)
    assert isinstance(result, MutationResult)
    assert result.commit is not None
    assert ids(graph, "node:Person") == ["p0", "p1"]
    assert loose_files(graph) == set()


def test_an_update_is_of_the_row_as_it_is_by_then(graph: GraphStore) -> None:
    with open_store(graph.uri) as other:
        mutate(other, RETIRE)
    beside(graph, lambda: mutate(graph, UPDATE, params={"s": "p0", "a": 7}), lambda: None)
    (row,) = [row for row in rows(graph, "node:Person") if row["slug"] == "p0"]
    assert (row["age"], row["status"]) == (7, "retired")
    assert loose_files(graph) == set()


def test_who_lost_a_race_keeps_its_place(graph: GraphStore, written: list[str]) -> None:
    """It finds out in the window that the table moved, and is prepared again there, with the file that it has."""
    entered: list[str] = []
    enter = graph.windows.enter

    def noted(*args: object, **options: object) -> object:
        entered.append("window")
        if len(entered) == 1:
            with open_store(graph.uri) as other:
                mutate(other, INSERT, params={"s": "theirs"})
            entered[:] = ["window"]
        return enter(*args, **options)  # type: ignore[arg-type]

    graph.windows.enter = noted  # type: ignore[method-assign,assignment]
    mutate(graph, INSERT, params={"s": "ours"})
    assert entered == ["window"], "once"
    location = graph.snapshot().pin("node:Person").location
    assert written.count(location) == 2, "theirs and ours"
    assert ids(graph, "node:Person") == ["ours", "p0", "p1", "theirs"]
    assert loose_files(graph) == set()


def test_a_program_that_writes_again_and_again_has_one_write_in_each_turn(graph: GraphStore) -> None:
    """Whoever waits for the lease gets it before the next write of this process."""
    graph.queue.note_lost("main")
    graph.queue.note_company("main")
    for number in range(3):
        mutate(graph, INSERT, params={"s": f"n{number}"})
        assert graph.leases.is_live(lease_name(graph.branch("main"))) is None
