"""Fixtures of the tests of merge, diff and feed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import omnigraph as og
from tests.merge.graphs import SCHEMA


@pytest.fixture
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    """An empty graph with the schema of these tests."""
    with og.init(tmp_path_factory.mktemp("merged") / "graph", schema=SCHEMA) as made:
        yield made
