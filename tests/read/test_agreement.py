"""The executor and the reference evaluator agree on every random graph and query: same rows, same order, both forms."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings

from omnigraph.config import override
from omnigraph.errors import BadRequest
from omnigraph.query.ir import ReadQuery
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.run import run_on
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import ArrowTables
from tests.read.graphs import CATALOG, Database, arrow_tables, databases, queries
from tests.read.reference import Reference, Refused


def same(one: Any, two: Any, apart: float = 1e-9) -> bool:
    """Equal values; computed floats may differ in their last bits, by a share of `apart`."""
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=apart, abs_tol=1e-12)
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key], apart) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(same(a, b, apart) for a, b in zip(one, two, strict=True))
    return type(one) is type(two) and one == two


MODES = ("csr", "indexed")


def check(database: Database, text: str) -> None:
    """Both forms of expansion find what the reference finds."""
    compiled = compile_query(text, CATALOG)
    assert isinstance(compiled, ReadQuery)
    now = datetime.datetime.now(datetime.UTC)
    tables = arrow_tables(database)
    try:
        expected = Reference(CATALOG, database, now=now).run(compiled)
    except Refused as refused:
        note(f"{text}\nexpected to be refused: {refused}")
        event("is refused")
        for mode in MODES:
            with override(traversal_mode=mode), pytest.raises(BadRequest):
                run_on(ArrowTables(tables), CATALOG, ReadCaches(), compiled)
        return
    event("has rows" if expected else "has no rows")
    for mode in MODES:
        with override(traversal_mode=mode):
            result = run_on(ArrowTables(tables), CATALOG, ReadCaches(), compiled)
            found = result.rows()
        note(f"{text}\n{mode}: {result.explain()}\nfound    {found}\nexpected {expected}")
        assert same(found, expected)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(database=databases(), text=queries())
def test_executor_and_reference_agree(database, text):
    check(database, text)
