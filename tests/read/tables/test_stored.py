"""Rows do not depend on physical state: no index, partial and full ones, before and after compaction."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from omnigraph.config import override
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.run import run_on
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.stored import StoredTables
from tests.read.graphs import CATALOG, databases, queries
from tests.read.reference import Reference
from tests.read.stores import StoredGraph
from tests.read.test_agreement import same


def check_all(graph: StoredGraph, compiled: list, expected: list, state: str, *, lags: bool = False) -> None:
    """Hold every query against what is expected.

    The statistics of text scores are those of the index, with an average length of 32 bits; they may lag behind the
    rows. Where they do, rankings are left to `tests/read/search/test_index_states.py`, which knows them.
    """
    for mode in ("csr", "indexed", None):
        caches = ReadCaches()
        for (text, query), rows in zip(compiled, expected, strict=True):
            ranked = "bm25" in text
            if ranked and lags:
                continue
            with override(traversal_mode=mode):
                reader = StoredTables(graph.tables, graph.pins(), caches)
                result = run_on(reader, CATALOG, caches, query)
                found = result.rows()
            note(f"{state} {mode}\n{text}\n{result.explain()}\nfound    {found}\nexpected {rows}")
            assert same(found, rows, 1e-6 if ranked else 1e-9)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(database=databases(), texts=st.lists(queries(), min_size=6, max_size=10))
def test_rows_do_not_depend_on_indexes_or_compaction(database, texts):
    compiled = [(text, compile_query(text, CATALOG)) for text in texts if "now()" not in text]
    expected = [Reference(CATALOG, database).run(query) for _, query in compiled]
    with tempfile.TemporaryDirectory() as path:
        graph = StoredGraph(Path(path))
        graph.write(database)
        check_all(graph, compiled, expected, "no index")
        graph.index()
        check_all(graph, compiled, expected, "full indexes")
        for key, rows in database.items():
            graph.upsert(key, rows[::2])
        check_all(graph, compiled, expected, "partial indexes", lags=True)
        graph.compact()
        check_all(graph, compiled, expected, "compacted", lags=True)
        graph.index()
        check_all(graph, compiled, expected, "compacted with full indexes")
