"""The compiled schema: an immutable value that everything else is typed by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from omnigraph.notebook import html_table
from omnigraph.schema.types import PropertyType

LiteralValue = str | int | float | bool | None

OWN_COLUMNS = ("id", "src", "dst")
"""The columns that every table, or every table of edges, has by itself."""


def property_column(name: str) -> str:
    """The column of a table that holds the property of this name: another one where it would be one of our own.

    SQL engines look columns up without regard to case, and no property has a name that begins with two underscores.
    """
    return f"__{name}" if name.lower() in OWN_COLUMNS else name


def column_title(column: str) -> str:
    """What people call a column of a table: the name of the property, or the end of an edge."""
    return column.removeprefix("__")


def column_titles(columns: Iterable[str]) -> str:
    """What people call several columns: `a, b`."""
    return ", ".join(map(column_title, columns))


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name(literal, key=literal)`, kept as written. Unknown ones never fail."""

    name: str
    args: tuple[LiteralValue, ...] = ()
    options: tuple[tuple[str, LiteralValue], ...] = ()


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    """`@embed("source", model="m")`: this vector is computed from that text property."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Property:
    """One column. `id` is minted once and survives renames."""

    name: str
    id: str
    type: PropertyType
    nullable: bool = False
    indexed: bool = False
    default: LiteralValue = None
    has_default: bool = False
    embed: EmbedSpec | None = None
    annotations: tuple[Annotation, ...] = ()

    @property
    def column(self) -> str:
        """The column of the type's table that holds the property."""
        return property_column(self.name)


@dataclass(frozen=True, slots=True)
class Range:
    """`@range(p, lo..hi)`, both ends included, None for an open end."""

    property: str
    low: int | float | None
    high: int | float | None


@dataclass(frozen=True, slots=True)
class Check:
    """`@check(p, "regex")`: the whole value matches."""

    property: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Cardinality:
    """`@card(min..max)`: edges of the type per source node. `max` None means no bound."""

    min: int = 0
    max: int | None = None


class _OneTable:
    """What a type of nodes and one of edges have alike: a table of properties."""

    name: str
    kind: str
    properties: tuple[Property, ...]

    @cached_property
    def by_name(self) -> dict[str, Property]:
        """Properties by name (without the ends of an edge)."""
        return {p.name: p for p in self.properties}

    @cached_property
    def by_column(self) -> dict[str, Property]:
        """Properties by the column that holds them (without the ends of an edge)."""
        return {p.column: p for p in self.properties}

    @property
    def table_key(self) -> str:
        """`node:<Type>` or `edge:<Type>`."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class NodeType(_OneTable):
    """A node type. `key` and each of `uniques` hold columns; `key` is in property-id order: renames keep it."""

    name: str
    id: str
    properties: tuple[Property, ...]
    key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    implements: tuple[str, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    iso_dates: bool = True
    """How ids spell dates and times of the key; False for types from before they were ISO text. See `identity`."""

    kind: Literal["node"] = "node"


@dataclass(frozen=True)
class EdgeType(_OneTable):
    """An edge type. `key` and each of `uniques` hold columns, also `src` and `dst`; in `key` those come first."""

    name: str
    id: str
    source: str
    target: str
    properties: tuple[Property, ...]
    card: Cardinality = Cardinality()
    key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    annotations: tuple[Annotation, ...] = ()
    iso_dates: bool = True

    kind: Literal["edge"] = "edge"


GraphType = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class InterfaceProperty:
    """A property as an interface declares it; it becomes a column of the nodes that implement it."""

    name: str
    type: PropertyType
    nullable: bool = False
    annotations: tuple[Annotation, ...] = ()

    @property
    def column(self) -> str:
        """The column that holds it in the tables of those that implement the interface."""
        return property_column(self.name)


@dataclass(frozen=True, slots=True)
class Interface:
    """A named set of properties that nodes can share."""

    name: str
    properties: tuple[InterfaceProperty, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, repr=False)
class Catalog:
    """Everything a schema says. Types are sorted by name; `next_id` is the counter that mints stable ids.

    Stable ids: `n<k>` for node types, `e<k>` for edge types, `p<k>` for properties, k from one counter.
    """

    nodes: tuple[NodeType, ...]
    edges: tuple[EdgeType, ...]
    interfaces: tuple[Interface, ...] = ()
    next_id: int = 1

    def __repr__(self) -> str:
        nodes = ", ".join(node.name for node in self.nodes)
        edges = ", ".join(f"{edge.name} ({edge.source} -> {edge.target})" for edge in self.edges)
        return f"<Catalog: nodes {nodes or 'none'}; edges {edges or 'none'}>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from omnigraph.schema.diagram import schema_diagram

        rows = [
            (t.table_key, p.name, f"{p.type}{'?' if p.nullable else ''}", "key" if p.name in t.key else "")
            for t in self.types()
            for p in t.properties
        ]
        table = html_table(("type", "property", "values", ""), rows)
        return {"text/plain": repr(self), "text/html": table, "text/vnd.mermaid": schema_diagram(self)}

    @cached_property
    def _nodes(self) -> dict[str, NodeType]:
        return {t.name: t for t in self.nodes}

    @cached_property
    def _edges(self) -> dict[str, EdgeType]:
        return {t.name.lower(): t for t in self.edges}

    @cached_property
    def _tables(self) -> dict[str, GraphType]:
        return {t.table_key: t for t in self.types()}

    def types(self) -> Iterator[GraphType]:
        """Node types, then edge types, each by name."""
        yield from self.nodes
        yield from self.edges

    def node(self, name: str) -> NodeType | None:
        """The node type of that name."""
        return self._nodes.get(name)

    def edge(self, name: str) -> EdgeType | None:
        """The edge type of that name, without regard to case."""
        return self._edges.get(name.lower())

    def table(self, table_key: str) -> GraphType | None:
        """The type behind `node:<Type>` or `edge:<Type>`."""
        return self._tables.get(table_key)

    def edges_touching(self, node_name: str) -> tuple[EdgeType, ...]:
        """Edge types that start or end at this node type, by name."""
        return tuple(e for e in self.edges if node_name in (e.source, e.target))
