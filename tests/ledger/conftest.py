"""A graph to test on: each test that takes one runs on local disk and on the S3 server."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.ledger.store import GraphStore, create_store
from tests.faults.writers import new_graph
from tests.ledger.graphs import SCHEMA
from tests.ledger.places import new_graph_at

ON_S3 = pytest.param("s3", marks=pytest.mark.s3)


@pytest.fixture(params=["local", ON_S3])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Gives fresh places for graphs on one kind of store."""
    if request.param == "s3":
        fresh: Callable[[], str] = request.getfixturevalue("s3_uri")
        return fresh
    numbers = itertools.count()
    return lambda: str(tmp_path / f"graph-{next(numbers)}")


@pytest.fixture
def path(new_place: Callable[[], str]) -> str:
    """A fresh place for a graph, on each kind of store."""
    return new_place()


@pytest.fixture
def graph(path: str, new_place: Callable[[], str]) -> GraphStore:
    """A new graph without rows, on each kind of store."""
    return new_graph_at(path, _without_rows, new_place)


@pytest.fixture
def store(path: str, new_place: Callable[[], str]) -> GraphStore:
    """A new graph with three people, on each kind of store."""
    return new_graph_at(path, new_graph, new_place)


@pytest.fixture
def local_path(tmp_path: Path) -> str:
    """A fresh place on local disk, for what is about files and locks of the operating system."""
    return str(tmp_path / "graph")


def _without_rows(uri: str) -> GraphStore:
    return create_store(uri, SCHEMA)
