"""How one node or edge is shown as a whole: `@id` (`@src`, `@dst`) and its properties, without blobs and vectors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from omnigraph.schema.catalog import OWN_COLUMNS, EdgeType, GraphType
from omnigraph.schema.types import VectorType, is_blob


def entity_columns(graph_type: GraphType) -> dict[str, str]:
    """The columns of a type's table by what they are called where the entity is shown."""
    own = OWN_COLUMNS if isinstance(graph_type, EdgeType) else OWN_COLUMNS[:1]
    return {column: f"@{column}" for column in own} | {p.column: p.name for p in graph_type.properties}


def hidden_properties(graph_type: GraphType) -> frozenset[str]:
    """The properties that are left out: they are large, and nobody reads them off a screen."""
    return frozenset(p.name for p in graph_type.properties if is_blob(p.type) or isinstance(p.type, VectorType))


def shown_entity(row: Mapping[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    """An entity as it is shown. A property without a value is there, as None."""
    return {name: value for name, value in row.items() if name not in hidden}
