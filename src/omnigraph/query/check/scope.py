"""What a query can name: the schema, the parameters, the bound variables. And where its problems are collected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from omnigraph.diagnostics import Diagnostic, Span, did_you_mean
from omnigraph.query import codes, ir, syntax
from omnigraph.query.typing import STRING
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType
from omnigraph.schema.types import ListType, PropertyType, Scalar, ScalarType, ValueType, VectorType

MAX_ERRORS = 100
"""Errors that are reported of one query."""


@dataclass(slots=True)
class Problems:
    """The findings of one query, in the order in which they were found."""

    found: list[Diagnostic] = field(default_factory=list)

    def add(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Note one error; the same error at the same place is noted once, and at most `MAX_ERRORS` are noted."""
        diagnostic = Diagnostic(code, message, span, hint=hint)
        if len(self.found) < MAX_ERRORS and diagnostic not in self.found:
            self.found.append(diagnostic)


@dataclass(slots=True)
class Scope:
    """The names of one block. `variables` maps to a table key, or to None when the type could not be found out."""

    catalog: Catalog
    parameters: dict[str, ir.Parameter]
    problems: Problems
    variables: dict[str, str | None] = field(default_factory=dict)

    def inner(self) -> Scope:
        """A scope for a block inside this one: it sees all that is bound here."""
        return Scope(self.catalog, self.parameters, self.problems, dict(self.variables))


def check_parameters(query: syntax.Query, problems: Problems) -> dict[str, ir.Parameter]:
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
        parameters[name] = ir.Parameter(name, _parameter_type(parameter.type, problems), parameter.optional)
    return parameters


def _parameter_type(written: syntax.TypeName, problems: Problems) -> PropertyType:
    name = written.name.text
    scalars = {scalar.value: scalar for scalar in Scalar}
    if name == "Vector" and not written.is_list:
        if written.size is not None and written.size >= 1:
            return VectorType(written.size)
        problems.add(codes.PARAMETER_DECLARATION, "a vector needs its dimension: `Vector(384)`", written.span)
        return VectorType(1)
    if name not in scalars:
        known = [*scalars, "Vector"]
        hint = did_you_mean(name, known)
        if name == "enum":
            hint = "pass the value of an enum as `String`"
        problems.add(codes.UNKNOWN_TYPE, f"unknown parameter type `{name}`", written.name.span, hint)
        return STRING
    if written.size is not None:
        problems.add(codes.PARAMETER_DECLARATION, f"`{name}` takes no size", written.span)
    if not written.is_list:
        return ScalarType(scalars[name])
    if scalars[name] is Scalar.BLOB:
        problems.add(codes.PARAMETER_DECLARATION, "there are no lists of blobs", written.span)
    return ListType(scalars[name])


@dataclass(frozen=True, slots=True)
class Field:
    """A column that can be named on an entity: its name in storage, its type, whether it can be null."""

    name: str
    type: ValueType
    nullable: bool


def find_field(table: GraphType, name: str) -> Field | None:
    """A property, `id`, or for an edge its ends (`from` and `to`, also as `src` and `dst`)."""
    declared = table.by_name.get(name)
    if declared is not None:
        return Field(declared.name, declared.type, declared.nullable)
    if name == "id":
        return Field("id", STRING, False)
    if isinstance(table, EdgeType):
        end = {"from": "src", "to": "dst", "src": "src", "dst": "dst"}.get(name)
        if end is not None:
            return Field(end, STRING, False)
    return None


def field_names(table: GraphType) -> list[str]:
    """All names that `find_field` finds, for suggestions."""
    ends = ["from", "to"] if isinstance(table, EdgeType) else []
    return [*table.by_name, "id", *ends]


def node_type(scope: Scope, name: syntax.Name) -> NodeType | None:
    """The node type that a binding names, or a finding."""
    found = scope.catalog.node(name.text)
    if found is not None:
        return found
    edge = scope.catalog.edge(name.text)
    if edge is not None:
        hint: str | None = f"an edge is bound in a traversal: `$a $w:{lower_first(edge.name)} $b`"
        scope.problems.add(codes.UNKNOWN_TYPE, f"`{name.text}` is an edge type, not a node type", name.span, hint)
        return None
    if any(interface.name == name.text for interface in scope.catalog.interfaces):
        message = f"`{name.text}` is an interface; a variable is bound to a node type"
        implementers = [node.name for node in scope.catalog.nodes if name.text in node.implements]
        hint = f"it is implemented by {', '.join(implementers)}" if implementers else None
        scope.problems.add(codes.UNKNOWN_TYPE, message, name.span, hint)
        return None
    hint = did_you_mean(name.text, (node.name for node in scope.catalog.nodes))
    scope.problems.add(codes.UNKNOWN_TYPE, f"unknown node type `{name.text}`", name.span, hint)
    return None


def lower_first(name: str) -> str:
    """How an edge is usually written in a query: `WorksAt` as `worksAt`."""
    return name[:1].lower() + name[1:]


def suggest_variable(name: str, known: Iterable[str]) -> str | None:
    """A hint that suggests the nearest variable, or None. Anonymous ones are never meant."""
    return did_you_mean(f"${name}", (f"${each}" for each in known if not each.startswith("$")))
