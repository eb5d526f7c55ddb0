"""Predicates that name rows by their key: the ids they can only be true for.

A look-up by id goes to the index and to the few fragments that can hold the row; the same condition on the key's
properties would read every fragment that no index covers.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.query.predicates import conjuncts
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.identity import edge_id, node_id
from omnigraph.schema.types import FLOATS, EnumType, ScalarType, ValueType


def ids_by_key(type_: GraphType, predicate: ir.Expr) -> pa.Array | None:
    """An array with the one id that every matching row must have, or None when the predicate does not say.

    The predicate has no parameters any more.
    """
    equal = _equalities(predicate)
    if isinstance(equal.get("id"), str):
        return pa.array([equal["id"]], pa.string())
    if not type_.key or not all(name in equal for name in type_.key):
        return None
    try:
        if isinstance(type_, EdgeType):
            found = edge_id(type_, equal["src"], equal["dst"], equal)
        else:
            found = node_id(type_, equal)
    except BadRequest:
        return None
    return pa.array([found], pa.string())


def _equalities(predicate: ir.Expr) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in conjuncts(predicate):
        match part:
            case ir.Compare(ir.CompareOp.EQ, ir.Prop(ir.THIS, name, type_), ir.Literal(value)) | ir.Compare(
                ir.CompareOp.EQ, ir.Literal(value), ir.Prop(ir.THIS, name, type_)
            ) if value is not None and not isinstance(value, float) and _is_exact(type_):
                found[name] = value
    return found


def _is_exact(type_: ValueType) -> bool:
    """Whether equal values have one canonical text: `-0.0` and `0.0` are equal, and stored as they came."""
    return isinstance(type_, EnumType) or (isinstance(type_, ScalarType) and type_.scalar not in FLOATS)
