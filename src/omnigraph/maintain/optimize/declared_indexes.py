"""Which indexes a type's table should have: one rule, for index builds, for reports of what is pending and for docs."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.schema.catalog import GraphType, Property
from omnigraph.schema.search_settings import metric_of, text_settings
from omnigraph.schema.types import EnumType, ListType, Scalar, ScalarType, VectorType
from omnigraph.storage.layout.indexes import IndexKind, SearchSettings


@dataclass(frozen=True, slots=True)
class DeclaredIndex:
    """One index that a schema asks for."""

    table_key: str
    column: str
    kind: IndexKind
    settings: SearchSettings | None = None


def declared_indexes(type_: GraphType) -> tuple[DeclaredIndex, ...]:
    """The indexes of a type: always on `id` (and the ends of edges), then what `@index`, keys and vectors ask for."""
    columns = ["id", *(("src", "dst") if type_.kind == "edge" else ())]
    found = [DeclaredIndex(type_.table_key, column, IndexKind.BTREE) for column in columns]
    for property_ in type_.properties:
        if property_.indexed or property_.column in type_.key or isinstance(property_.type, VectorType):
            found += [
                DeclaredIndex(type_.table_key, property_.column, kind, _settings(property_, kind))
                for kind in kinds_for(property_)
            ]
    return tuple(found)


def _settings(property_: Property, kind: IndexKind) -> SearchSettings | None:
    if kind is IndexKind.TEXT:
        return text_settings(property_)
    return metric_of(property_) if kind is IndexKind.VECTOR else None


def kinds_for(property_: Property) -> tuple[IndexKind, ...]:
    """Free text gets words and order, other scalars order, vectors nearness, lists and blobs nothing."""
    match property_.type:
        case VectorType():
            return (IndexKind.VECTOR,)
        case ListType():
            return ()
        case EnumType():
            return (IndexKind.BTREE,)
        case ScalarType(scalar=Scalar.BLOB):
            return ()
        case ScalarType(scalar=Scalar.STRING):
            return (IndexKind.BTREE, IndexKind.TEXT)
        case _:
            return (IndexKind.BTREE,)
