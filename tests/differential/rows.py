"""Rows, the steps that write them, and the state of a graph after some steps: a model that knows nothing of storage."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tests.differential.printing import json_value
from tests.differential.types import EdgeType, NodeType, Schema


@dataclass(frozen=True)
class Row:
    """One node or edge. `kind` is `node:Person` or `edge:Knows`; `values` has every property, nulls too."""

    kind: str
    id: str
    values: tuple[tuple[str, Any], ...]
    src: str | None = None
    dst: str | None = None
    said: tuple[Any, Any] | None = field(default=None, compare=False)
    """How a load says the ends: by their ids if nothing else is given."""

    def record(self, schema: Schema) -> dict[str, Any]:
        """The row as a load takes it."""
        type_ = schema.find(self.kind)
        data = {name: json_value(value) for name, value in self.values}
        if isinstance(type_, NodeType):
            own = {"type": type_.name}
        else:
            assert isinstance(type_, EdgeType)
            source, target = self.said or (self.src, self.dst)
            own = {"edge": type_.name, "from": source, "to": target}
        if type_.keyed:
            return {**own, "data": data}
        # A property may be called `id`; then the row's own stands beside the data.
        return {**own, "id": self.id, "data": data} if "id" in data else {**own, "data": {"id": self.id, **data}}


@dataclass(frozen=True)
class Load:
    """Write rows, new ones and changed ones."""

    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Delete:
    """Delete a node, and with it the edges that touch it, or an edge."""

    kind: str
    id: str


@dataclass(frozen=True)
class Index:
    """Build the declared indexes."""


@dataclass(frozen=True)
class Compact:
    """Put small fragments together and bring indexes up to date."""


@dataclass(frozen=True)
class Branch:
    """Make a branch from where the graph is; everything after it happens there."""

    name: str


Step = Load | Delete | Index | Compact | Branch
Tables = dict[str, dict[str, Row]]


@dataclass(frozen=True)
class World:
    """A schema and how its graph came to be."""

    schema: Schema
    steps: tuple[Step, ...] = field(default=())

    def tables(self) -> Tables:
        """The rows that are there after all steps."""
        kinds = [f"node:{each.name}" for each in self.schema.nodes] + [f"edge:{e.name}" for e in self.schema.edges]
        tables: Tables = {kind: {} for kind in kinds}
        for step in self.steps:
            if isinstance(step, Load):
                for row in step.rows:
                    tables[row.kind][row.id] = row
            elif isinstance(step, Delete):
                without(self.schema, tables, step.kind, step.id)
        return tables

    def then(self, *steps: Step) -> World:
        """The world with more steps."""
        return replace(self, steps=(*self.steps, *steps))


def without(schema: Schema, tables: Tables, kind: str, id_: str) -> None:
    """Take a row out, of a node also the edges that touch it."""
    if tables[kind].pop(id_, None) is None or kind.startswith("edge:"):
        return
    name = kind.split(":")[1]
    for edge in schema.edges:
        table = tables[f"edge:{edge.name}"]
        for row in list(table.values()):
            if (edge.source == name and row.src == id_) or (edge.target == name and row.dst == id_):
                del table[row.id]
