"""Queries that ask for nothing but the best rows of tables that an index covers.

Looking at every row in tasks would be slower than one question to the index, so the driver asks it, as the in-process
engine does. Where much of a table is not covered, tasks look at every row instead.
"""

from __future__ import annotations

from omnigraph.query import ir
from omnigraph.read.plan.planner import plan_query
from omnigraph.read.plan.statistics import Statistics
from omnigraph.read.plan.top import top_scan
from omnigraph.read.search.searched import searched_by
from omnigraph.read.tables.reader import TableReader
from omnigraph.schema.catalog import Catalog

COVERED_SHARE = 8
"""So many fragments have to be covered for each one that is not."""


def answered_by_indexes(query: ir.ReadQuery, catalog: Catalog, reader: TableReader) -> bool:
    """Whether indexes find the rows of a query without looking at its tables."""
    plan = plan_query(query, Statistics(catalog, reader))
    top = top_scan(plan.stages[0]) if len(plan.stages) == 1 else None
    if top is None:
        return False
    return all(
        _is_covered(ranking, catalog, reader, table_key) for ranking in top.rankings for table_key in top.step.tables
    )


def _is_covered(ranking: ir.Nearest | ir.Bm25, catalog: Catalog, reader: TableReader, table_key: str) -> bool:
    searched = searched_by(catalog, ranking, table_key)
    if isinstance(ranking, ir.Bm25):
        coverage = reader.text_coverage(table_key, searched.column, searched.settings)
    else:
        coverage = None if ranking.exact else reader.vector_coverage(table_key, searched.column, searched.metric)
    return coverage is not None and len(coverage.uncovered) * COVERED_SHARE <= len(coverage.covered)
