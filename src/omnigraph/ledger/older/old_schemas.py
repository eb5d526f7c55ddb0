"""The schemas of an old graph: the newest is `_schema.pg`, and older ones were not kept.

A state from before a schema change is read with as much of the newest schema as its tables have: types that were not
there yet, and properties that had no column yet, are left out. What was dropped since cannot be known any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from omnigraph.errors import InternalError
from omnigraph.ledger.schema_store import CURRENT_SOURCE, SchemaStore
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, property_column
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore

_NOTE = "// The schema that this state had was not kept: this is a later one, of which it has a part.\n"


@dataclass(frozen=True, slots=True)
class OldSchema:
    """A schema of an old graph."""

    source: str
    catalog: Catalog
    digest: str


def read_schema(objects: ObjectStore, schemas: SchemaStore) -> OldSchema:
    """The newest schema of an old graph."""
    try:
        data, _ = objects.get(CURRENT_SOURCE)
    except ObjectNotFound as cause:
        raise InternalError(f"this old graph has no `{CURRENT_SOURCE}`: restore it from a copy") from cause
    source = data.decode()
    catalog = compile_schema(source)
    return OldSchema(source, catalog, schemas.keep(source, catalog))


def part_of(schema: OldSchema, columns: Mapping[str, Collection[str]], schemas: SchemaStore) -> OldSchema:
    """The part of a schema that tables with these columns have; the schema itself when they have all of it."""
    nodes = tuple(_node(node, columns[node.table_key]) for node in schema.catalog.nodes if node.table_key in columns)
    edges = tuple(_edge(edge, columns[edge.table_key]) for edge in schema.catalog.edges if edge.table_key in columns)
    there = {node.name for node in nodes}
    edges = tuple(edge for edge in edges if {edge.source, edge.target} <= there)
    if nodes == schema.catalog.nodes and edges == schema.catalog.edges:
        return schema
    declared = {interface.name: interface for interface in schema.catalog.interfaces}
    nodes = tuple(
        replace(
            node,
            implements=tuple(
                name for name in node.implements if {p.name for p in declared[name].properties} <= node.by_name.keys()
            ),
        )
        for node in nodes
    )
    catalog = replace(schema.catalog, nodes=nodes, edges=edges)
    source = _NOTE + schema.source
    return OldSchema(source, catalog, schemas.keep(source, catalog))


def _node(node: NodeType, columns: Collection[str]) -> NodeType:
    properties = tuple(p for p in node.properties if property_column(p.name) in columns)
    if properties == node.properties:
        return node
    names = {p.name for p in properties}
    return replace(
        node,
        properties=properties,
        key=node.key if names.issuperset(node.key) else (),
        uniques=tuple(unique for unique in node.uniques if names.issuperset(unique)),
        ranges=tuple(one for one in node.ranges if one.property in names),
        checks=tuple(one for one in node.checks if one.property in names),
    )


def _edge(edge: EdgeType, columns: Collection[str]) -> EdgeType:
    properties = tuple(p for p in edge.properties if property_column(p.name) in columns)
    if properties == edge.properties:
        return edge
    names = {"src", "dst", *(p.name for p in properties)}
    return replace(
        edge,
        properties=properties,
        key=edge.key if names.issuperset(edge.key) else (),
        uniques=tuple(unique for unique in edge.uniques if names.issuperset(unique)),
    )
