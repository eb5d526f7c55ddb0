"""One run of a query: the snapshot's tables, the parameters, the limits, and the spaces its variables live in."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.embed.provider import EmbeddingProvider
from omnigraph.query import ir
from omnigraph.query.predicates import bound, leaves
from omnigraph.read.codes.arrays import Mask
from omnigraph.read.state.control import MemoryBudget, StopSign
from omnigraph.read.state.frame import EntityCodes, Frame
from omnigraph.read.state.profile import Profile
from omnigraph.read.state.spaces import EdgeRowSpace, GrowingSpace, SortedSpace, Space
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import TableReader
from omnigraph.read.tables.values import evaluate, true_mask
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.schema.types import is_text


@dataclass(slots=True)
class Run:
    """The state of one execution. Nothing of it outlives the result."""

    reader: TableReader
    catalog: Catalog
    caches: ReadCaches
    parameters: Mapping[str, Any]
    now: datetime.datetime
    stop: StopSign
    memory: MemoryBudget
    profile: Profile
    tables: Mapping[str, str]
    in_memory: frozenset[str] = frozenset()
    """Tables whose entities are numbered as a whole: those that a compressed adjacency or a text index speaks of."""
    csr_edges: frozenset[str] = frozenset()
    """Edge tables that are followed in memory."""
    carried: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The properties of each variable that are worth reading along with its scan."""
    provider: EmbeddingProvider | None = None
    _spaces: dict[str, Space] = field(default_factory=dict)
    embedded: dict[tuple[str, int, str | None], Sequence[float]] = field(default_factory=dict)
    """Query texts that were embedded already."""

    def space(self, table_key: str) -> Space:
        """Where the entities of a table are."""
        found = self._spaces.get(table_key)
        if found is None:
            if table_key not in self.in_memory:
                found = GrowingSpace(self.reader, table_key, id_property(self.catalog, table_key))
            elif table_key.startswith("edge:"):
                found = EdgeRowSpace(self.reader, self.caches, table_key)
            else:
                found = SortedSpace(self.reader, self.caches, table_key, id_property(self.catalog, table_key))
            self._spaces[table_key] = found
        return found

    def space_of(self, var: str) -> Space:
        """Where the entities of a variable are."""
        return self.space(self.tables[var])

    def bind(self, expr: ir.Expr) -> ir.Expr:
        """The expression with parameters and `now()` replaced by their values."""
        return bound(expr, self.parameters, self.now)

    def constant(self, expr: ir.Expr) -> Any:
        """The value of an expression that looks at no row."""
        value = self.bind(expr)
        if not isinstance(value, ir.Literal):
            raise TypeError(f"{expr!r} is not constant")
        return value.value

    def evaluate(self, expr: ir.Expr, frame: Frame) -> pa.Array:
        """The value of an expression for each row."""
        expr = self.bind(expr)
        columns = self._leaf_columns(expr, frame)
        return evaluate(expr, frame.length, lambda leaf: columns[leaf])

    def mask(self, expr: ir.Expr, frame: Frame) -> Mask:
        """The rows for which a predicate is true, neither false nor unknown."""
        return true_mask(self.evaluate(expr, frame))

    def _leaf_columns(self, expr: ir.Expr, frame: Frame) -> dict[ir.Expr, pa.Array]:
        wanted: dict[str, list[ir.Prop]] = {}
        columns: dict[ir.Expr, pa.Array] = {}
        for leaf in leaves(expr):
            if isinstance(leaf, ir.Prop):
                wanted.setdefault(leaf.var, []).append(leaf)
            elif isinstance(leaf, ir.Entity):
                columns[leaf] = self.space_of(leaf.var).ids(frame.bindings[leaf.var])
            elif isinstance(leaf, ir.ColumnRef):
                computed = frame.columns[leaf.name]
                columns[leaf] = (
                    self.space(computed.table_key).ids(computed.codes)
                    if isinstance(computed, EntityCodes)
                    else computed
                )
        for var, props in wanted.items():
            names = [prop.name for prop in props]
            values = self.space_of(var).columns(frame.bindings[var], names)
            columns.update(zip(props, values, strict=True))
        self.memory.expect("the values of properties", sum(column.nbytes for column in columns.values()))
        return columns

    def hold(self, frame: Frame) -> Frame:
        """Note the memory that the bindings take now."""
        self.stop.check()
        self.memory.hold("bindings", frame.nbytes)
        return frame


def id_property(catalog: Catalog, table_key: str) -> str | None:
    """The property of a node type whose value is the id itself: its only key, when that is text."""
    node_type = catalog.table(table_key)
    if not isinstance(node_type, NodeType) or len(node_type.key) != 1:
        return None
    name = node_type.key[0]
    return name if is_text(node_type.by_name[name].type) else None
