"""Literals that are compared with an id: the id itself, or the value of the key that it is made of.

`$p.@id = date("2026-01-02")` asks for the node whose key is that day; so does any other spelling of it.
"""

from __future__ import annotations

from typing import Any

from omnigraph.query import ir
from omnigraph.query.check.scope import Scope
from omnigraph.query.typing import STRING
from omnigraph.schema.catalog import OWN_COLUMNS, GraphType
from omnigraph.schema.given_ids import NoId, own_forms


def as_id(scope: Scope, row: tuple[GraphType, ...], operand: ir.Expr, value: Any) -> Any:
    """The text of the id that a constant stands for where `operand` is an id; otherwise the constant as it is.

    `row` are the types of which bare names are properties.
    """
    if not isinstance(operand, ir.Prop) or operand.declared or operand.name not in OWN_COLUMNS or value is None:
        return value
    texts: set[str] = set()
    for type_ in _types(scope, row, operand.var):
        form = own_forms(scope.catalog, type_).get(operand.name)
        if form is None:
            return value
        try:
            texts.add(form.take(list(value) if isinstance(value, tuple) else value))
        except NoId:
            return value
    return texts.pop() if len(texts) == 1 else value


def id_literal(scope: Scope, row: tuple[GraphType, ...], operand: ir.Expr, literal: ir.Literal) -> ir.Literal:
    """The same for a literal."""
    found = as_id(scope, row, operand, literal.value)
    return literal if found is literal.value else ir.Literal(found, STRING)


def _types(scope: Scope, row: tuple[GraphType, ...], variable: str) -> tuple[GraphType, ...]:
    if variable in (ir.THIS, ir.EDGE):
        return row
    bound = next((each for each in scope.variables.values() if each.name == variable), None)
    tables = bound.tables if bound is not None and bound.tables else ()
    return tuple(found for key in tables if (found := scope.catalog.table(key)) is not None)
