"""A schema that has every kind of type, and how the tests of the query language speak of places in a text."""

from __future__ import annotations

import re

from omnigraph.query import ir
from omnigraph.query.lower.compile import compile_query
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compiler.compile import compile_schema

SCHEMA = """
interface Named { name: String }

node Person implements Named {
    name: String @key
    age: I32?
    height: F32?
    score: F64?
    visits: U64?
    count: I64?
    active: Bool?
    status: enum(active, retired)?
    tags: [String]?
    numbers: [I64]?
    born: Date?
    seen: DateTime?
    bio: String? @index
    photo: Blob?
    embedding: Vector(3)? @embed("bio")
}

node Company { name: String @key  size: I64  founded: Date @default("2000-01-01") }

node Note { text: String  order: I32?  limit: I32?  type: String?  in: I32?  not: Bool?  match: I32? }

edge Knows: Person -> Person { since: Date?  weight: F64?  @key(src, dst) }
edge BlockedBy: Person -> Person
edge WorksAt: Person -> Company { role: String  since: Date? }
edge In: Note -> Note
edge Contains: Note -> Note
edge Not: Note -> Note
edge Order: Note -> Note { order: I32? }
edge Ranked: Note -> Note { order: F64? }
"""

CATALOG: Catalog = compile_schema(SCHEMA)


def compiled(source: str, name: str | None = None) -> ir.CompiledQuery:
    """The compiled query."""
    return compile_query(source, CATALOG, name)


def read(body: str, parameters: str = "") -> ir.ReadQuery:
    """The compiled read with this body."""
    query = compiled(f"query q{parameters} {{ {body} }}")
    assert isinstance(query, ir.ReadQuery)
    return query


def mutation(body: str, parameters: str = "") -> ir.MutationQuery:
    """The compiled mutation with this body."""
    query = compiled(f"query q{parameters} {{ {body} }}")
    assert isinstance(query, ir.MutationQuery)
    return query


def filtered(condition: str, parameters: str = "") -> ir.Expr:
    """The predicate that a filter on a person becomes."""
    root = read(f"match {{ $p: Person {condition} }} return {{ $p }}", parameters).root
    assert isinstance(root.input, ir.Sort)
    assert isinstance(root.input.input, ir.Filter)
    return root.input.input.predicate


def unmarked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A text without its marks ⟦ and ⟧, and the stretches that they marked."""
    stretches: list[tuple[int, int]] = []
    source = ""
    for part in re.split(r"(⟦[^⟧]*⟧)", text):
        if part.startswith("⟦"):
            stretches.append((len(source), len(source) + len(part) - 2))
            part = part[1:-1]
        source += part
    return source, stretches
