"""One run of a query: the snapshot's tables, the parameters, the limits, and the spaces its variables live in."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.provider import EmbeddingProvider
from omnigraph.query import ir
from omnigraph.query.predicates import bound, leaves
from omnigraph.read.codes.arrays import Codes, Mask, bytes_taken
from omnigraph.read.state.control import MemoryBudget, StopSign
from omnigraph.read.state.frame import EntityCodes, Frame
from omnigraph.read.state.profile import Profile
from omnigraph.read.state.spaces import EdgeRowSpace, GrowingSpace, SortedSpace, Space
from omnigraph.read.state.union import UnionSpace, over_present
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import TableReader
from omnigraph.read.tables.values import evaluate, true_mask
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import OWN_COLUMNS, Catalog, NodeType
from omnigraph.schema.types import EntityType, is_text


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
    variables: Mapping[str, tuple[str, ...]]
    """The tables that each variable ranges over."""
    text_truth: Callable[[Run, ir.TextMatch, str, Codes], pa.Array]
    """Whether texts match, for predicates that stand among others; given by the search room, which is above this."""
    in_memory: frozenset[str] = frozenset()
    """Tables whose entities are numbered as a whole: those that a compressed adjacency or a text index speaks of."""
    csr_edges: frozenset[str] = frozenset()
    """Edge tables that are followed in memory."""
    carried: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The properties of each variable that are worth reading along with its scan."""
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The properties of each variable that the result shows."""
    provider: EmbeddingProvider | None = None
    _spaces: dict[str, Space] = field(default_factory=dict)
    _unions: dict[tuple[str, ...], UnionSpace] = field(default_factory=dict)
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

    def entities(self, tables: tuple[str, ...]) -> Space | UnionSpace:
        """Where the entities of some tables are."""
        if len(tables) == 1:
            return self.space(tables[0])
        found = self._unions.get(tables)
        if found is None:
            found = self._unions[tables] = UnionSpace(tables, [self.space(table_key) for table_key in tables])
        return found

    def ids(self, tables: tuple[str, ...], codes: Codes) -> pa.Array:
        """The ids behind codes, null for no entity."""
        return over_present(codes, lambda present: [self.entities(tables).ids(present)])[0]

    def values(self, tables: tuple[str, ...], codes: Codes, props: Sequence[ir.Prop]) -> list[pa.Array]:
        """Properties of entities, null for no entity."""
        space = self.entities(tables)
        if isinstance(space, UnionSpace):
            return over_present(
                codes, lambda present: space.by_table(present, lambda key, part: self._values_in(key, part, props))
            )
        return over_present(codes, lambda present: space.columns(present, [prop.column for prop in props]))

    def has(self, table_key: str, leaf: ir.Prop | ir.TextMatch) -> bool:
        """Whether entities of a table have a property. A variable can be narrowed inside a block to types that do."""
        type_ = self.catalog.table(table_key)
        assert type_ is not None
        if isinstance(leaf, ir.TextMatch):
            return ir.searched_column(leaf) in type_.by_column
        found = type_.by_column.get(leaf.column)
        return leaf.column in OWN_COLUMNS if found is None else found.type == leaf.type

    def _values_in(self, table_key: str, codes: Codes, props: Sequence[ir.Prop]) -> list[pa.Array]:
        """Properties of entities of one table, null where its type has none of that name and type."""
        there = [prop for prop in props if self.has(table_key, prop)]
        found = dict(zip(there, self.space(table_key).columns(codes, [prop.column for prop in there]), strict=True))
        return [found[prop] if prop in found else _nothing(prop, len(codes)) for prop in props]

    def type_names(self, tables: tuple[str, ...], codes: Codes) -> pa.Array:
        """The names of the types of entities, null for no entity."""
        space = self.entities(tables)
        if isinstance(space, UnionSpace):
            return over_present(codes, lambda present: [space.type_names(present)])[0]
        name = pa.scalar(tables[0].split(":", 1)[1], pa.string())
        return over_present(codes, lambda present: [pa.repeat(name, len(present))])[0]

    def order(self, tables: tuple[str, ...], codes: Codes) -> Codes:
        """Integers that sort as the ids do, no entity first."""
        missing = codes < 0
        if not missing.any():
            return self.entities(tables).order(codes)
        order = np.full(len(codes), -1, dtype=np.int64)
        order[~missing] = self.entities(tables).order(codes[~missing])
        return order

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

    def evaluate_in(self, expr: ir.Expr, table_key: str, codes: Codes) -> pa.Array:
        """The value of an expression over one variable for entities of one table."""
        expr = self.bind(expr)
        props = [leaf for leaf in dict.fromkeys(leaves(expr)) if isinstance(leaf, ir.Prop | ir.Entity | ir.TextMatch)]
        plain = [leaf for leaf in props if isinstance(leaf, ir.Prop)]
        columns: dict[ir.Expr, pa.Array] = dict(zip(plain, self._values_in(table_key, codes, plain), strict=True))
        for leaf in props:
            if isinstance(leaf, ir.Entity):
                columns[leaf] = self.space(table_key).ids(codes)
            elif isinstance(leaf, ir.TextMatch):
                columns[leaf] = self._text_truth_in(leaf, table_key, codes)
        return evaluate(expr, len(codes), lambda leaf: columns[leaf])

    def mask(self, expr: ir.Expr, frame: Frame) -> Mask:
        """The rows for which a predicate is true, neither false nor unknown."""
        return true_mask(self.evaluate(expr, frame))

    def _leaf_columns(self, expr: ir.Expr, frame: Frame) -> dict[ir.Expr, pa.Array]:
        wanted: dict[str, list[ir.Prop]] = {}
        columns: dict[ir.Expr, pa.Array] = {}
        for leaf in dict.fromkeys(leaves(expr)):
            match leaf:
                case ir.Prop(var=var):
                    wanted.setdefault(var, []).append(leaf)
                case ir.Entity(var=var):
                    columns[leaf] = self.ids(self.variables[var], frame.bindings[var])
                case ir.TypeOf(var=var):
                    columns[leaf] = self.type_names(self.variables[var], frame.bindings[var])
                case ir.PathValue(var=var, part=part):
                    columns[leaf] = path_part(frame.columns[var], part)
                case ir.TextMatch():
                    columns[leaf] = self._text_truth(leaf, frame.bindings[leaf.var])
                case ir.ColumnRef(name=name):
                    computed = frame.columns[name]
                    columns[leaf] = (
                        self.ids(computed.tables, computed.codes) if isinstance(computed, EntityCodes) else computed
                    )
                case _:
                    pass
        for var, props in wanted.items():
            values = self.values(self.variables[var], frame.bindings[var], props)
            columns.update(zip(props, values, strict=True))
        self.memory.expect("the values of properties", sum(bytes_taken(column) for column in columns.values()))
        return columns

    def _text_truth(self, match: ir.TextMatch, codes: Codes) -> pa.Array:
        space = self.entities(self.variables[match.var])
        if isinstance(space, UnionSpace):
            return over_present(
                codes,
                lambda present: space.by_table(present, lambda key, part: [self._text_truth_in(match, key, part)]),
            )[0]
        table_key = self.variables[match.var][0]
        return over_present(codes, lambda present: [self.text_truth(self, match, table_key, present)])[0]

    def _text_truth_in(self, match: ir.TextMatch, table_key: str, codes: Codes) -> pa.Array:
        if not self.has(table_key, match):
            return pa.nulls(len(codes), pa.bool_())
        return self.text_truth(self, match, table_key, codes)

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
    return name if is_text(node_type.by_column[name].type) else None


def _nothing(prop: ir.Prop, count: int) -> pa.Array:
    assert not isinstance(prop.type, EntityType)
    return pa.nulls(count, arrow_type(prop.type))


def path_part(path: pa.StructArray, part: ir.PathPart) -> pa.Array:
    """The hops, the nodes or the edges of paths."""
    return pc.struct_field(path, part.value)
