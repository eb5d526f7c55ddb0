"""The file of a commit's row in the log is written while the commit is being published, and serves only if it fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import Conflict
from omnigraph.ledger.history.commit_log import NOT_AHEAD
from omnigraph.ledger.history.log_rows import ID, LOG, LogEntry
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.ledger.values import GraphCommit
from omnigraph.maintain.verify import verify
from tests.ledger.graphs import SCHEMA, add_people
from tests.ledger.history.test_commit_log import made_up


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    return create_store(tmp_path / "graph", SCHEMA)


def next_one(store: GraphStore, parent: GraphCommit | None = None) -> LogEntry:
    state = store.snapshot()
    return made_up(7, (parent or state.head).graph_commit_id, state.tables)


def files(store: GraphStore) -> set[str]:
    return {entry.path.rpartition("/")[2] for entry in store.objects.list(f"{LOG}/data")}


def logged(store: GraphStore) -> list[str]:
    with open_store(store.uri, read_only=True) as other:
        return other.tables.scan_table(other.tables.head(LOG), columns=[ID])[ID].to_pylist()


def test_an_append_takes_the_file_that_is_there(store: GraphStore) -> None:
    store.commits.check()
    entry = next_one(store)
    store.commits.write_ahead(entry)
    before = files(store)
    store.commits.append([entry])
    assert files(store) == before
    assert logged(store)[-1] == entry.commit.graph_commit_id


def test_what_somebody_else_was_faster_than_is_removed_and_not_tried_again_at_once(store: GraphStore) -> None:
    store.commits.check()
    entry = next_one(store)
    store.commits.write_ahead(entry)
    with open_store(store.uri) as other:
        theirs = next_one(other)
        other.commits.append([theirs])
    store.commits.append([entry])
    assert logged(store)[-2:] == [theirs.commit.graph_commit_id, entry.commit.graph_commit_id]
    used = {
        file.path
        for info in store.tables.versions(LOG, None)
        for fragment in store.tables.handles.at(store.tables.head(LOG).at(info.version)).get_fragments()
        for file in fragment.metadata.files
    }
    assert files(store) == used, "the file that was in vain is gone"
    parent = entry.commit
    for _ in range(NOT_AHEAD):
        before, following = files(store), next_one(store, parent)
        store.commits.write_ahead(following)
        assert files(store) == before
    store.commits.write_ahead(next_one(store, parent))
    assert files(store) > before


@pytest.mark.parametrize("ahead", [True, False])
def test_a_file_that_a_conflict_has_abandoned_is_not_found_again(
    store: GraphStore, ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each append starts a fragment here, so both attempts have the very same rows."""
    with override(commit_log_tail_rows=1):
        store.commits.forget()
        store.commits.check()
        entry = next_one(store)
        if ahead:
            store.commits.write_ahead(entry)
        commit_staged, failed = store.tables.commit_staged, []

        def refused_once(*args: object, **options: object) -> object:
            if not failed:
                failed.append(1)
                raise Conflict("somebody else was faster")
            return commit_staged(*args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(store.tables, "commit_staged", refused_once)
        store.commits.append([entry])
    assert failed
    assert logged(store)[-1] == entry.commit.graph_commit_id


def test_a_store_without_writes_ahead_has_the_same_log(store: GraphStore) -> None:
    add_people(store, "ada")
    add_people(store, "bob")
    assert verify(store, deep=True).ok
    assert len(logged(store)) == 3
