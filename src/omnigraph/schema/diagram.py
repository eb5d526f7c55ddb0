"""A picture of a schema: node types as boxes, edge types as arrows, in Mermaid's notation for class diagrams."""

from __future__ import annotations

from omnigraph.schema.catalog import Cardinality, Catalog, EdgeType, NodeType, Property
from omnigraph.schema.types import EnumType


def schema_diagram(catalog: Catalog) -> str:
    """The catalog as a Mermaid class diagram. Key properties are underlined, edges show their cardinality."""
    lines = ["classDiagram"]
    for node in catalog.nodes:
        lines.extend(_node(node))
    lines.extend(_edge(edge) for edge in catalog.edges)
    return "\n".join(lines) + "\n"


def _node(node: NodeType) -> list[str]:
    if not node.properties:
        return [f"    class {node.name}"]
    properties = [f"        {_property(p, p.column in node.key)}" for p in node.properties]
    return [f"    class {node.name} {{", *properties, "    }"]


def _property(property_: Property, is_key: bool) -> str:
    type_ = "enum" if isinstance(property_.type, EnumType) else str(property_.type).replace("(", "_").replace(")", "")
    return f"{type_}{'?' if property_.nullable else ''} {property_.name}{'$' if is_key else ''}"


def _edge(edge: EdgeType) -> str:
    names = ", ".join(p.name for p in edge.properties)
    label = f"{edge.name}({names})" if names else edge.name
    return f'    {edge.source} --> "{_cardinality(edge.card)}" {edge.target} : {label}'


def _cardinality(card: Cardinality) -> str:
    most = "*" if card.max is None else str(card.max)
    return most if str(card.min) == most or (card.min == 0 and most == "*") else f"{card.min}..{most}"
