"""What the `match` of a mutation found: bindings of its variables, and the values that statements look at.

The match is read once, by whoever runs reads, as an ordinary query that returns what the statements name. A statement
runs for every different binding of its own variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import leaves, rebuild_all
from omnigraph.query.typing import BOOL, STRING, type_of
from omnigraph.write.validate.key_changes import one_array

ReadMatch = Callable[[ir.ReadQuery, Mapping[str, Any]], pa.Table]
"""Runs a read on the snapshot of the write: the query and the values of its parameters."""

_NAMED = ir.Prop | ir.Entity | ir.TypeOf | ir.PathValue


@dataclass(frozen=True)
class Bindings:
    """Rows of a match. `names` says which column holds what an expression asks of a variable."""

    rows: pa.Table
    names: Mapping[ir.Expr, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.rows.num_rows)

    def column(self, leaf: ir.Expr) -> pa.Array:
        """The values of a leaf of an expression, one for each binding."""
        return one_array(self.rows[self.names[_plain(leaf)]])

    def ids(self, variable: str) -> pa.Array:
        """The ids that a variable is bound to, null where an `optional` left it."""
        return self.column(id_of(variable))

    def distinct(self, variables: Sequence[str]) -> Bindings:
        """One row for each different binding of these variables; at most one when there are none."""
        if not variables:
            return Bindings(self.rows.slice(0, 1), self.names)
        told = [name for leaf, name in self.names.items() if _tells(leaf, variables, self.names)]
        seen: dict[Any, int] = {}
        for number, key in enumerate(zip(*(map(_hashable, self.rows[name].to_pylist()) for name in told))):
            seen.setdefault(key, number)
        return Bindings(self.rows.take(pa.array(list(seen.values()), pa.int64())), self.names)

    def take(self, positions: pa.Array) -> Bindings:
        """Some of the bindings, again and again if need be."""
        return Bindings(self.rows.take(positions), self.names)

    def each(self) -> Iterator[Mapping[ir.Expr, Any]]:
        """The bindings one by one: the value of each leaf."""
        for row in self.rows.to_pylist():
            yield {leaf: row[name] for leaf, name in self.names.items()}


ONE = Bindings(pa.table({"": pa.nulls(1)}))
"""The one binding of a mutation without a match."""


def id_of(variable: str) -> ir.Prop:
    """The id of what a variable is bound to, as an expression."""
    return ir.Prop(variable, "id", STRING)


def read_match(query: ir.MutationQuery, params: Mapping[str, Any], read: ReadMatch | None) -> Bindings:
    """The bindings of a mutation's match."""
    if query.match is None:
        return ONE
    assert read is not None, "a mutation with a match needs somebody who reads"
    named = {name for statement in query.statements for name in statement.vars}
    wanted: list[ir.Expr] = [id_of(variable.name) for variable in query.variables if variable.name in named]
    wanted += [_plain(leaf) for statement in query.statements for leaf in _leaves(statement)]
    names: dict[ir.Expr, str] = {leaf: f"v{number}" for number, leaf in enumerate(dict.fromkeys(wanted))}
    columns = tuple(_column(name, leaf) for leaf, name in (names or {ir.Literal(True, BOOL): "v0"}).items())
    order = ir.Sort(query.match, (), tuple(variable.name for variable in query.variables))
    parameters = tuple(p for p in query.parameters if not isinstance(p.type, ir.RowsType))
    matched = ir.ReadQuery(
        query.name,
        parameters,
        ir.Project(order, columns),
        tuple(ir.ResultColumn(column.name, column.type, column.nullable) for column in columns),
        query.variables,
        query.reads,
        all_variables=query.all_variables,
    )
    known = {parameter.name for parameter in parameters}
    values = {name: value for name, value in params.items() if name.removeprefix("$") in known}
    return Bindings(read(matched, values), names)


def with_values(expr: ir.Expr, values: Mapping[ir.Expr, Any]) -> ir.Expr:
    """An expression in which what it asks of matched variables is replaced by the values of one binding."""
    if isinstance(expr, _NAMED) and expr.var != ir.THIS:
        value = values[_plain(expr)]
        return ir.Literal(tuple(value) if isinstance(value, list) else value, type_of(_plain(expr)))
    return rebuild_all(expr, lambda part: with_values(part, values))


def expressions(statement: ir.Statement) -> Iterator[ir.Expr]:
    """The expressions of a statement."""
    match statement:
        case ir.Insert():
            yield from (value for value in (statement.source, statement.target, statement.id) if value is not None)
            yield from (assignment.value for assignment in statement.assignments)
        case ir.Update():
            yield statement.predicate
            yield from (assignment.value for assignment in statement.assignments)
        case ir.Delete():
            yield statement.predicate


def _leaves(statement: ir.Statement) -> Iterator[ir.Expr]:
    for expression in expressions(statement):
        for leaf in leaves(expression):
            if isinstance(leaf, _NAMED) and leaf.var != ir.THIS:
                yield leaf


def _plain(leaf: ir.Expr) -> ir.Expr:
    """A leaf as it is looked up: an entity by its id, and whether it can be null does not matter."""
    match leaf:
        case ir.Entity(var):
            return id_of(var)
        case ir.Prop(var, name, type_, _, declared):
            return ir.Prop(var, name, type_, False, declared)
        case ir.TypeOf(var):
            return ir.TypeOf(var)
    return leaf


def _tells(leaf: ir.Expr, variables: Sequence[str], names: Mapping[ir.Expr, str]) -> bool:
    """Whether a column tells bindings of these variables apart: an entity's id, or what is asked of a path."""
    if not isinstance(leaf, _NAMED) or leaf.var not in variables:
        return False
    own = id_of(leaf.var)
    return leaf == own if own in names else True


def _column(name: str, leaf: ir.Expr) -> ir.Column:
    type_ = type_of(leaf)
    assert type_ is not None
    return ir.Column(name, leaf, type_, True)


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
