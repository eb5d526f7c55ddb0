"""The schema of the documentation, and shorthands for trees."""

from __future__ import annotations

from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.compiler.compile import compile_schema

SAMPLE = """\
interface Named { name: String }

node Person implements Named {
    slug: String @key
    age: I32?
    status: enum(active, retired)
    bio: String? @index
    embedding: Vector(384)? @embed("bio")
    @unique(name, status)
    @range(age, 0..150)
    @check(slug, "[a-z0-9-]+")
}

node Company { name: String @key }

edge WorksAt: Person -> Company @card(0..1) {
    since: Date?
    @unique(src, dst)
}
"""


def node(source: str, name: str, previous: Catalog | None = None) -> NodeType:
    """The node type of that name in a compiled source."""
    found = compile_schema(source, previous).node(name)
    assert found is not None
    return found


def edge(source: str, name: str, previous: Catalog | None = None) -> EdgeType:
    """The edge type of that name in a compiled source."""
    found = compile_schema(source, previous).edge(name)
    assert found is not None
    return found
