"""A catalog as a flat set of facts, and back: what three states of a schema are compared by.

Each fact is about one thing (a type or a property by its stable id, an interface by its name) and says one thing about
it. Facts name other things by id too, so a rename is one fact that changes and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

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
    property_column,
)
from omnigraph.schema.types import FLOATS, PropertyType, ScalarType

Thing: TypeAlias = tuple[str, ...]
"""`("type", id)`, `("property", type id, id)` or `("interface", name)`."""

Fact: TypeAlias = tuple[Thing, tuple[Any, ...]]
"""The thing, and what is said about it; the empty tuple says that it is there."""

Facts: TypeAlias = Mapping[Fact, Any]

THERE: tuple[Any, ...] = ()
ENDS = ("src", "dst")


def facts_of(catalog: Catalog) -> dict[Fact, Any]:
    """Everything that a catalog says."""
    found: dict[Fact, Any] = {}
    ids = {node.name: node.id for node in catalog.nodes}
    for type_ in catalog.types():
        thing = ("type", type_.id)
        found |= {(thing, about): value for about, value in _type_facts(type_, ids)}
        for property_ in type_.properties:
            own = ("property", type_.id, property_.id)
            found |= {(own, about): value for about, value in _property_facts(property_, type_)}
    for interface in catalog.interfaces:
        thing = ("interface", interface.name)
        found[thing, THERE] = True
        found |= {(thing, ("property", p.name)): p for p in interface.properties}
        found |= {(thing, about): value for about, value in _annotations(interface.annotations)}
    return found


def _type_facts(type_: GraphType, node_ids: Mapping[str, str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    ids = {p.column: p.id for p in type_.properties} | {end: end for end in ENDS}
    by_name = {p.name: p.id for p in type_.properties}
    yield THERE, type_.kind
    yield ("name",), type_.name
    yield ("key",), tuple(ids[column] for column in type_.key)
    yield ("iso_dates",), type_.iso_dates
    for unique in type_.uniques:
        yield ("unique", tuple(ids[column] for column in unique)), True
    yield from _annotations(type_.annotations)
    if isinstance(type_, EdgeType):
        yield ("from",), node_ids[type_.source]
        yield ("to",), node_ids[type_.target]
        yield ("card",), type_.card
        return
    for range_ in type_.ranges:
        yield ("range", by_name[range_.property]), (_number(range_.low), _number(range_.high))
    for check in type_.checks:
        yield ("check", by_name[check.property], check.pattern), True
    for interface in type_.implements:
        yield ("implements", interface), True


def _property_facts(property_: Property, type_: GraphType) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield THERE, True
    yield ("name",), property_.name
    yield ("type",), property_.type
    yield ("nullable",), property_.nullable
    yield ("index",), property_.indexed
    yield ("default",), (property_.has_default, _number(property_.default))
    embed = property_.embed
    yield ("embed",), (type_.by_name[embed.source].id, embed.model) if embed else None
    yield from _annotations(property_.annotations)


def _annotations(annotations: tuple[Annotation, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for name in dict.fromkeys(annotation.name for annotation in annotations):
        yield ("annotation", name), tuple(a for a in annotations if a.name == name)


def _number(value: Any) -> Any:
    """A whole number as one, also where a property of floats has it: a wider type is no other bound."""
    return int(value) if isinstance(value, float) and value.is_integer() and str(value) != "-0.0" else value


def _of_type(value: Any, type_: PropertyType) -> Any:
    """A number as the compiler writes it for a property of this type."""
    is_float = isinstance(type_, ScalarType) and type_.scalar in FLOATS
    return float(value) if is_float and isinstance(value, int) and not isinstance(value, bool) else value


def catalog_of(facts: Facts, next_id: int) -> Catalog:
    """The catalog that says exactly this. What facts refer to must be there."""
    about: dict[Thing, dict[tuple[Any, ...], Any]] = {}
    for (thing, said), value in facts.items():
        about.setdefault(thing, {})[said] = value
    names = {thing[1]: said["name",] for thing, said in about.items() if thing[0] == "type"}
    types = [_type(thing[1], said, about, names) for thing, said in about.items() if thing[0] == "type"]
    nodes = [type_ for type_ in types if isinstance(type_, NodeType)]
    edges = [type_ for type_ in types if isinstance(type_, EdgeType)]
    interfaces = [_interface(thing[1], said) for thing, said in about.items() if thing[0] == "interface"]
    return Catalog(
        tuple(sorted(nodes, key=lambda t: t.name)),
        tuple(sorted(edges, key=lambda t: t.name)),
        tuple(sorted(interfaces, key=lambda t: t.name)),
        next_id,
    )


def _type(
    type_id: str,
    said: Mapping[tuple[Any, ...], Any],
    about: Mapping[Thing, Mapping[tuple[Any, ...], Any]],
    names: Mapping[str, str],
) -> GraphType:
    own = {thing[2]: facts for thing, facts in about.items() if thing[:2] == ("property", type_id)}
    by_id = {id_: facts["name",] for id_, facts in own.items()}
    columns = {id_: property_column(name) for id_, name in by_id.items()} | {end: end for end in ENDS}
    properties = tuple(_property(id_, own[id_], by_id) for id_ in sorted(own, key=_rank))
    key = tuple(columns[one] for one in sorted(said["key",], key=_rank))
    tuples = (about[1] for about in said if about[:1] == ("unique",))
    uniques = sorted((sorted(one, key=_rank) for one in tuples), key=lambda one: [_rank(part) for part in one])
    shared: dict[str, Any] = {
        "key": key,
        "uniques": tuple(tuple(columns[part] for part in one) for one in uniques),
        "annotations": _kept(said),
        "iso_dates": said["iso_dates",],
    }
    if said[THERE] == "edge":
        ends = names[said["from",]], names[said["to",]]
        return EdgeType(said["name",], type_id, *ends, properties, card=said.get(("card",), Cardinality()), **shared)
    ranges = sorted((about[1] for about in said if about[:1] == ("range",)), key=_rank)
    checks = sorted((about[1:] for about in said if about[:1] == ("check",)), key=lambda one: (_rank(one[0]), one[1]))
    return NodeType(
        said["name",],
        type_id,
        properties,
        ranges=tuple(
            Range(by_id[one], *(_of_type(end, own[one]["type",]) for end in said["range", one])) for one in ranges
        ),
        checks=tuple(Check(by_id[one], pattern) for one, pattern in checks),
        implements=tuple(sorted(about[1] for about in said if about[:1] == ("implements",))),
        **shared,
    )


def _property(property_id: str, said: Mapping[tuple[Any, ...], Any], names: Mapping[str, str]) -> Property:
    has_default, default = said["default",]
    embed = said["embed",]
    return Property(
        said["name",],
        property_id,
        said["type",],
        said["nullable",],
        said["index",],
        _of_type(default, said["type",]),
        has_default,
        EmbedSpec(names[embed[0]], embed[1]) if embed else None,
        _kept(said),
    )


def _interface(name: str, said: Mapping[tuple[Any, ...], Any]) -> Interface:
    properties: list[InterfaceProperty] = [value for about, value in said.items() if about[:1] == ("property",)]
    return Interface(name, tuple(properties), _kept(said))


def _kept(said: Mapping[tuple[Any, ...], Any]) -> tuple[Annotation, ...]:
    return tuple(one for about in sorted(a for a in said if a[:1] == ("annotation",)) for one in said[about])


def _rank(id_: str) -> int:
    """The order of ends and properties in keys and tuples: ends first, then by number."""
    return ENDS.index(id_) - 2 if id_ in ENDS else int(id_[1:])
