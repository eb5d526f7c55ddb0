"""On an object store the sidecar goes, and then the leases, when the caller has its answer."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from omnigraph.failpoints import active, watched
from omnigraph.ledger.recovery.recover import heal
from omnigraph.ledger.recovery.sidecars import SIDECAR_PREFIX
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.write.mutate.mutate import mutate
from tests.write.graphs import SCHEMA, ids

pytestmark = pytest.mark.s3

INSERT = "query q($s: String) { insert Person { slug: $s } }"


@pytest.fixture
def store(s3_uri: Callable[[], str]) -> GraphStore:
    return create_store(s3_uri(), SCHEMA)


def left(store: GraphStore) -> list[str]:
    """The sidecars that are there, whoever knows that they are about to go."""
    return [entry.path for entry in store.objects.list(SIDECAR_PREFIX)]


def test_the_answer_comes_before_the_sidecar_is_gone_and_nobody_here_looks_at_it(store: GraphStore):
    going, may_go = threading.Event(), threading.Event()

    def hold_back(name: str) -> None:
        if name == "sidecar.delete":
            going.set()
            assert may_go.wait(30)

    with watched(hold_back):
        assert mutate(store, INSERT, params={"s": "a"}).commit is not None
        assert going.wait(30)
        assert len(left(store)) == 1
        # Another process would take it for one of a dead writer if it could have the window before it is gone.
        assert len(store.leases.list_live()) == 2
        assert store.sidecars.list() == []
        assert heal(store).waiting == ()
        with open_store(store.uri, read_only=True) as other:
            assert ids(other, "node:Person") == ["a"]
        may_go.set()
        store.close()
    with open_store(store.uri) as reopened:
        assert left(reopened) == []
        assert reopened.audit.list() == []


def test_what_could_not_be_deleted_is_retired_by_the_next_write(store: GraphStore):
    with active("sidecar.delete", "raise:1"):
        mutate(store, INSERT, params={"s": "a"})
        mutate(store, INSERT, params={"s": "b"})
        mutate(store, INSERT, params={"s": "c"})
        store.close()
    with open_store(store.uri) as reopened:
        assert left(reopened) == []
        assert [record.kind.value for record in reopened.audit.list()] == ["Completed"]
        assert ids(reopened, "node:Person") == ["a", "b", "c"]
