"""What a change of the schema means to somebody who keeps a copy of the rows: names that change, and values that come.

A rename changes no row, so no row of the feed tells of it; whoever knows rows by the names of their properties has to
be told all the same. Types and properties are compared by their ids, which survive renames.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson

from omnigraph.ledger.history.dag import first_parents
from omnigraph.ledger.values import GraphCommit
from omnigraph.merge.plain import plain_value
from omnigraph.schema.catalog import Catalog, GraphType

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

SCHEMA = "schema"
"""The op of the row that tells of another schema; it comes before the other rows of its commit."""


def schema_texts(store: GraphStore, commit: GraphCommit) -> tuple[str, str] | None:
    """`before` and `after` of a commit that changed the schema, as JSON; None for any other commit."""
    parent = store.commits.get(commit.parent_commit_id or "")
    if parent is None or parent.schema_digest == commit.schema_digest:
        return None
    old, new = store.catalog(parent.schema_digest), store.catalog(commit.schema_digest)
    before = {"source": store.schemas.get(parent.schema_digest)[0]}
    after = {"source": store.schemas.get(commit.schema_digest)[0], "steps": list(_steps(old, new))}
    return orjson.dumps(before).decode(), orjson.dumps(after).decode()


def returned_tables(store: GraphStore, commit: GraphCommit) -> list[str]:
    """Tables with a property that an undo has brought back: with the values that it had, which no change tells of."""
    parent = store.commits.get(commit.parent_commit_id or "")
    if parent is None or parent.schema_digest == commit.schema_digest:
        return []
    before = _property_ids(store.catalog(parent.schema_digest))
    came = {
        (type_.table_key, property_.id)
        for type_ in store.catalog(commit.schema_digest).types()
        for property_ in type_.properties
        if type_.id in before and property_.id not in before[type_.id]
    }
    if not came:
        return []
    line = first_parents(store.commits.graph(), parent.graph_commit_id)
    digests = dict.fromkeys(earlier.schema_digest for earlier in line)
    known = {one for digest in digests for ids in _property_ids(store.catalog(digest)).values() for one in ids}
    return sorted({table_key for table_key, property_id in came if property_id in known})


def _property_ids(catalog: Catalog) -> dict[str, frozenset[str]]:
    return {type_.id: frozenset(property_.id for property_ in type_.properties) for type_ in catalog.types()}


def _steps(old: Catalog, new: Catalog) -> Iterator[dict[str, Any]]:
    """In the order in which they are to be applied: a type is called by its new name once that is told."""
    known = {type_.id: type_ for type_ in old.types()}
    for type_ in new.types():
        earlier = known.pop(type_.id, None)
        about = {"kind": type_.kind, "type": type_.name}
        if earlier is None:
            yield {"step": "add_type", **about}
            continue
        if earlier.name != type_.name:
            yield {"step": "rename_type", **about, "type": earlier.name, "to": type_.name}
        for step in _property_steps(earlier, type_):
            yield {**step, **about}
    for type_ in known.values():
        yield {"step": "drop_type", "kind": type_.kind, "type": type_.name}


def _property_steps(old: GraphType, new: GraphType) -> Iterator[dict[str, Any]]:
    known = {property_.id: property_ for property_ in old.properties}
    for property_ in new.properties:
        earlier = known.pop(property_.id, None)
        if earlier is None:
            default = plain_value(property_.default) if property_.has_default else None
            yield {"step": "add_property", "property": property_.name, "default": default}
        elif earlier.name != property_.name:
            yield {"step": "rename_property", "property": earlier.name, "to": property_.name}
    for property_ in known.values():
        yield {"step": "drop_property", "property": property_.name}
