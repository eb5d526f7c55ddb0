"""Tables of the snapshot as rows of one variable: its key and the fields that the query looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from omnigraph.query import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.spark.query.bindings import KEY, Bindings, Names, Variables, column
from omnigraph.spark.query.conditions import Conditions
from omnigraph.spark.query.identities import Identities
from omnigraph.spark.query.needs import Field, Needs
from omnigraph.spark.types import travelling_type
from omnigraph.storage.reading.filters import Filter

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Frames = Callable[[str, Sequence[str], Filter | None], "DataFrame"]
"""The rows of a table at the snapshot for which a condition holds, with these columns in this order: `t0`, `t1`, …"""

_OWN = ("id", "src", "dst")


class Tables:
    """What a query reads. `frames` gives the stored rows."""

    def __init__(
        self,
        frames: Frames,
        catalog: Catalog,
        variables: Variables,
        needs: Needs,
        conditions: Conditions,
        identities: Identities,
        names: Names,
    ) -> None:
        self.frames = frames
        self.catalog = catalog
        self.variables = variables
        self.conditions = conditions
        self.identities = identities
        self._needs = needs
        self._names = names

    def needs_only_key(self, var: str) -> bool:
        """Whether nothing but the identity of a variable is looked at."""
        return not self._needs.fields(var)

    def scan(self, var: str, tables: Sequence[str], operator: ir.Operator, *, with_key: bool = True) -> Bindings:
        """The entities of these tables that an operator binds a variable to, as far as it ranges over them."""
        fields = self._needs.fields(var)
        with_key = with_key or not fields
        own = ["id"] if with_key else []
        names = [self._names() for _ in (*own, *fields)]
        parts = []
        for table_key in tables:
            if table_key in self.variables.tables(var):
                made, rows = self.read(table_key, own, fields, (operator, var))
                if with_key:
                    made[0] = self.variables.made_key(var, made[0], table_key)
                parts.append(rows.select(*[each.alias(name) for each, name in zip(made, names, strict=True)]))
        looked_at = [*(KEY for _ in own), *(field.place for field in fields)]
        return Bindings(union(parts), {(var, place): name for place, name in zip(looked_at, names, strict=True)})

    def read(
        self,
        table_key: str,
        own: Sequence[str],
        fields: Sequence[Field],
        bound: tuple[ir.Operator, str] | None = None,
    ) -> tuple[list[Column], DataFrame]:
        """A table, and its columns for its own fields and for these. A property that it does not have is null.

        `bound`: which operator binds which variable to the rows, so that those need not be read that it would drop.
        """
        graph_type = self.catalog.table(table_key)
        assert graph_type is not None
        there = [field.column if has_field(graph_type, field) else None for field in fields]
        stored = list(dict.fromkeys([*own, *(name for name in there if name is not None)]))
        condition = None if bound is None else self.condition(table_key, *bound)
        rows = self.frames(table_key, stored, condition)
        place = {name: column(f"t{position}") for position, name in enumerate(stored)}
        looked_at = [_typed(None if name is None else place[name], field) for name, field in zip(there, fields)]
        return [*(place[name] for name in own), *looked_at], rows

    def condition(self, table_key: str, operator: ir.Operator, var: str) -> Filter | None:
        """What holds for every row of a table that an operator binds a variable to."""
        graph_type = self.catalog.table(table_key)
        assert graph_type is not None
        return self.conditions.on(operator, var, {*_OWN, *(each.column for each in graph_type.properties)})

    def edge_tables(self, step: ir.Expand) -> list[tuple[str, str, str]]:
        """The edge tables that a traversal follows, with the types of their ends."""
        found = []
        for name in step.all_edges:
            edge = self.catalog.edge(name.removeprefix("edge:"))
            assert edge is not None
            found.append((edge.table_key, edge.source, edge.target))
        return found

    def edge_fields(self, edge_var: str) -> list[Field]:
        """What is looked at of a bound edge."""
        return self._needs.fields(edge_var)


def union(parts: Sequence[DataFrame]) -> DataFrame:
    """All rows of frames that have the same columns."""
    return reduce(lambda a, b: a.union(b), parts)


def has_field(graph_type: GraphType, field: Field) -> bool:
    """Whether a type has the field. A property of the same name and another type is not meant: a block can ask for that
    of one type of an interface."""
    declared = next((each for each in graph_type.properties if each.column == field.column), None)
    return field.column in _OWN if declared is None else arrow_type(declared.type) == field.type


def _typed(stored: Column | None, field: Field) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_type

    type_ = from_arrow_type(travelling_type(field.type))
    return f.lit(None).cast(type_) if stored is None else stored
