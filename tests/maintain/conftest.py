"""Fixtures of the tests of maintenance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.ledger.store import GraphStore, create_store
from tests.maintain.graphs import SCHEMA


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GraphStore]:
    """A new graph on local disk."""
    with create_store(tmp_path / "graph", SCHEMA) as made:
        yield made


@pytest.fixture
def no_grace() -> Iterator[None]:
    """Unreferenced things are old at once."""
    with override(cleanup_grace=0.0):
        yield
