"""The schemas that a graph ever had: types by the names they once had, and the defaults that properties came with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.ledger.history.dag import ancestors
from omnigraph.ledger.values import Snapshot
from omnigraph.schema.catalog import Catalog, GraphType, Property

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


def accepted_schemas(store: GraphStore) -> list[Catalog]:
    """Every schema that a known commit was published with, the oldest first."""
    graph = store.commits.graph()
    commits = (graph.get(commit_id) for commit_id in sorted(graph.ids()))
    return [store.catalog(digest) for digest in dict.fromkeys(commit.schema_digest for commit in commits if commit)]


def schemas_before(store: GraphStore, state: Snapshot) -> list[str]:
    """The digests of the schemas that a state and everything it was made from were published with."""
    graph, head = store.commits.graph(), state.head
    # The head itself may not be in the log yet.
    made_from = ancestors(graph, head.graph_commit_id) | ancestors(graph, head.parent_commit_id or "")
    commits = (graph.get(commit_id) for commit_id in sorted(made_from))
    return list(dict.fromkeys([head.schema_digest, *(commit.schema_digest for commit in commits if commit)]))


def dropped_properties(store: GraphStore, state: Snapshot, type_: GraphType, other: GraphType) -> frozenset[str]:
    """The properties of another state of a type that this state has no longer: its history had them.

    One that its history never had was added elsewhere, later or on another branch.
    """
    known = {p.id for p in type_.properties}
    missing = {p.id for p in other.properties if p.id not in known}
    if not missing:
        return frozenset()
    found: set[str] = set()
    for digest in schemas_before(store, state):
        for declared in store.catalog(digest).types():
            if declared.id == type_.id:
                found.update(p.id for p in declared.properties if p.id in missing)
    return frozenset(found)


def with_first_defaults(store: GraphStore, type_: GraphType, other: GraphType) -> GraphType:
    """A type whose properties that another state of it lacks have the default that they came with.

    That is the value which the rows of that time got; the default may have been changed since.
    """
    known = {p.id for p in other.properties}
    added = {p.id for p in type_.properties if p.id not in known}
    if not added:
        return type_
    first: dict[str, Property] = {}
    for catalog in accepted_schemas(store):
        for declared in catalog.types():
            if declared.id == type_.id:
                first = {p.id: p for p in declared.properties if p.id in added} | first
    properties = (
        replace(p, default=first[p.id].default, has_default=first[p.id].has_default) if p.id in first else p
        for p in type_.properties
    )
    return replace(type_, properties=tuple(properties))
