"""A graph to test on: on local disk, and for a representative pass on the S3 server too."""

from __future__ import annotations

import pytest

from omnigraph.ledger.store import GraphStore, create_store
from tests.ledger.graphs import SCHEMA


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def anywhere(request, tmp_path) -> str:
    """A fresh place for a graph on each kind of store."""
    return str(tmp_path / "graph") if request.param == "local" else request.getfixturevalue("s3_uri")()


@pytest.fixture
def path(tmp_path) -> str:
    """A fresh place for a graph on local disk."""
    return str(tmp_path / "graph")


@pytest.fixture
def graph(path) -> GraphStore:
    """A new graph on local disk."""
    return create_store(path, SCHEMA)
