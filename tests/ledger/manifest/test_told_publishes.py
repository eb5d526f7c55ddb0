"""Publishes that processes tell each other: what was told is what would be read, and whatever does not fit is read."""

import os
import shutil
import time
from pathlib import Path

import pytest

from omnigraph.ledger.manifest.manifest import Manifest
from omnigraph.ledger.manifest.publish import Publication, publish
from omnigraph.ledger.manifest.told_publishes import KEPT_PUBLISHES, ToldPublishes
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.storage.constants import OS_LOCK_DIRECTORY
from omnigraph.storage.told_files import ToldFiles
from tests.ledger.graphs import KNOWS, PERSON, SCHEMA, add_people, counted, draft, people, publish_move


@pytest.fixture
def graph(tmp_path: Path) -> GraphStore:
    """A graph on local disk, where publishes are told."""
    return create_store(str(tmp_path / "graph"), SCHEMA)


def in_company(store: GraphStore) -> GraphStore:
    """A writer that knows that others publish too."""
    store.queue.note_company("main")
    return store


def as_found(state):
    rows = sorted((row["object_id"], row["_rowid"], row["_rowaddr"], row["table_version"]) for row in state.rows)
    return state.table, state.head, dict(state.tables), rows


def told_file(store: GraphStore) -> Path:
    return Path(store.root.path, OS_LOCK_DIRECTORY, "published.told")


def test_what_was_told_is_what_would_be_read(graph):
    other = open_store(graph.uri)
    other.snapshot()
    for writer, reader in ((graph, other), (other, graph), (graph, other)):
        in_company(writer)
        for number in range(3):
            publish_move(writer, table_key=KNOWS if number == 1 else PERSON)
        newest = reader.manifest.read(reader.branch("main"))
        with counted(reader) as calls:
            between = [reader.manifest.read(reader.branch("main"), newest.version - back) for back in (2, 1, 0)]
        assert calls["open"] == 0, "the versions between were told, and nobody opens them"
        fresh = Manifest(open_store(graph.uri, read_only=True).tables)
        assert [as_found(state) for state in between] == [as_found(fresh.at(state.table)) for state in between]


def test_tables_that_go_and_tables_that_change_names_are_told(graph):
    other = open_store(graph.uri)
    changes = (
        lambda base: Publication(draft(base), renamed=((PERSON, "node:Human"),)),
        lambda base: Publication(draft(base), tombstones=(KNOWS,)),
    )
    for change in changes:
        before = other.manifest.read(other.branch("main"))
        publish(in_company(graph), graph.branch("main"), change(graph.snapshot()))
        state = other.manifest.read(other.branch("main"))
        assert ToldPublishes(ToldFiles(other.tables.root)).since(before.table, state.table), "it was told"
        assert as_found(state) == as_found(Manifest(open_store(graph.uri, read_only=True).tables).at(state.table))
    assert "node:Human" in state.tables
    assert KNOWS not in state.tables


def test_who_is_alone_tells_nobody(graph):
    publish_move(graph)
    assert not told_file(graph).exists()


def test_ids_of_rows_that_another_process_brought_are_known_without_reading_them(graph):
    other = open_store(graph.uri)
    other.snapshot()
    add_people(in_company(graph), "ada", "bob")
    known = other.tables.handles.fragment_ids.kept()
    other.manifest.read(other.branch("main"))
    assert other.tables.handles.fragment_ids.kept() == known + 2
    assert people(other) == ["ada", "bob"]


def test_more_publishes_than_are_told_are_read(graph):
    other = open_store(graph.uri)
    other.snapshot()
    for _ in range(KEPT_PUBLISHES + 2):
        publish_move(in_company(graph))
    state = other.manifest.read(other.branch("main"))
    assert as_found(state) == as_found(Manifest(open_store(graph.uri, read_only=True).tables).at(state.table))


@pytest.mark.parametrize("left", [0, 5, -1])
def test_what_is_half_told_is_read(graph, left):
    other = open_store(graph.uri)
    other.snapshot()
    add_people(in_company(graph), "ada")
    file = told_file(graph)
    file.write_bytes(file.read_bytes()[:left])
    assert people(other) == ["ada"]


def test_what_another_history_told_is_not_believed(graph, tmp_path):
    """A copy of the files from before goes on by itself: its versions have the same numbers and are others."""
    add_people(graph, "ada")
    shutil.copytree(graph.root.path, tmp_path / "copy")
    copy = open_store(str(tmp_path / "copy"))
    reader = open_store(copy.uri)
    reader.snapshot()
    add_people(in_company(graph), "bob")
    add_people(copy, "eve")
    shutil.copy(told_file(graph), told_file(copy))
    assert people(reader) == ["ada", "eve"]


def test_each_of_several_writers_passes_on_what_the_others_told(graph):
    """Also when the first publishes were not told: nobody knew yet that others would publish too."""
    writers = [graph, open_store(graph.uri), open_store(graph.uri)]
    for writer in writers:
        writer.snapshot()
        publish_move(writer)
    for round_ in range(3):
        for writer in writers:
            with counted(writer) as calls:
                newest = writer.manifest.read(writer.branch("main"))
                writer.manifest.read(writer.branch("main"), newest.version - 1)
            assert calls["open"] <= (1 if round_ else 2), "the version between was told"
            publish_move(in_company(writer))


def test_what_was_told_long_ago_is_cleared_away(graph):
    """Of a branch that is deleted nobody would remove it otherwise."""
    publish_move(in_company(graph))
    graph.leases.sweep()
    assert told_file(graph).exists(), "somebody may be about to read it"
    hours_ago = time.time() - 7200
    os.utime(told_file(graph), (hours_ago, hours_ago))
    graph.leases.sweep()
    assert not told_file(graph).exists()


def test_a_read_only_handle_believes_what_is_told_and_tells_nothing(graph):
    reader = open_store(graph.uri, read_only=True)
    reader.snapshot()
    add_people(in_company(graph), "ada")
    told = told_file(graph).read_bytes()
    assert people(reader) == ["ada"]
    assert told_file(graph).read_bytes() == told
