"""Beside writers of other processes on other tables: nobody prepares in the window, and publishes are told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import TableMoved
from omnigraph.ledger.commit import attempts, queue
from omnigraph.ledger.manifest import publish
from omnigraph.ledger.manifest.manifest import Manifest
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.write.mutate.mutate import mutate
from tests.write.graphs import SCHEMA, fill, ids, person

PERSON = "query q($s: String) { insert Person { slug: $s } }"
FIRM = "query q($s: String) { insert Company { name: $s } }"


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[GraphStore, GraphStore]]:
    """Two handles that know nothing of each other, like those of two processes; each has written once."""
    monkeypatch.setattr(queue, "CONTENDED_WRITES", 4)
    with create_store(tmp_path / "graph", SCHEMA) as one, open_store(one.uri) as other:
        fill(one, person("p0"))
        mutate(one, PERSON, params={"s": "first"})
        mutate(other, FIRM, params={"s": "first"})
        yield one, other


def test_a_write_that_finds_publishes_of_others_knows_that_they_are_at_work(
    pair: tuple[GraphStore, GraphStore],
) -> None:
    one, other = pair
    mutate(one, PERSON, params={"s": "a"})
    assert one.queue.is_accompanied("main")
    assert not one.queue.is_contended("main"), "they move other tables: it need not hold the window to be prepared"
    mutate(other, FIRM, params={"s": "a"})
    assert other.queue.is_accompanied("main")


def test_alone_nobody_is_at_work(pair: tuple[GraphStore, GraphStore]) -> None:
    one, _ = pair
    one.snapshot()
    for number in range(6):
        mutate(one, PERSON, params={"s": f"a{number}"})
    assert not one.queue.is_accompanied("main")


def test_publishes_on_other_tables_are_told_and_not_read(
    pair: tuple[GraphStore, GraphStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pair
    for number in range(2):
        mutate(one, PERSON, params={"s": f"a{number}"})
        mutate(other, FIRM, params={"s": f"a{number}"})
    monkeypatch.setattr(Manifest, "_rows_since", None)
    monkeypatch.setattr(Manifest, "_scan", None)
    for number in range(2, 5):
        mutate(one, PERSON, params={"s": f"a{number}"})
        mutate(other, FIRM, params={"s": f"a{number}"})
    monkeypatch.undo()
    assert ids(one, "node:Person") == sorted(["p0", "first", *(f"a{number}" for number in range(5))])


def test_who_holds_the_window_for_tables_that_nobody_else_moves_gives_that_up(
    pair: tuple[GraphStore, GraphStore],
) -> None:
    one, other = pair
    one.queue.note_lost("main")
    for number in range(6):
        mutate(other, FIRM, params={"s": f"a{number}"})
        mutate(one, PERSON, params={"s": f"a{number}"})
    assert not one.queue.is_contended("main")


def test_and_keeps_it_up_where_others_move_its_table(pair: tuple[GraphStore, GraphStore]) -> None:
    one, other = pair
    one.queue.note_lost("main")
    for number in range(6):
        mutate(other, PERSON, params={"s": f"b{number}"})
        mutate(one, PERSON, params={"s": f"a{number}"})
    assert one.queue.is_contended("main")


def test_a_write_that_lost_does_not_read_the_history_in_the_window(
    pair: tuple[GraphStore, GraphStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pair
    asked: list[str] = []
    monkeypatch.setattr(publish, "table_data_changed", lambda *args: asked.append(args[2]) or True)
    lost: list[TableMoved] = []
    again = attempts._prepare_again_or_raise

    def noted(store: GraphStore, failure: TableMoved, *rest: object) -> None:
        lost.append(failure)
        again(store, failure, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(attempts, "_prepare_again_or_raise", noted)
    # What it starts from is looked up before the other one comes.
    entered = attempts._entered

    def overtaken(*args: object, **options: object) -> object:
        found = entered(*args, **options)  # type: ignore[arg-type]
        if args[0] is one:
            mutate(other, PERSON, params={"s": "overtakes"})
        return found

    monkeypatch.setattr(attempts, "_entered", overtaken)
    mutate(one, PERSON, params={"s": "lost"})
    assert len(lost) == 1
    assert asked == []
    assert lost[0].data_changed, "who wants to know it asks"
    assert asked == ["node:Person"]


def test_commits_wait_longer_for_the_log_while_others_publish(tmp_path: Path) -> None:
    with override(commit_log_delay=0.01), create_store(tmp_path / "graph", SCHEMA) as store:
        mutate(store, PERSON, params={"s": "alone"})
        deadline = time.monotonic() + 60
        while store.unlogged._waiting:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        store.queue.note_company("main")
        with override(commit_log_delay=60.0):
            mutate(store, PERSON, params={"s": "beside"})
            assert store.unlogged._with_others
        store.unlogged.flush()
