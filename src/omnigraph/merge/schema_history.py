"""The schemas that a graph ever had: types by the names they once had, and the defaults that properties came with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.schema.catalog import Catalog, GraphType, Property

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


def accepted_schemas(store: GraphStore) -> list[Catalog]:
    """Every schema that a known commit was published with, the oldest first."""
    graph = store.commits.graph()
    commits = (graph.get(commit_id) for commit_id in sorted(graph.ids()))
    return [store.catalog(digest) for digest in dict.fromkeys(commit.schema_digest for commit in commits if commit)]


def with_first_defaults(store: GraphStore, type_: GraphType, other: GraphType) -> GraphType:
    """A type whose properties that another state of it lacks have the default that they came with.

    That is the value which the rows of that time got; the default may have been changed since.
    """
    known = {p.id for p in other.properties}
    added = {p.id for p in type_.properties if p.id not in known and p.has_default}
    if not added:
        return type_
    first: dict[str, Property] = {}
    for catalog in accepted_schemas(store):
        for declared in catalog.types():
            if declared.id == type_.id:
                first = {p.id: p for p in declared.properties if p.id in added} | first
    properties = (replace(p, default=first[p.id].default) if p.id in first else p for p in type_.properties)
    return replace(type_, properties=tuple(properties))
