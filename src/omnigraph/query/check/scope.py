"""What a query can name: the schema, the parameters, the bound variables. And where its problems are collected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from omnigraph.diagnostics import Diagnostic, Span, did_you_mean
from omnigraph.query import codes, ir
from omnigraph.query.text import syntax
from omnigraph.query.typing import STRING
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType
from omnigraph.schema.types import ValueType

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
class Bound:
    """A bound variable. `name` is its name in the IR; `tables` those it ranges over, None when that is unknown.

    `interface` is set when an interface says which properties it has. A path has no tables.
    """

    name: str
    tables: tuple[str, ...] | None = None
    interface: str | None = None
    nullable: bool = False
    is_path: bool = False

    @property
    def table_key(self) -> str | None:
        """The table, or a key that stands for all of them."""
        if self.tables is None or not self.tables:
            return None
        if self.interface is not None:
            return f"interface:{self.interface}"
        return joined_key(self.tables)

    def variable(self) -> ir.Variable | None:
        """The variable of the IR, when its type is known."""
        if not self.tables:
            return None
        several = self.tables if len(self.tables) > 1 else ()
        key = (self.table_key or "") if several else self.tables[0]
        return ir.Variable(self.name, key, several, self.nullable, shown(self.name))


def joined_key(tables: Sequence[str]) -> str:
    """`node:A|B` for several tables; the key itself for one."""
    if len(tables) == 1:
        return tables[0]
    kind = tables[0].split(":", 1)[0]
    return f"{kind}:" + "|".join(table.split(":", 1)[1] for table in tables)


def shown(name: str) -> str:
    """A variable as it was written: the name in the IR without the number that makes it unique."""
    return name.split("#", 1)[0]


UNKNOWN = ir.RowsType("")
"""The type of a parameter whose type was not understood: what uses it is no second mistake."""


@dataclass(slots=True)
class Scope:
    """The names of one block: its variables as they are written, and the aliases of an earlier stage."""

    catalog: Catalog
    parameters: dict[str, ir.Parameter]
    problems: Problems
    variables: dict[str, Bound] = field(default_factory=dict)
    columns: dict[str, ir.ColumnRef] = field(default_factory=dict)
    left_behind: frozenset[str] = frozenset()
    """Variables of earlier stages that a `with` did not list."""
    inside: set[str] = field(default_factory=set)
    """Variables that only blocks inside this one bind."""

    def inner(self) -> Scope:
        """A scope for a block inside this one: it sees all that is bound here, and may know more of it."""
        variables = {name: replace(bound) for name, bound in self.variables.items()}
        return Scope(self.catalog, self.parameters, self.problems, variables, self.columns, self.left_behind)


@dataclass(frozen=True, slots=True)
class Field:
    """A column that can be named on an entity: its name in storage, its type, whether it can be null.

    `declared`: the schema declares it although its name is that of one of the entity's own fields.
    """

    name: str
    type: ValueType
    nullable: bool
    declared: bool = False


_OWN = {"@id": "id", "@src": "src", "@dst": "dst"}
_ENDS = {"from": "src", "to": "dst", "src": "src", "dst": "dst"}


def find_field(table: GraphType, name: str) -> Field | None:
    """A property, `id`, or for an edge its ends (`from` and `to`, also `src` and `dst`); `@id` is never a property."""
    declared = table.by_name.get(name)
    if declared is not None:
        return Field(declared.name, declared.type, declared.nullable, declared.name in {"id", "src", "dst"})
    if name in {"id", "@id"}:
        return Field("id", STRING, False)
    if isinstance(table, EdgeType):
        end = _OWN.get(name) or _ENDS.get(name)
        if end is not None:
            return Field(end, STRING, False)
    return None


def common_field(catalog: Catalog, tables: Sequence[str], interface: str | None, name: str) -> Field | None:
    """The field of that name which entities of all tables have, with one type; with an interface, only what it says."""
    found = [find_field(table, name) for key in tables if (table := catalog.table(key)) is not None]
    if (
        interface is not None
        and not name.startswith("@")
        and name != "id"
        and name not in _interface(catalog, interface)
    ):
        return None
    known = [each for each in found if each is not None]
    if len(known) < len(tables) or any(each.type != known[0].type for each in known):
        return None
    return Field(known[0].name, known[0].type, any(each.nullable for each in known), known[0].declared)


def _interface(catalog: Catalog, name: str) -> list[str]:
    return [each.name for interface in catalog.interfaces if interface.name == name for each in interface.properties]


def field_names(table: GraphType) -> list[str]:
    """All names that `find_field` finds, for suggestions."""
    ends = ["from", "to"] if isinstance(table, EdgeType) else []
    return [*table.by_name, "id", *ends]


def common_names(catalog: Catalog, tables: Sequence[str], interface: str | None) -> list[str]:
    """All names that `common_field` finds, for suggestions."""
    if interface is not None:
        return [*_interface(catalog, interface), "id"]
    names = [field_names(table) for key in tables if (table := catalog.table(key)) is not None]
    return [name for name in names[0] if all(name in other for other in names)] if names else []


@dataclass(frozen=True, slots=True)
class NodeTypes:
    """What a binding says: the tables, and the interface if it names one."""

    tables: tuple[str, ...]
    interface: str | None = None


def node_types(scope: Scope, name: syntax.Name) -> NodeTypes | None:
    """The node types that a binding names: one, or all that implement an interface; or a finding."""
    found = scope.catalog.node(name.text)
    if found is not None:
        return NodeTypes((found.table_key,))
    edge = scope.catalog.edge(name.text)
    if edge is not None:
        hint: str | None = f"an edge is bound in a traversal: `$a $w:{lower_first(edge.name)} $b`"
        scope.problems.add(codes.UNKNOWN_TYPE, f"`{name.text}` is an edge type, not a node type", name.span, hint)
        return None
    if any(interface.name == name.text for interface in scope.catalog.interfaces):
        tables = tuple(node.table_key for node in scope.catalog.nodes if name.text in node.implements)
        if tables:
            return NodeTypes(tables, name.text)
        message = f"no node type implements the interface `{name.text}`"
        scope.problems.add(codes.UNKNOWN_TYPE, message, name.span)
        return None
    known = [node.name for node in scope.catalog.nodes] + [interface.name for interface in scope.catalog.interfaces]
    hint = did_you_mean(name.text, known)
    scope.problems.add(codes.UNKNOWN_TYPE, f"unknown node type `{name.text}`", name.span, hint)
    return None


def lower_first(name: str) -> str:
    """How an edge is usually written in a query: `WorksAt` as `worksAt`."""
    return name[:1].lower() + name[1:]


def suggest_variable(name: str, known: Iterable[str]) -> str | None:
    """A hint that suggests the nearest variable, or None. Anonymous ones are never meant."""
    return did_you_mean(f"${name}", (f"${each}" for each in known if not each.startswith("$")))
