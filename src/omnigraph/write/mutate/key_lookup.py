"""Predicates that name rows by their key: the ids they can only be true for.

A look-up by id goes to the index and to the few fragments that can hold the row; the same condition on the key's
properties would read every fragment that no index covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import rebuild
from omnigraph.query.predicates import conjuncts
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.ids.given_ids import IdForm, NoId
from omnigraph.schema.ids.identity import edge_id, node_id
from omnigraph.schema.types import FLOATS, EnumType, ScalarType, ValueType


def ids_by_key(type_: GraphType, predicate: ir.Expr) -> pa.Array | None:
    """An array with the one id that every matching row must have, or None when the predicate does not say.

    The predicate has no parameters any more.
    """
    equal = _equalities(predicate)
    if isinstance(equal.get("id"), str):
        return pa.array([equal["id"]], pa.string())
    if not type_.key or not all(column in equal for column in type_.key):
        return None
    values = {p.name: equal[p.column] for p in type_.properties if p.column in equal}
    try:
        if isinstance(type_, EdgeType):
            found = edge_id(type_, equal["src"], equal["dst"], values)
        else:
            found = node_id(type_, values)
    except BadRequest:
        return None
    return pa.array([found], pa.string())


def with_normal_ids(forms: Mapping[str, IdForm], predicate: ir.Expr) -> ir.Expr:
    """A predicate in which ids that are compared with `id`, `from` and `to` are spelled as they are stored."""
    match predicate:
        case ir.Compare(op, ir.Prop(ir.THIS) as prop, ir.Literal() as literal) if prop.column in forms:
            return ir.Compare(op, prop, _normal(forms[prop.column], literal))
        case ir.Compare(op, ir.Literal() as literal, ir.Prop(ir.THIS) as prop) if prop.column in forms:
            return ir.Compare(op, _normal(forms[prop.column], literal), prop)
        case ir.In(ir.Prop(ir.THIS) as prop, ir.Literal() as literal) if prop.column in forms:
            return ir.In(prop, _normal(forms[prop.column], literal))
        case _:
            return rebuild(predicate, lambda part: with_normal_ids(forms, part))


def _normal(form: IdForm, literal: ir.Literal) -> ir.Literal:
    if isinstance(literal.value, tuple):
        return ir.Literal(tuple(_taken(form, value) for value in literal.value), literal.type)
    return ir.Literal(_taken(form, literal.value), literal.type)


def _taken(form: IdForm, value: Any) -> Any:
    try:
        return form.take(value) if isinstance(value, str) else value
    except NoId:
        return value


def _equalities(predicate: ir.Expr) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in conjuncts(predicate):
        match part:
            case ir.Compare(ir.CompareOp.EQ, ir.Prop(ir.THIS) as prop, ir.Literal(value)) | ir.Compare(
                ir.CompareOp.EQ, ir.Literal(value), ir.Prop(ir.THIS) as prop
            ) if value is not None and not isinstance(value, float) and _is_exact(prop.type):
                found[prop.column] = value
    return found


def _is_exact(type_: ValueType) -> bool:
    """Whether equal values have one canonical text: `-0.0` and `0.0` are equal, and stored as they came."""
    return isinstance(type_, EnumType) or (isinstance(type_, ScalarType) and type_.scalar not in FLOATS)
