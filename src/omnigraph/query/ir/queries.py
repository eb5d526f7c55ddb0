"""Compiled queries as wholes: parameters, results, and the statements of mutations.

**Mutations with a match.** `MutationQuery.match` is read once, before the statements, and its rows are bindings of
`MutationQuery.variables`. A statement runs once for each different binding of its `vars`, the variables that it names;
one that names none runs once if the match has a row. Without a match `vars` are empty and every statement runs once.
Values of properties of bound variables are those that the match read, whatever earlier statements wrote.

Two bindings that give one property of one row two different values are an error that names the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query.ir.expressions import Expr, Literal
from omnigraph.query.ir.operators import Operator, Project, Variable
from omnigraph.schema.types import ValueType


@dataclass(frozen=True, slots=True)
class RowsType:
    """`[Type]`: the type of a parameter that holds rows of a node or edge type, as objects of a load."""

    table_key: str

    def __str__(self) -> str:
        return f"[{self.table_key.split(':', 1)[1]}]"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter. `default` is its value when it is absent; without one an optional one is null."""

    name: str
    type: ValueType | RowsType
    nullable: bool = False
    default: Literal | None = None


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A typed column of the result."""

    name: str
    type: ValueType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A compiled read.

    `variables` are those that are bound where the result is made, in order of binding; `all_variables` those of every
    block and every stage. Names are unique among them.
    """

    name: str
    parameters: tuple[Parameter, ...]
    root: Project
    columns: tuple[ResultColumn, ...]
    variables: tuple[Variable, ...]
    reads: tuple[str, ...]
    description: str | None = None
    instruction: str | None = None
    all_variables: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """`property: value`. The value has a type that the property holds; one that needs a look at values is checked then.

    In `update`, bare names are properties of the row (`THIS`) as it was before the statement.
    """

    property: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row, or an update of the row with the same key. `source` and `target` are the ends of an edge (text: ids).

    `new`: an id that exists is refused (`KeyConflict`).
    """

    table_key: str
    assignments: tuple[Assignment, ...]
    source: Expr | None = None
    target: Expr | None = None
    id: Expr | None = None
    new: bool = False
    vars: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InsertRows:
    """`insert T from $rows`: the rows of a `RowsType` parameter, validated like a load, all violations listed."""

    table_key: str
    parameter: str
    new: bool = False
    vars: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """Set values on the rows that the predicate holds for. Properties in it have the variable `THIS`.

    `var`: `update $p set …`, only the rows that this variable of the match is bound to (by id); the predicate is then
    `Literal(True)` unless there is a `where`.
    """

    table_key: str
    assignments: tuple[Assignment, ...]
    predicate: Expr
    var: str | None = None
    vars: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the rows that the predicate holds for; edges that touch deleted nodes go too. `var` as in `Update`."""

    table_key: str
    predicate: Expr
    var: str | None = None
    vars: tuple[str, ...] = ()


Statement = Insert | InsertRows | Update | Delete


@dataclass(frozen=True, slots=True)
class MutationQuery:
    """A compiled mutation: inserts and updates, or deletes, never both."""

    name: str
    parameters: tuple[Parameter, ...]
    statements: tuple[Statement, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    description: str | None = None
    instruction: str | None = None
    match: Operator | None = None
    variables: tuple[Variable, ...] = ()
    all_variables: tuple[Variable, ...] = ()


CompiledQuery = ReadQuery | MutationQuery
