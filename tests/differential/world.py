"""Random schemas, random rows for them, and random histories that leave a graph in a certain physical state.

Values come from small pools, so that joins find partners and sorts have ties. Property names are shared by all types,
so that one name means different things on different variables.
"""

from __future__ import annotations

import datetime
import random
import struct
from typing import Any

from tests.differential.keys import CHOICES, IDS, KEY_VALUES, key_properties, key_text, spelled
from tests.differential.rows import Branch, Compact, Delete, Index, Load, Row, Step, Tables, World
from tests.differential.types import EdgeType, Interface, NodeType, Property, Schema, item_of

NODE_NAMES = ("Person", "Team", "Doc")
EDGE_NAMES = ("Knows", "MemberOf", "Likes", "PartOf")
# Some are words of the language; all may stand where a property may.
PROPERTY_NAMES = (
    "age",
    "size",
    "note",
    "count",
    "order",
    "day",
    "tags",
    "flag",
    "type",
    "level",
    "at",
    "id",
    "src",
    "dst",
)
UTC = datetime.UTC

POOLS: dict[str, tuple[Any, ...]] = {
    "String": ("", "a", "ab", "B", "é", "%", "a_b", 'say "x"', "\U0001d11e", "graph night", "Graph engines", "light"),
    "Bool": (True, False),
    "I32": (-1, 0, 1, 2, 18, 2**31 - 1),
    "I64": (-1, 0, 1, 2, 18, 2**53, 2**53 + 1, -(2**62)),
    "U32": (0, 1, 2, 18, 2**32 - 1),
    "U64": (0, 1, 2, 18, 2**53 + 1, 2**63, 2**64 - 1),
    "F32": (-0.5, 0.0, 0.25, 1.0, 2.0, 0.1, 18.5),
    "F64": (-0.5, 0.0, 0.1, 0.25, 1.0, 2.0, 18.5, 2.0**53, 1e15),
    "Date": (datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), datetime.date(2026, 1, 2)),
    "DateTime": (
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        datetime.datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC),
    ),
    "enum": CHOICES,
    "Vector": ([1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [-1.0, 1.0]),
}
PROPERTY_TYPES = (*POOLS, "I32", "I64", "String", "F64", "[String]", "[I64]", "[Date]")


def values_of(type_: str) -> tuple[Any, ...]:
    """The pool of a type that is not a list."""
    return POOLS[type_]


def stored(value: Any, type_: str) -> Any:
    """The value as the type keeps it: 32-bit floats are rounded."""
    return struct.unpack("<f", struct.pack("<f", value))[0] if type_ == "F32" and value is not None else value


