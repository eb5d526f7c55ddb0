"""The catalog of stored queries: what each is for, and its parameters by kind, for people, clients and agents."""

from __future__ import annotations

from typing import Any

from omnigraph.query.ir import Parameter, RowsType
from omnigraph.schema.types import EnumType, ListType, Scalar, ScalarType, ValueType, VectorType
from omnigraph.stored.registry import Registry, StoredQuery

_KINDS = {
    Scalar.STRING: "string",
    Scalar.BLOB: "blob",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
}

_JSON_TYPES: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "blob": {"type": "string", "description": "base64 text, or a data: URI"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "bigint": {"type": ["integer", "string"], "description": "a whole number; as text where JSON would round it"},
    "float": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "object": {"type": "object"},
}


def listing(registry: Registry) -> dict[str, Any]:
    """The response of `queries list` and of `GET …/queries`."""
    return {"queries": [entry(query) for query in registry.exposed()]}


def entry(query: StoredQuery) -> dict[str, Any]:
    """One query of the catalog."""
    return {
        "name": query.name,
        "tool_name": query.tool_name,
        "description": query.compiled.description,
        "instruction": query.compiled.instruction,
        "mutates": query.mutates,
        "parameters": [parameter_entry(parameter) for parameter in query.compiled.parameters],
    }


def parameter_entry(parameter: Parameter) -> dict[str, Any]:
    """One parameter: its kind, and what a list or a vector of it holds."""
    found: dict[str, Any] = {"name": parameter.name, **_kind(parameter.type)}
    found["nullable"] = parameter.nullable or parameter.default is not None
    return found


def input_schema(query: StoredQuery) -> dict[str, Any]:
    """The parameters as a JSON Schema, for agents."""
    properties: dict[str, Any] = {}
    required = []
    for parameter in query.compiled.parameters:
        found = parameter_entry(parameter)
        schema = _schema(found, parameter.type)
        if found["nullable"]:
            types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            schema = {**schema, "type": [*types, "null"]}
            if "enum" in schema:
                schema["enum"] = [*schema["enum"], None]
        else:
            required.append(parameter.name)
        properties[parameter.name] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _kind(type_: ValueType | RowsType) -> dict[str, Any]:
    match type_:
        case RowsType():
            return {"kind": "list", "item_kind": "object"}
        case ListType(item):
            return {"kind": "list", "item_kind": _KINDS[item]}
        case VectorType(dim):
            return {"kind": "vector", "vector_dim": dim}
        case ScalarType(scalar):
            return {"kind": _KINDS[scalar]}
        case _:
            return {"kind": "string"}


def _schema(found: dict[str, Any], type_: ValueType | RowsType) -> dict[str, Any]:
    if found["kind"] == "list":
        return {"type": "array", "items": _JSON_TYPES[found["item_kind"]]}
    if found["kind"] == "vector":
        count = found["vector_dim"]
        return {"type": "array", "items": {"type": "number"}, "minItems": count, "maxItems": count}
    schema = dict(_JSON_TYPES[found["kind"]])
    if isinstance(type_, EnumType):
        schema["enum"] = list(type_.values)
    return schema
