"""The stored form of a catalog and of an accepted schema: deterministic JSON, byte for byte.

An accepted schema is the source together with its catalog, ids included; its digest names it. Keys are sorted, there
is no white space, text is UTF-8. The same source and the same ids give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from omnigraph.errors import StorageError, StorageKind
from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    EmbedSpec,
    GraphType,
    Interface,
    InterfaceProperty,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.types import EnumType, ListType, PropertyType, Scalar, ScalarType, VectorType

Document = TypeVar("Document")

_DATES = (ScalarType(Scalar.DATE), ScalarType(Scalar.DATETIME))

FORMAT = 1
"""The version of the stored form. A reader refuses one it does not know."""


def catalog_to_json(catalog: Catalog) -> bytes:
    """The catalog as deterministic JSON."""
    return _dump(_catalog_data(catalog))


def catalog_from_json(data: bytes) -> Catalog:
    """The catalog that `catalog_to_json` wrote. Raises StorageError if it is not one."""
    return _read(data, "a catalog", _catalog)


def accepted_schema_bytes(source: str, catalog: Catalog) -> bytes:
    """The document that is stored for an accepted schema: its source and its compiled form."""
    return _dump({"catalog": _catalog_data(catalog), "source": source})


def accepted_schema_from_bytes(data: bytes) -> tuple[str, Catalog]:
    """Source and catalog of a stored schema. Raises StorageError if it is not one."""
    return _read(data, "an accepted schema", lambda document: (str(document["source"]), _catalog(document["catalog"])))


def catalog_digest(catalog: Catalog, source: str) -> str:
    """The name of an accepted schema: the SHA-256 of its document, in hexadecimal."""
    return hashlib.sha256(accepted_schema_bytes(source, catalog)).hexdigest()


def type_to_json(type_: PropertyType) -> dict[str, Any]:
    """The type of a property as plain JSON data."""
    if isinstance(type_, ScalarType):
        return {"kind": "scalar", "name": type_.scalar.value}
    if isinstance(type_, EnumType):
        return {"kind": "enum", "values": list(type_.values)}
    if isinstance(type_, VectorType):
        return {"kind": "vector", "dim": type_.dim}
    return {"kind": "list", "item": type_.item.value}


def type_from_json(data: Mapping[str, Any]) -> PropertyType:
    """The type that `type_to_json` wrote."""
    kind = data["kind"]
    if kind == "scalar":
        return ScalarType(Scalar(data["name"]))
    if kind == "enum":
        return EnumType(tuple(data["values"]))
    if kind == "vector":
        return VectorType(int(data["dim"]))
    if kind == "list":
        return ListType(Scalar(data["item"]))
    raise ValueError(f"unknown kind of type: {kind!r}")


# --- writing -----------------------------------------------------------------------------------------------------


def _dump(data: Mapping[str, Any]) -> bytes:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def _catalog_data(catalog: Catalog) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "next_id": catalog.next_id,
        "interfaces": [_interface_data(interface) for interface in catalog.interfaces],
        "nodes": [_node_data(node) for node in catalog.nodes],
        "edges": [_edge_data(edge) for edge in catalog.edges],
    }


def _interface_data(interface: Interface) -> dict[str, Any]:
    properties = [
        {
            "name": p.name,
            "type": type_to_json(p.type),
            "nullable": p.nullable,
            "annotations": _annotations_data(p.annotations),
        }
        for p in interface.properties
    ]
    return {
        "name": interface.name,
        "properties": properties,
        "annotations": _annotations_data(interface.annotations),
    }


def _key_data(graph_type: GraphType) -> dict[str, Any]:
    """That ids spell dates as ISO text, said only where it matters: catalogs from before it was said mean numbers."""
    iso = graph_type.iso_dates and _has_dates(graph_type.properties, graph_type.key)
    return {"iso_dates": True} if iso else {}


def _has_dates(properties: tuple[Property, ...], key: tuple[str, ...]) -> bool:
    return any(p.column in key and p.type in _DATES for p in properties)


def _node_data(node: NodeType) -> dict[str, Any]:
    return {
        "name": node.name,
        "id": node.id,
        "properties": [_property_data(p) for p in node.properties],
        "key": list(node.key),
        **_key_data(node),
        "uniques": [list(names) for names in node.uniques],
        "ranges": [{"property": r.property, "low": r.low, "high": r.high} for r in node.ranges],
        "checks": [{"property": c.property, "pattern": c.pattern} for c in node.checks],
        "implements": list(node.implements),
        "annotations": _annotations_data(node.annotations),
    }


def _edge_data(edge: EdgeType) -> dict[str, Any]:
    return {
        "name": edge.name,
        "id": edge.id,
        "source": edge.source,
        "target": edge.target,
        "properties": [_property_data(p) for p in edge.properties],
        "card": {"min": edge.card.min, "max": edge.card.max},
        "key": list(edge.key),
        **_key_data(edge),
        "uniques": [list(names) for names in edge.uniques],
        "annotations": _annotations_data(edge.annotations),
    }


def _property_data(property_: Property) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": property_.name,
        "id": property_.id,
        "type": type_to_json(property_.type),
        "nullable": property_.nullable,
        "indexed": property_.indexed,
        "annotations": _annotations_data(property_.annotations),
    }
    if property_.has_default:
        data["default"] = property_.default
    if property_.embed:
        data["embed"] = {"source": property_.embed.source, "model": property_.embed.model}
    return data


def _annotations_data(annotations: tuple[Annotation, ...]) -> list[dict[str, Any]]:
    return [{"name": a.name, "args": list(a.args), "options": dict(a.options)} for a in annotations]


# --- reading -----------------------------------------------------------------------------------------------------


def _read(data: bytes, what: str, build: Callable[[Any], Document]) -> Document:
    try:
        return build(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"stored bytes are not {what} that this version can read ({error}); the object is damaged or newer"
        raise StorageError(message, StorageKind.PERMANENT) from error


def _catalog(data: Mapping[str, Any]) -> Catalog:
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']} is not known to this version")
    return Catalog(
        tuple(_node(node) for node in data["nodes"]),
        tuple(_edge(edge) for edge in data["edges"]),
        tuple(_interface(interface) for interface in data["interfaces"]),
        int(data["next_id"]),
    )


def _interface(data: Mapping[str, Any]) -> Interface:
    properties = tuple(
        InterfaceProperty(p["name"], type_from_json(p["type"]), p["nullable"], _annotations(p["annotations"]))
        for p in data["properties"]
    )
    return Interface(data["name"], properties, _annotations(data["annotations"]))


def _iso_dates(data: Mapping[str, Any], properties: tuple[Property, ...]) -> bool:
    return bool(data.get("iso_dates", not _has_dates(properties, tuple(data["key"]))))


def _node(data: Mapping[str, Any]) -> NodeType:
    properties = tuple(_property(p) for p in data["properties"])
    return NodeType(
        data["name"],
        data["id"],
        properties,
        key=tuple(data["key"]),
        uniques=tuple(tuple(names) for names in data["uniques"]),
        ranges=tuple(Range(r["property"], r["low"], r["high"]) for r in data["ranges"]),
        checks=tuple(Check(c["property"], c["pattern"]) for c in data["checks"]),
        implements=tuple(data["implements"]),
        annotations=_annotations(data["annotations"]),
        iso_dates=_iso_dates(data, properties),
    )


def _edge(data: Mapping[str, Any]) -> EdgeType:
    properties = tuple(_property(p) for p in data["properties"])
    return EdgeType(
        data["name"],
        data["id"],
        data["source"],
        data["target"],
        properties,
        card=Cardinality(data["card"]["min"], data["card"]["max"]),
        key=tuple(data["key"]),
        uniques=tuple(tuple(names) for names in data["uniques"]),
        annotations=_annotations(data["annotations"]),
        iso_dates=_iso_dates(data, properties),
    )


def _property(data: Mapping[str, Any]) -> Property:
    embed = data.get("embed")
    return Property(
        data["name"],
        data["id"],
        type_from_json(data["type"]),
        data["nullable"],
        data["indexed"],
        data.get("default"),
        "default" in data,
        EmbedSpec(embed["source"], embed["model"]) if embed else None,
        _annotations(data["annotations"]),
    )


def _annotations(data: list[Mapping[str, Any]]) -> tuple[Annotation, ...]:
    return tuple(Annotation(a["name"], tuple(a["args"]), tuple(sorted(a["options"].items()))) for a in data)
