"""Predicates that name rows by their key: the ids they can only be true for.

A look-up by id goes to the index and to the few fragments that can hold the row; the same condition on the key's
properties would read every fragment that no index covers.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.identity import edge_id, node_id
from omnigraph.write.pushdown import comparable, constant


def ids_by_key(
    type_: GraphType, predicate: ir.Expr, params: Mapping[str, Any], now: datetime.datetime
) -> pa.Array | None:
    """An array with the one id that every matching row must have, or None when the predicate does not say."""
    equal = _equalities(predicate, params, now)
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


def _equalities(predicate: ir.Expr, params: Mapping[str, Any], now: datetime.datetime) -> dict[str, Any]:
    match predicate:
        case ir.And(items):
            found: dict[str, Any] = {}
            for item in items:
                found |= _equalities(item, params, now)
            return found
        case ir.Compare(ir.CompareOp.EQ, ir.Prop(ir.THIS, name, type_), other) | ir.Compare(
            ir.CompareOp.EQ, other, ir.Prop(ir.THIS, name, type_)
        ) if comparable(type_):
            value = constant(other, params, now)
            return {} if value is None else {name: value}
        case _:
            return {}
