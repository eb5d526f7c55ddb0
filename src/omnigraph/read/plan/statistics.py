"""What the planner believes about sizes: exact row counts from the snapshot, rough guesses for everything else.

The guesses only choose between plans that give the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from omnigraph.query import ir
from omnigraph.read.plan.block import Tables
from omnigraph.read.tables.reader import TableReader
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.schema.types import EnumType, Scalar, ScalarType

EQUALITY = 0.05
RANGE = 0.3
TEXT_PART = 0.1
SEARCH = 0.05
OTHER = 0.5
LISTED = 10
"""Values of a list of which nothing is known."""

STEPS_TO_DOUBLE = 2
"""Two counts are about the same when less than one of so many even steps from a count to its double lies between."""


def magnitude(rows: int) -> int:
    """The same for row counts that are about the same: no plan for one of them is a bad one for another."""
    return round(STEPS_TO_DOUBLE * math.log2(rows + 1))


@dataclass(frozen=True, slots=True)
class Statistics:
    """Row counts of one snapshot, and what the schema says about values."""

    catalog: Catalog
    reader: TableReader
    matching: Callable[[str, ir.TextMatch], float | None] = lambda table_key, match: None
    """How many rows of a table match a text predicate, where its index can tell at once."""
    lengths: Mapping[str, int] = field(default_factory=dict)
    """How many values the lists among the parameters have, roughly."""

    def rows(self, table_key: str) -> int:
        """Rows of a table."""
        return self.reader.row_count(table_key)

    def rows_of(self, tables: Tables) -> int:
        """Rows of all tables of a variable."""
        return sum(self.rows(table_key) for table_key in tables)

    def degree(self, edge: str, direction: ir.Direction) -> float:
        """Edges of a type per node that they can start from, on average."""
        edge_type = self.catalog.table(edge)
        edges = self.rows(edge)
        if edge_type is None or isinstance(edge_type, NodeType):
            return 1.0
        source, target = self.rows(f"node:{edge_type.source}"), self.rows(f"node:{edge_type.target}")
        if direction is ir.Direction.OUT:
            return edges / max(source, 1)
        if direction is ir.Direction.IN:
            return edges / max(target, 1)
        return 2 * edges / max(source, 1)

    def selectivity(self, table_key: str, predicate: ir.Expr) -> float:
        """The part of a table's rows for which a predicate is true, roughly."""
        rows = max(self.rows(table_key), 1)
        match predicate:
            case ir.Compare(op=ir.CompareOp.EQ, left=left, right=right):
                return max(self._equality(table_key, left), self._equality(table_key, right)) or EQUALITY
            case ir.Compare(op=ir.CompareOp.NE):
                return 1 - EQUALITY
            case ir.Compare():
                return RANGE
            case ir.In(item=item, items=ir.Literal(value=tuple(values))):
                return min(1.0, (self._equality(table_key, item) or EQUALITY) * len(values))
            case ir.In(item=item, items=items):
                length = self.lengths.get(items.name, LISTED) if isinstance(items, ir.Param) else LISTED
                return min(1.0, (self._equality(table_key, item) or EQUALITY) * length)
            case ir.IsNull(negated=negated):
                return 0.9 if negated else 0.1
            case ir.Contains() | ir.StartsWith() | ir.EndsWith() | ir.Matches():
                return TEXT_PART
            case ir.TextMatch():
                known = self.matching(table_key, predicate)
                return SEARCH if known is None else max(known, 1.0) / rows
            case ir.Not(item=item):
                return max(1 - self.selectivity(table_key, item), 1 / rows)
            case ir.And(items=items):
                product = 1.0
                for item in items:
                    product *= self.selectivity(table_key, item)
                return product
            case ir.Or(items=items):
                return min(1.0, sum(self.selectivity(table_key, item) for item in items))
            case _:
                return OTHER

    def _equality(self, table_key: str, operand: ir.Expr) -> float:
        """One over the number of values that an operand can have; 0 when it is no property."""
        if not isinstance(operand, ir.Prop):
            return 0.0
        rows = max(self.rows(table_key), 1)
        if is_identity(self.catalog, table_key, operand.column):
            return 1 / rows
        graph_type = self.catalog.table(table_key)
        known = graph_type.by_column.get(operand.column) if graph_type is not None else None
        if known is None:
            return EQUALITY
        if isinstance(known.type, EnumType):
            return 1 / len(known.type.values)
        if known.type == ScalarType(Scalar.BOOL):
            return 0.5
        return max(EQUALITY, 1 / rows)


def is_identity(catalog: Catalog, table_key: str, name: str) -> bool:
    """Whether at most one row has a given value in this column."""
    graph_type = catalog.table(table_key)
    if name == "id":
        return True
    return graph_type is not None and (graph_type.key == (name,) or (name,) in graph_type.uniques)


def text_matches(query: ir.ReadQuery) -> tuple[ir.TextMatch, ...]:
    """The text predicates of a query, wherever they stand."""
    found: dict[ir.TextMatch, None] = {}
    waiting: list[Any] = [query.root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ir.TextMatch):
            found[part] = None
        elif isinstance(part, tuple):
            waiting += part
        elif is_dataclass(part):
            waiting += [getattr(part, each.name) for each in fields(part)]
    return tuple(found)
