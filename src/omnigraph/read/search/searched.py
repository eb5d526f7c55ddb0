"""What is searched: a column of one table, with the settings that its schema gives it."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.search_settings import Metric, TextSettings, metric_of, text_settings


@dataclass(frozen=True, slots=True)
class Searched:
    """A column that is searched as text or by its vectors."""

    table_key: str
    column: str
    settings: TextSettings
    metric: Metric


def searched_by(catalog: Catalog, search: ir.TextMatch | ir.Nearest | ir.Bm25, table_key: str) -> Searched:
    """What a search looks at in one of the tables of its variable."""
    graph_type = catalog.table(table_key)
    known = graph_type.by_name.get(search.property) if graph_type is not None else None
    return Searched(table_key, ir.searched_column(search), text_settings(known), metric_of(known))
