"""Fixtures of the tests of writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.ledger.store import GraphStore, create_store
from tests.write.graphs import SCHEMA


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphStore]:
    """An empty graph with the schema of these tests."""
    with create_store(tmp_path_factory.mktemp("stored") / "graph", SCHEMA) as made:
        yield made
