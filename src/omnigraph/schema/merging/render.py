"""A catalog as `.pg` text in the standard layout: what a merge of two texts is written down as."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    EdgeType,
    GraphType,
    Interface,
    InterfaceProperty,
    LiteralValue,
    Property,
    column_titles,
    property_column,
)
from omnigraph.schema.literals import encode_string
from omnigraph.schema.migration.migration_steps import constraint_text
from omnigraph.schema.syntax.format import format_schema


def render_schema(catalog: Catalog) -> str:
    """The text of a catalog. Compiled against the catalog it gives that catalog again."""
    blocks = [_interface(interface) for interface in catalog.interfaces]
    blocks += [_type(type_) for type_ in catalog.types()]
    return format_schema("\n\n".join(blocks) + "\n")


def _interface(interface: Interface) -> str:
    lines = [f"{p.name}: {_value_type(p)}{_annotations(p.annotations)}" for p in interface.properties]
    return _block(f"interface {interface.name}{_annotations(interface.annotations)}", lines)


def _type(type_: GraphType) -> str:
    header = f"{type_.kind} {type_.name}"
    if isinstance(type_, EdgeType):
        card = f" {constraint_text(type_.card)}" if type_.card != Cardinality() else ""
        return _block(
            f"{header}: {type_.source} -> {type_.target}{card}{_annotations(type_.annotations)}", [*_body(type_)]
        )
    implements = f" implements {', '.join(type_.implements)}" if type_.implements else ""
    return _block(f"{header}{_annotations(type_.annotations)}{implements}", [*_body(type_)])


def _block(header: str, lines: list[str]) -> str:
    return "\n".join([f"{header} {{", *(f"    {line}" for line in lines), "}"])


def _body(type_: GraphType) -> Iterator[str]:
    """Properties, then rules that name several of them, or none."""
    alone = {unique[0] for unique in type_.uniques if len(unique) == 1}
    for property_ in type_.properties:
        own = ""
        if type_.kind == "node" and type_.key == (property_.column,):
            own += " @key"
        own += " @unique" if property_.column in alone else ""
        yield f"{property_.name}: {_value_type(property_)}{own}{_property_annotations(property_)}"
    columns = {property_column(p.name) for p in type_.properties}
    if len(type_.key) > 1 or (type_.key and type_.kind == "edge"):
        yield f"@key({column_titles(type_.key)})"
    for unique in type_.uniques:
        if len(unique) > 1 or unique[0] not in columns:
            yield f"@unique({column_titles(unique)})"
    if not isinstance(type_, EdgeType):
        yield from map(constraint_text, type_.ranges)
        yield from map(constraint_text, type_.checks)


def _property_annotations(property_: Property) -> str:
    text = " @index" if property_.indexed else ""
    text += f" @default({_literal(property_.default)})" if property_.has_default else ""
    if property_.embed is not None:
        model = f", model={encode_string(property_.embed.model)}" if property_.embed.model is not None else ""
        text += f" @embed({encode_string(property_.embed.source)}{model})"
    return text + _annotations(property_.annotations)


def _value_type(property_: Property | InterfaceProperty) -> str:
    return f"{property_.type}{'?' if property_.nullable else ''}"


def _annotations(annotations: tuple[Annotation, ...]) -> str:
    return "".join(f" {_annotation(annotation)}" for annotation in annotations)


def _annotation(annotation: Annotation) -> str:
    given = [_literal(value) for value in annotation.args]
    given += [f"{key}={_literal(value)}" for key, value in annotation.options]
    return f"@{annotation.name}({', '.join(given)})" if given else f"@{annotation.name}"


def _literal(value: LiteralValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return encode_string(value) if isinstance(value, str) else repr(value)