class Making:
    """Makes one world. Everything follows from the random source."""

    def __init__(self, rng: random.Random, *, interfaces: bool = False) -> None:
        self.rng = rng
        self.interfaces = interfaces
        self.fresh = 0
        self.nodes: dict[str, NodeType] = {}

    # --- schemas

    def schema(self) -> Schema:
        """A random schema."""
        rng = self.rng
        nodes = [self._node(name) for name in NODE_NAMES[: rng.choice((1, 2, 2, 3))]]
        interfaces: tuple[Interface, ...] = ()
        if self.interfaces and rng.random() < 0.7:
            interfaces, nodes = self._interfaces(nodes)
        names = [node.name for node in nodes]
        self.nodes = {node.name: node for node in nodes}
        edges = []
        for name in EDGE_NAMES[: rng.randint(1, len(EDGE_NAMES))]:
            source = rng.choice(names)
            target = source if rng.random() < 0.5 else rng.choice(names)
            properties = self._properties(rng.randint(0, 3), edge=True)
            keyed = rng.random() < 0.25
            key = key_properties(rng) if keyed and rng.random() < 0.5 else ()
            names_of_key = tuple(each.name for each in key)
            edges.append(EdgeType(name, source, target, (*key, *properties), keyed, names_of_key))
        return Schema(tuple(nodes), tuple(edges), interfaces)

    def _interfaces(self, nodes: list[NodeType]) -> tuple[tuple[Interface, ...], list[NodeType]]:
        """One interface or two; a property that both have is one property of a node with both."""
        label, rank, stamp = (Property(*each) for each in (("label", "String"), ("rank", "I32"), ("stamp", "DateTime")))
        made = [Interface("Thing", (label, rank)[: self.rng.randint(1, 2)])]
        if self.rng.random() < 0.4:
            made.append(Interface("Ranked", (stamp, rank)))
        changed = []
        for node in nodes:
            chosen = [each for each in made if self.rng.random() < 0.7]
            shared = dict.fromkeys(prop for each in chosen for prop in each.properties)
            names = tuple(each.name for each in chosen)
            changed.append(NodeType(node.name, (*node.properties, *shared), node.key, names))
        return tuple(made), changed

    def _node(self, name: str) -> NodeType:
        rng = self.rng
        properties = self._properties(rng.randint(2, 6), edge=False)
        key = key_properties(rng)
        return NodeType(name, (*key, *properties), tuple(each.name for each in key))

    def _properties(self, count: int, *, edge: bool) -> tuple[Property, ...]:
        rng = self.rng
        names = rng.sample(PROPERTY_NAMES, count)
        made = []
        for name in names:
            type_ = rng.choice(PROPERTY_TYPES)
            if edge and type_ == "Vector":
                type_ = "I32"
            choices = CHOICES if type_ == "enum" else ()
            index = type_ not in ("Vector",) and item_of(type_) is None and rng.random() < 0.25
            made.append(Property(name, type_, rng.random() < 0.8, index, choices))
        return tuple(made)

    # --- rows

    def rows(self, schema: Schema) -> tuple[Row, ...]:
        """A graph: few nodes, many edges between them, parallel ones and self-loops included, some tables empty."""
        tables: Tables = {}
        for node in schema.nodes:
            count = 0 if self.rng.random() < 0.05 else self.rng.randint(1, 6)
            kind = f"node:{node.name}"
            tables[kind] = {row.id: row for row in (self.node_row(node, tables.get(kind, {})) for _ in range(count))}
        for edge in schema.edges:
            count = 0 if self.rng.random() < 0.08 else self.rng.randint(2, 12)
            found = (self.edge_row(edge, tables) for _ in range(count))
            tables[f"edge:{edge.name}"] = {row.id: row for row in found if row is not None}
        return tuple(row for table in tables.values() for row in table.values())

    def values(self, properties: tuple[Property, ...]) -> dict[str, Any]:
        """A value for each property; a third of those that may be null are."""
        return {each.name: self.value(each) for each in properties}

    def value(self, prop: Property) -> Any:
        """A value of one property."""
        rng = self.rng
        if prop.nullable and rng.random() < 0.3:
            return None
        item = item_of(prop.type)
        if item is not None:
            return [stored(rng.choice(POOLS[item][:5]), item) for _ in range(rng.randint(0, 3))]
        return stored(rng.choice(POOLS[prop.type]), prop.type)

    def node_row(self, node: NodeType, _there: dict[str, Row]) -> Row:
        """A node; of a keyed type perhaps one that is there already."""
        values = self.values(node.properties)
        for name in node.key:
            type_ = next(each.type for each in node.properties if each.name == name)
            values[name] = self.rng.choice(KEY_VALUES[type_])
        id_ = key_text([values[name] for name in node.key]) if node.key else self.rng.choice(IDS)
        return Row(f"node:{node.name}", id_, tuple(values.items()))

    def edge_row(self, edge: EdgeType, tables: Tables) -> Row | None:
        """An edge between nodes that are there."""
        sources, targets = list(tables[f"node:{edge.source}"]), list(tables[f"node:{edge.target}"])
        if not sources or not targets:
            return None
        src, dst = self.rng.choice(sources), self.rng.choice(targets)
        if edge.source == edge.target and self.rng.random() < 0.12:
            dst = src
        self.fresh += 1
        values = self.values(edge.properties)
        for prop in edge.properties:
            if prop.name in edge.key:
                values[prop.name] = self.rng.choice(KEY_VALUES[prop.type])
        id_ = f"{edge.name[0]}{self.rng.randint(0, 9)}{self.fresh}"
        if edge.keyed:
            id_ = key_text([src, dst, *(values[name] for name in edge.key)])
        ends = ((edge.source, src), (edge.target, dst))
        source, target = (
            spelled(self.rng, self.nodes[name], end, dict(tables[f"node:{name}"][end].values)) for name, end in ends
        )
        return Row(f"edge:{edge.name}", id_, tuple(values.items()), src, dst, (source, target))

    # --- histories

    def states(self) -> list[World]:
        """One graph in the states it goes through, each the one before with more steps."""
        schema = self.schema()
        first = World(schema, (Load(self.rows(schema)),))
        indexed = first.then(Index())
        partial = indexed.then(*self.changes(indexed))
        compacted = partial.then(Compact())
        branch = compacted.then(Branch("side"))
        return [first, indexed, partial, compacted, branch.then(*self.changes(branch))]

    def changes(self, world: World) -> list[Step]:
        """Some rows more, some changed, some gone."""
        schema, rng = world.schema, self.rng
        steps: list[Step] = []
        tables = world.tables()
        gone = [row for table in tables.values() for row in table.values() if rng.random() < 0.08]
        steps.extend(Delete(row.kind, row.id) for row in gone[:3])
        tables = world.then(*steps).tables()
        rows: dict[tuple[str, str], Row] = {}
        for node in schema.nodes:
            for _ in range(rng.randint(0, 2)):
                row = self.node_row(node, tables[f"node:{node.name}"])
                rows[row.kind, row.id] = row
                tables[row.kind][row.id] = row
        for edge in schema.edges:
            for _ in range(rng.randint(0, 3)):
                found = self.edge_row(edge, tables)
                if found is not None:
                    rows[found.kind, found.id] = found
        return [*steps, Load(tuple(rows.values()))]
