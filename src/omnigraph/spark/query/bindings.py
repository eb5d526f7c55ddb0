"""Rows of a running query as a Spark frame, and which of its columns holds what.

Spark ignores the case of names and we do not, so every column has a made-up name; `Bindings` knows which.

An entity is told from others by one column, its *key*: its id, or, for a variable that ranges over several tables, a
struct of its id and the name of its type, in this order, so that keys sort as ties are broken. A key is null exactly
where an `optional` left the variable null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import columns_of, variables_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = "@key"
TYPE = "@type"
SOURCE = "@src"
TARGET = "@dst"


@dataclass(frozen=True, slots=True)
class Bindings:
    """`places` maps (variable, field) to a column: `KEY`, the properties that the query looks at, the parts of a path.

    `computed` maps the name of a computed column to a column. A computed name that stands for an entity (a group key
    `$x`) is in `entities` instead, with its variable.
    """

    frame: DataFrame
    places: Mapping[tuple[str, str], str] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    entities: Mapping[str, str] = field(default_factory=dict)
    waiting: tuple[ir.Expr, ...] = ()
    """Conditions on what only a later join of the block binds. `settled` tells that there are none."""
    met: tuple[str, ...] = ()
    """A column of each side of the last join that made these rows, if nobody has asked about them yet (stopping.py)."""

    @property
    def vars(self) -> set[str]:
        """The bound variables, without paths."""
        return {var for var, name in self.places if name == KEY}

    def key(self, var: str) -> str:
        """The column that tells which entity a variable is bound to."""
        return self.places[var, KEY]

    def of(self, var: str) -> dict[tuple[str, str], str]:
        """The columns of one variable or path."""
        return {key: name for key, name in self.places.items() if key[0] == var}

    def place(self, var: str, name: str, type_: pa.DataType) -> str:
        """The column of a property: of the one of this type, where the variable has several of the name."""
        return self.places.get((var, f"{name}: {type_}")) or self.places[var, name]

    def identity(self, names: Iterable[str]) -> list[str]:
        """The columns in which bindings of these variables, or these computed columns, differ."""
        return [self.order_column(name) for name in names]

    def order_column(self, name: str) -> str:
        """The column by which a variable or a computed column sorts."""
        if name in self.computed:
            return self.computed[name]
        return self.key(self.entities.get(name, name))

    def binds(self, expr: ir.Expr) -> bool:
        """Whether everything that an expression looks at is there."""
        known = {var for var, _ in self.places}
        return variables_of(expr) <= known and columns_of(expr) <= {*self.computed, *self.entities}

    def settled(self) -> Bindings:
        """These rows, at the end of a block: every condition of it has been applied."""
        if self.waiting:
            raise InternalError(f"conditions of a query were not applied: {self.waiting!r}")
        return self

    def any_column(self) -> str | None:
        """A column of these rows, if there is one: rather one that tells which entity a variable is bound to."""
        keys = [name for (_, part), name in self.places.items() if part == KEY]
        return next(iter((*keys, *self.places.values(), *self.computed.values())), None)

    def with_frame(self, frame: DataFrame) -> Bindings:
        """The same columns in another frame."""
        return replace(self, frame=frame)


class Variables:
    """What is known of every variable before anything runs: the tables that it ranges over."""

    def __init__(self, variables: Iterable[ir.Variable]) -> None:
        self._tables = {variable.name: variable.all_tables for variable in variables}

    def tables(self, var: str) -> tuple[str, ...]:
        """The tables that a variable ranges over."""
        return self._tables[var]

    def is_mixed(self, var: str) -> bool:
        """Whether it ranges over several tables."""
        return len(self._tables[var]) > 1

    def made_key(self, var: str, id_column: Column, table_key: str) -> Column:
        """The key of an entity of a table, in the form that the variable has it in."""
        return made_node(id_column, type_name(table_key), mixed=self.is_mixed(var))

    def id(self, rows: Bindings, var: str) -> Column:
        """The id of the entity that a variable is bound to."""
        key = column(rows.key(var))
        return key.getField("id") if self.is_mixed(var) else key

    def type_of(self, rows: Bindings, var: str) -> Column:
        """The name of its type."""
        from pyspark.sql import functions as f

        key = column(rows.key(var))
        if self.is_mixed(var):
            return key.getField("type")
        return f.when(key.isNotNull(), f.lit(type_name(self._tables[var][0])))


class Names:
    """Made-up names of columns, each given once."""

    def __init__(self) -> None:
        self._given = 0

    def __call__(self) -> str:
        self._given += 1
        return f"c{self._given}"


def made_node(id_column: Column, type_: str, *, mixed: bool) -> Column:
    """An id, or an id with the name of its type."""
    from pyspark.sql import functions as f

    return f.struct(id_column.alias("id"), f.lit(type_).alias("type")) if mixed else id_column


def type_name(table_key: str) -> str:
    """`Person` of `node:Person`."""
    return table_key.split(":", 1)[1]


def column(name: str) -> Column:
    """The column of that name."""
    from pyspark.sql import functions as f

    return f.col(name)


def joined_on(
    left: DataFrame, right: DataFrame, pairs: Sequence[tuple[str, str]], how: str = "inner", *, nulls_meet: bool = False
) -> DataFrame:
    """Join on equal columns; without any, every row meets every row. `nulls_meet`: null equals null."""
    from pyspark.sql import functions as f

    if not pairs:
        return left.crossJoin(right) if how == "inner" else left.join(right, f.lit(True), how)
    tests = [column(a).eqNullSafe(column(b)) if nulls_meet else column(a) == column(b) for a, b in pairs]
    return left.join(right, reduce(lambda a, b: a & b, tests), how)
