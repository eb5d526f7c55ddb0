"""The parameters of a query: their types and their defaults."""

from __future__ import annotations

from omnigraph.diagnostics import did_you_mean
from omnigraph.query import codes, ir
from omnigraph.query.check.scope import UNKNOWN, Problems, Scope
from omnigraph.query.check.values.expressions import ExpressionChecker
from omnigraph.query.check.values.literals import Misfit, typed
from omnigraph.query.check.values.places import Place
from omnigraph.query.text import syntax
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.types import ListType, Scalar, ScalarType, ValueType, VectorType


def check_parameters(query: syntax.Query, catalog: Catalog, problems: Problems) -> dict[str, ir.Parameter]:
    """The declared parameters by name, in order."""
    parameters: dict[str, ir.Parameter] = {}
    for parameter in query.parameters:
        name = parameter.variable.name
        if name in parameters:
            problems.add(codes.PARAMETER_DECLARATION, f"parameter `${name}` is declared twice", parameter.variable.span)
            continue
        if name == "_":
            message = "a parameter cannot be called `$_`: that is the anonymous variable"
            problems.add(codes.PARAMETER_DECLARATION, message, parameter.variable.span)
            continue
        type_ = _parameter_type(parameter.type, catalog, problems)
        default = _default(parameter, type_, catalog, problems)
        parameters[name] = ir.Parameter(name, type_, parameter.optional, default)
    return parameters


def _default(
    parameter: syntax.Parameter, type_: ValueType | ir.RowsType, catalog: Catalog, problems: Problems
) -> ir.Literal | None:
    written = parameter.default
    if written is None:
        return None
    name = parameter.variable.name
    if type_ == UNKNOWN:
        return None
    if isinstance(type_, ir.RowsType):
        problems.add(codes.PARAMETER_DEFAULT, f"`${name}` holds rows and has no default", written.span)
        return None
    value = ExpressionChecker(Scope(catalog, {}, problems), Place.CONSTANT).value(written)
    if value is None:
        return None
    if not isinstance(value, ir.Literal):
        message = f"the default of `${name}` is a literal, known before the query runs"
        problems.add(codes.PARAMETER_DEFAULT, message, written.span)
        return None
    if value.value is None:
        if parameter.optional:
            return ir.Literal(None, type_)
        message = f"`${name}` cannot be null"
        problems.add(codes.PARAMETER_DEFAULT, message, written.span, f"make it optional: `${name}: {type_}?`")
        return None
    try:
        return typed(value.value, type_)
    except Misfit as misfit:
        message = f"the default of `${name}` is not {type_}: {misfit.message}"
        problems.add(codes.PARAMETER_DEFAULT, message, written.span, misfit.hint)
        return None


def _parameter_type(written: syntax.TypeName, catalog: Catalog, problems: Problems) -> ValueType | ir.RowsType:
    name = written.name.text
    scalars = {scalar.value: scalar for scalar in Scalar}
    if name == "Vector" and not written.is_list:
        if written.size is not None and written.size >= 1:
            return VectorType(written.size)
        problems.add(codes.PARAMETER_DECLARATION, "a vector needs its dimension: `Vector(384)`", written.span)
        return VectorType(1)
    if name not in scalars:
        table = catalog.node(name) or catalog.edge(name)
        if table is not None and written.is_list:
            return ir.RowsType(table.table_key)
        known = [*scalars, "Vector"]
        if written.is_list:
            known += [each.name for each in catalog.types()]
        hint = did_you_mean(name, known)
        if name == "enum":
            hint = "pass the value of an enum as `String`"
        elif table is not None:
            hint = f"rows of it are `[{table.name}]`"
        problems.add(codes.UNKNOWN_TYPE, f"unknown parameter type `{name}`", written.name.span, hint)
        return UNKNOWN
    if written.size is not None:
        problems.add(codes.PARAMETER_DECLARATION, f"`{name}` takes no size", written.span)
    if not written.is_list:
        return ScalarType(scalars[name])
    if scalars[name] is Scalar.BLOB:
        problems.add(codes.PARAMETER_DECLARATION, "there are no lists of blobs", written.span)
    return ListType(scalars[name])
