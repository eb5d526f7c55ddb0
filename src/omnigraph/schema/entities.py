"""How one node or edge is shown as a whole: `@id` (`@src`, `@dst`) and its properties, without blobs and vectors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from omnigraph.schema.catalog import GraphType
from omnigraph.schema.types import VectorType, is_blob

OWN_COLUMNS = {"id": "@id", "src": "@src", "dst": "@dst"}
"""The columns of a row that are no properties, and what they are called where the entity is shown."""


def hidden_properties(graph_type: GraphType) -> frozenset[str]:
    """The properties that are left out: they are large, and nobody reads them off a screen."""
    return frozenset(p.name for p in graph_type.properties if is_blob(p.type) or isinstance(p.type, VectorType))


def shown_entity(row: Mapping[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    """A row as an entity. A property without a value is there, as None."""
    return {OWN_COLUMNS.get(name, name): value for name, value in row.items() if name not in hidden}
