"""Fixtures of the tests of writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.ledger.store import GraphStore, create_store
from tests.write.graphs import SCHEMA


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GraphStore]:
    """An empty graph with the schema of these tests."""
    with create_store(tmp_path / "graph", SCHEMA) as made:
        yield made
