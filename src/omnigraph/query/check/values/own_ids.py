"""Constants that are compared with an id: the id itself, or the value of the key that it is made of.

`$p.@id = date("2026-01-02")` asks for the node whose key is that day; so does any other spelling of it.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query import ir
from omnigraph.query.check.scope import Scope
from omnigraph.query.typing import STRING
from omnigraph.schema.catalog import OWN_COLUMNS, GraphType
from omnigraph.schema.ids.given_ids import IdForm, own_forms, spelled
from omnigraph.schema.types import INTEGERS, ListType, Scalar, ScalarType


def id_forms(scope: Scope, row: tuple[GraphType, ...], operand: ir.Expr) -> tuple[IdForm, ...]:
    """What the ids are made of where `operand` is an id; none for everything else.

    `row` are the types of which bare names are properties.
    """
    if not isinstance(operand, ir.Prop) or operand.declared or operand.name not in OWN_COLUMNS:
        return ()
    forms = [own_forms(scope.catalog, type_).get(operand.name) for type_ in _types(scope, row, operand.var)]
    return tuple(form for form in forms if form is not None) if all(forms) else ()


def as_id(scope: Scope, row: tuple[GraphType, ...], operand: ir.Expr, constant: ir.Expr) -> ir.Expr:
    """A literal or a parameter as it is compared with `operand`: if that is an id, in the spelling that is stored."""
    forms = id_forms(scope, row, operand)
    match constant:
        case ir.Literal(value) if forms:
            found = spelled(forms, value)
            return constant if found is value else ir.Literal(found, STRING)
        case ir.Param(type=ScalarType(scalar)) if forms and all(_takes(form, scalar) for form in forms):
            return replace(constant, type=STRING, ids=forms)
        case ir.Param(type=ListType(scalar)) if forms and all(_takes(form, scalar) for form in forms):
            return replace(constant, type=ListType(Scalar.STRING), ids=forms)
        case ir.Param() if forms and not all(form.takes_any_text for form in forms):
            return replace(constant, ids=forms)
        case _:
            return constant


def _takes(form: IdForm, scalar: Scalar) -> bool:
    """Whether values of the type, which is not text, name ids of that form by the key that they are made of."""
    if form.is_array or scalar is Scalar.STRING:
        return False
    key = form.parts[0] if form.parts else STRING
    if not isinstance(key, ScalarType):
        return False
    return key.scalar is scalar or (scalar in INTEGERS and key.scalar in {Scalar.STRING, *INTEGERS})


def _types(scope: Scope, row: tuple[GraphType, ...], variable: str) -> tuple[GraphType, ...]:
    if variable in (ir.THIS, ir.EDGE):
        return row
    bound = next((each for each in scope.variables.values() if each.name == variable), None)
    tables = bound.tables if bound is not None and bound.tables else ()
    return tuple(found for key in tables if (found := scope.catalog.table(key)) is not None)
