"""Cleanup beside writers: nothing that they write is lost, whatever the moment; and the same on an object store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from omnigraph.config import override
from omnigraph.errors import Busy, Conflict, NotFound, RecoveryRequired
from omnigraph.ledger.branches import refs
from omnigraph.ledger.branches.branches import create_branch, delete_branch
from omnigraph.ledger.branches.live_branches import for_live_branches
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.ledger.values import BranchRef
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.optimize.optimize import optimize
from omnigraph.maintain.survey.inventory import versions_of
from omnigraph.maintain.tags import Tags
from omnigraph.maintain.verify import verify
from omnigraph.merge.merge import merge
from omnigraph.storage.lance_errors import TableNotFound
from tests.maintain.graphs import SCHEMA, people, put

WRITES = 12
MOST_WRITES = 200


@dataclass
class Writer:
    """Writes to main, and on branches that are made, merged and deleted on the way, until it is enough."""

    uri: str
    name: str
    enough: threading.Event
    written: set[str] = field(default_factory=set)
    failure: BaseException | None = None

    def work(self) -> None:
        try:
            with open_store(self.uri) as store:
                for number in range(0, MOST_WRITES, 4):
                    if number >= WRITES and self.enough.is_set():
                        return
                    branch = f"{self.name}{number}"
                    self._put(store, "main", number)
                    self._put(store, "main", number + 1)
                    create_branch(store, branch)
                    self._put(store, branch, f"b{number}")
                    self._put(store, "main", number + 2)
                    self._put(store, "main", number + 3)
                    merge(store, branch, "main")
                    delete_branch(store, branch)
        except BaseException as failure:
            self.failure = failure

    def _put(self, store: GraphStore, branch: str, number: int | str) -> None:
        put(store, branch, **{f"{self.name}-{number}": 1})
        self.written.add(f"{self.name}-{number}")


def test_with_no_grace_and_writers_at_work_nothing_is_lost(store: GraphStore, no_grace: None) -> None:
    put(store, first=1)
    enough = threading.Event()
    writers = [Writer(store.uri, name, enough) for name in ("a", "b")]
    threads = [threading.Thread(target=writer.work) for writer in writers]
    for thread in threads:
        thread.start()
    cleaned = 0
    while any(thread.is_alive() for thread in threads):
        try:
            cleanup(store, keep_versions=1, force=True, confirm=True)
            cleaned += 1
            if cleaned == 2:
                enough.set()
            optimize(store)
        except (Busy, Conflict, RecoveryRequired):
            continue
    for thread in threads:
        thread.join()
    assert [writer.failure for writer in writers] == [None, None]
    assert cleaned
    with open_store(store.uri) as reopened:
        assert people(reopened).keys() == {"first", *writers[0].written, *writers[1].written}
        cleanup(reopened, keep_versions=3, confirm=True)
        assert verify(reopened).ok


def test_verify_finds_nothing_while_branches_are_deleted(store: GraphStore) -> None:
    put(store, first=1)
    names = [f"b{number}" for number in range(8)]
    for name in names:
        create_branch(store, name)
        put(store, name, **{name: 1})
    failures: list[BaseException] = []

    def delete_all() -> None:
        try:
            with open_store(store.uri) as other:
                for name in names:
                    delete_branch(other, name)
        except BaseException as failure:
            failures.append(failure)

    deleter = threading.Thread(target=delete_all)
    deleter.start()
    reports = [verify(store)]
    while deleter.is_alive():
        reports.append(verify(store))
    deleter.join()
    assert not failures, failures
    assert [report.findings for report in reports if not report.ok] == []


def test_a_line_that_went_after_it_was_listed_is_left_out_and_a_broken_one_is_not(store: GraphStore) -> None:
    put(store, first=1)
    create_branch(store, "review")
    put(store, "review", zoe=1)
    pin = store.snapshot(branch="review").pin("node:Person")
    assert pin.lance_branch is not None
    assert versions_of(store, pin.location, pin.lance_branch)
    assert versions_of(store, pin.location, "f-that-went") is None
    store.objects.delete_prefix(f"{pin.location}/tree/{pin.lance_branch}")
    with open_store(store.uri) as fresh, pytest.raises(TableNotFound):
        versions_of(fresh, pin.location, pin.lance_branch)


def test_a_branch_that_goes_in_the_middle_of_the_work_is_left_out_and_a_failure_on_a_live_one_is_not(
    store: GraphStore,
) -> None:
    put(store, first=1)
    create_branch(store, "goes")
    put(store, "goes", zoe=1)

    def work(ref: BranchRef) -> str:
        if ref.name == "goes":
            delete_branch(store, "goes")
            raise NotFound("its rows are gone")
        return ref.name

    assert [name for _, name in for_live_branches(store, work)] == ["main"]

    def failing(ref: BranchRef) -> str:
        raise NotFound(f"{ref.name} is damaged")

    with pytest.raises(NotFound, match="main is damaged"):
        for_live_branches(store, failing)


@pytest.mark.s3
def test_on_an_object_store(s3_uri: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refs, "TOMBSTONE_SECONDS", -1.0)
    with create_store(s3_uri(), SCHEMA) as store, override(cleanup_grace=0.0):
        for number in range(6):
            put(store, **{f"p{number}": number})
        Tags(store, "main", None).create("old", store.snapshot().head.parent_commit_id)
        create_branch(store, "review")
        put(store, "review", zoe=1)
        for number in range(5):
            put(store, **{f"q{number}": number})
        create_branch(store, "gone")
        put(store, "gone", yan=1)
        delete_branch(store, "gone")
        result = cleanup(store, keep_versions=3, confirm=True)
        assert not result.failed, result
        assert store.refs.sweep(-1.0) == 0, "the tombstone of the deleted branch is gone already"
        assert sum(table.old_versions_removed for table in result.tables) > 5
        with open_store(store.uri) as reopened:
            assert len(people(reopened)) == 11
            assert len(people(reopened, "old")) == 5
            assert len(people(reopened, branch="review")) == 7
            assert verify(reopened).ok
            merge(reopened, "review", "main")
