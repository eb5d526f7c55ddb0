"""The product and DuckDB agree on random queries: in both forms of expansion, on every physical state of a graph."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

from tests.differential.hunt import Coverage, Options, hunt
from tests.differential.script import script
from tests.differential.shrink import shrink

SEEDS = range(1, 17)
PER_STATE = 36
"""Some thousands of queries in all, each in one form of expansion: over the run both have seen every state."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_product_and_duckdb_agree(seed):
    found = next(hunt(seed, Options(PER_STATE, every_way=False), coverage := Coverage()), None)
    assert found is None, script(shrink(found, 60))
    assert coverage.queries > 4 * PER_STATE
    assert coverage.with_rows > 0.4 * coverage.queries


def test_nothing_of_the_product_but_its_public_api_is_used():
    allowed = {"omnigraph", "omnigraph.config"}
    for file in Path(__file__).parent.rglob("*.py"):
        if file.name.startswith("test_"):
            continue
        nodes = list(ast.walk(ast.parse(file.read_text())))
        named = [[alias.name for alias in node.names] for node in nodes if isinstance(node, ast.Import)]
        named += [[str(node.module)] for node in nodes if isinstance(node, ast.ImportFrom)]
        used = {name for name in itertools.chain(*named) if name.split(".")[0] == "omnigraph"}
        assert used <= allowed, f"{file.name} imports {used - allowed}"
