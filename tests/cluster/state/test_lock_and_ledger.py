"""One operator at a time: the lock, taking it away, two applies at once, the ledger's compare-and-swap; on S3 too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cluster import operations
from omnigraph.cluster.change.open_ledger import OpenLedger
from omnigraph.cluster.folder.read_folder import read_folder
from omnigraph.cluster.state.cluster_lock import HeldCluster
from omnigraph.cluster.state.cluster_store import ClusterStore
from omnigraph.config import override
from omnigraph.errors import Busy, Conflict, LeaseLost, NotFound
from tests.cluster.deployments import change, without_people, write
from tests.cluster.operators import apply, apply_or_refused
from tests.faults.harness import answers_of


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A deployment, stored in its folder or on S3."""
    if request.param == "local":
        return write(tmp_path)
    fresh: Callable[[], str] = request.getfixturevalue("s3_uri")
    return write(tmp_path, fresh())


def test_the_lock_is_held_told_and_taken_away(folder: Path) -> None:
    store = ClusterStore(read_folder(folder).storage)
    with pytest.raises(NotFound, match="nobody holds the lock"):
        operations.force_unlock(folder, "01X")
    with store.lock.held("apply", "act-ada") as held:
        with override(lease_wait_seconds=0.0), pytest.raises(Busy, match=r"locked by act-ada \(apply, .*force-unlock"):
            operations.apply(folder, "act-bob")
        lock = operations.status(folder).lock
        assert lock is not None
        assert (lock.holder, lock.operation, lock.live) == ("act-ada", "apply", True)
        with pytest.raises(Conflict, match="nothing was changed"):
            operations.force_unlock(folder, "01WRONG")
        held.check()
        operations.force_unlock(folder, lock.id)
        with pytest.raises(LeaseLost):
            held.check()
        # Somebody else has it now; the first holder's end disturbs nobody.
        second = store.lock.held("refresh", "act-bob")
        other = second.__enter__()
    other.check()
    assert operations.status(folder).lock.holder == "act-bob"
    second.__exit__(None, None, None)
    assert operations.status(folder).lock is None


def test_from_nothing_through_changes_to_a_deletion_wherever_it_is_stored(folder: Path) -> None:
    assert operations.status(folder).state is None
    assert operations.apply(folder, "act-ada").converged
    assert not operations.apply(folder, "act-ada").changed
    change(folder, "notes.pg", "text: String?", "text: String?\n    stars: I32?")
    change(folder, "people.pg", "age: I32?", "age: I32?\n    mail: String?")  # its lock leaves a tombstone on S3
    assert operations.apply(folder, None).converged
    without_people(folder)
    assert not operations.apply(folder, None).converged
    operations.approve(folder, "graph.people", None)
    assert operations.apply(folder, None).converged
    assert operations.refresh(folder, None).findings == ()
    store = ClusterStore(read_folder(folder).storage)
    with og.open(store.graph_uri("notes"), read_only=True) as graph:
        assert "stars" in graph.schema_source()
    with pytest.raises(NotFound):
        og.open(store.graph_uri("people"))
    assert store.names_of_graphs() == ["notes.omni"]


def test_two_applies_at_once_are_one_after_the_other_or_refused(tmp_path: Path) -> None:
    write(tmp_path)
    answers = answers_of(apply, [(str(tmp_path),)] * 2)
    assert sorted(answers) == [(True, False), (True, True)]
    change(tmp_path, "queries/notes.gq", "$n.slug, $n.text", "$n.slug")
    answers = answers_of(apply_or_refused, [(str(tmp_path),)] * 3)
    assert answers.count("changed") == 1
    assert set(answers) <= {"changed", "nothing", "refused"}


def test_without_a_lock_the_ledger_is_still_nobody_elses(tmp_path: Path) -> None:
    write(tmp_path)
    change(tmp_path, "cluster.yaml", "providers:", "state: { lock: false }\nproviders:")
    assert operations.apply(tmp_path, None).converged
    store = ClusterStore(read_folder(tmp_path).storage)
    one, other = (OpenLedger(store, HeldCluster(), name, "brain") for name in ("one", "other"))
    assert one.publish(replace(one.state, name="renamed"))
    with pytest.raises(Conflict, match="changed by somebody else"):
        other.publish(replace(other.state, name="lost"))
    assert not one.publish(one.state)
