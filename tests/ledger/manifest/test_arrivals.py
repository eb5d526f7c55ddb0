"""Versions that this process is just publishing: who meets one waits for its state, for a moment at most."""

import threading
import time

import pytest

from omnigraph.errors import StorageError, StorageKind
from omnigraph.ledger.manifest import arrivals
from omnigraph.ledger.manifest.arrivals import Arrivals
from omnigraph.storage.values import TableVersion
from tests.ledger.graphs import publish_move

VERSION = TableVersion("__manifest", None, 7)


def test_who_meets_a_version_that_is_being_published_waits_until_it_is(monkeypatch):
    monkeypatch.setattr(arrivals, "PATIENCE_SECONDS", 60.0)
    coming, order = Arrivals(), []

    def read():
        coming.wait(VERSION)
        order.append("read")

    with coming.of(VERSION):
        reader = threading.Thread(target=read)
        reader.start()
        time.sleep(0.05)
        order.append("noted")
    reader.join()
    assert order == ["noted", "read"]


def test_nobody_waits_for_another_version_for_their_own_publish_or_for_ever(monkeypatch):
    monkeypatch.setattr(arrivals, "PATIENCE_SECONDS", 60.0)
    coming = Arrivals()
    with coming.of(VERSION):
        coming.wait(VERSION.at(8))
        coming.wait(VERSION)
        monkeypatch.setattr(arrivals, "PATIENCE_SECONDS", 0.01)
        reader = threading.Thread(target=coming.wait, args=(VERSION,))
        reader.start()
        reader.join()
    coming.wait(VERSION)


def test_a_publish_that_fails_lets_those_who_wait_go(monkeypatch):
    monkeypatch.setattr(arrivals, "PATIENCE_SECONDS", 60.0)
    coming = Arrivals()
    reader = threading.Thread(target=coming.wait, args=(VERSION,))

    def fail():
        with coming.of(VERSION):
            reader.start()
            raise StorageError("the disk is full", StorageKind.PERMANENT)

    with pytest.raises(StorageError):
        fail()
    reader.join()


def test_of_two_who_publish_one_version_the_second_leaves_the_first_alone():
    coming = Arrivals()
    with coming.of(VERSION):
        with coming.of(VERSION):
            pass
        assert VERSION in coming._coming
    assert not coming._coming


def test_a_reader_who_sees_a_version_before_it_is_noted_does_not_read_it_again(store, monkeypatch):
    monkeypatch.setattr(arrivals, "PATIENCE_SECONDS", 60.0)
    store.snapshot()
    landed, loaded, found = threading.Event(), [], []
    remember, load = store.manifest.remember, store.manifest._load

    def remember_late(state):
        landed.set()
        time.sleep(0.1)
        return remember(state)

    def read():
        landed.wait()
        found.append(store.snapshot())

    def counted(table):
        loaded.append(table)
        return load(table)

    monkeypatch.setattr(store.manifest, "remember", remember_late)
    monkeypatch.setattr(store.manifest, "_load", counted)
    reader = threading.Thread(target=read)
    reader.start()
    commit = publish_move(store)
    reader.join()
    assert found[0].head.graph_commit_id == commit.graph_commit_id
    assert not loaded
