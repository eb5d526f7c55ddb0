"""Which properties of each variable a query looks at, so that a scan reads those columns and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import leaves
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import property_column
from omnigraph.schema.types import EntityType, Scalar, ScalarType, VectorType
from omnigraph.spark.query.bindings import KEY, SOURCE, TARGET

_TEXT = ScalarType(Scalar.STRING)
_OWN = {"id": KEY, "src": SOURCE, "dst": TARGET}
_OWN_COLUMNS = {SOURCE: "src", TARGET: "dst"}


@dataclass(frozen=True, slots=True)
class Field:
    """A property, or an end of an edge: its name among the places of a variable, and the type of its values."""

    name: str
    type: pa.DataType
    exact: bool = False
    """Whether the variable's types have properties of this name that are of different types, and this one is meant."""

    @property
    def place(self) -> str:
        """What it is called among the places of a variable: by its type too where the name alone says too little."""
        return f"{self.name}: {self.type}" if self.exact else self.name

    @property
    def column(self) -> str:
        """The column of the table that holds it."""
        return _OWN_COLUMNS.get(self.name) or property_column(self.name)


class Needs:
    """The fields to read for each variable besides its key, in order of first use."""

    def __init__(self, query: ir.ReadQuery, entity_fields: Callable[[EntityType], pa.StructType]) -> None:
        """`entity_fields` gives the type in which `$x` alone is returned."""
        self._fields: dict[str, dict[tuple[str, pa.DataType], Field]] = {}
        for expr in every_expression(query.root):
            for var, field in fields_in(expr):
                self._add(var, field)
        for expr in _returned(query.root):
            if isinstance(expr, ir.Entity) and isinstance(expr.type, EntityType):
                for part in entity_fields(expr.type):
                    if part.name not in ("@id", "@type"):
                        self._add(expr.var, Field(part.name, part.type))

    def fields(self, var: str) -> list[Field]:
        """What a scan of this variable reads besides its key."""
        found = self._fields.get(var, {})
        times = Counter(name for name, _ in found)
        return [replace(field, exact=times[field.name] > 1) for field in found.values()]

    def _add(self, var: str, field: Field) -> None:
        self._fields.setdefault(var, {}).setdefault((field.name, field.type), field)


def fields_in(expr: ir.Expr) -> Iterator[tuple[str, Field]]:
    """The variables of an expression, each with a field that the expression looks at besides its key."""
    for leaf in leaves(expr):
        match leaf:
            case ir.Prop() if field_of(leaf) != KEY:
                yield leaf.var, Field(field_of(leaf), stored_type(leaf.type))
            case ir.TextMatch() | ir.Bm25():
                yield leaf.var, Field(leaf.property, arrow_type(_TEXT))
            case ir.Nearest():
                yield leaf.var, Field(leaf.property, arrow_type(VectorType(leaf.dim)))


def field_of(leaf: ir.Prop) -> str:
    """The place of a property among those of its variable; what an entity has of its own is no property."""
    return leaf.name if leaf.declared else _OWN.get(leaf.name, leaf.name)


def stored_type(type_: Any) -> pa.DataType:
    """The Arrow type of values in process; an entity as a value is its id."""
    return pa.string() if type_ is None or isinstance(type_, EntityType) else arrow_type(type_)


def _returned(root: ir.Project) -> Iterator[ir.Expr]:
    """Expressions whose whole value is returned: projected ones, and the group keys and stage columns behind them."""
    for operator in every_operator(root):
        match operator:
            case ir.Project(columns=columns) | ir.GroupBy(keys=columns) | ir.Stage(columns=columns):
                yield from (column.expr for column in columns)


def every_operator(operator: ir.Operator) -> Iterator[ir.Operator]:
    """An operator and all below it."""
    yield operator
    for name in ("input", "left", "right", "inner"):
        below = getattr(operator, name, None)
        if below is not None:
            yield from every_operator(below)
    if isinstance(operator, ir.Either):
        for arm in operator.arms:
            yield from every_operator(arm)


def every_expression(operator: ir.Operator) -> Iterator[ir.Expr]:
    """Every expression that an operator or one below it holds, save the conditions along a walk."""
    for each in every_operator(operator):
        match each:
            case ir.Filter(predicate=predicate):
                yield predicate
            case ir.Rank(ranking=ranking) | ir.Fuse(ranking=ranking):
                yield ranking
            case ir.GroupBy(keys=keys, aggregates=aggregates):
                yield from (column.expr for column in (*keys, *aggregates))
            case ir.Sort(keys=keys):
                yield from (key.expr for key in keys)
            case ir.Project(columns=columns) | ir.Stage(columns=columns):
                yield from (column.expr for column in columns)
