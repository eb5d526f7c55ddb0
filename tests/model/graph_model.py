"""The simplest graph that could be right: dictionaries, and the rules written out one by one."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

SCHEMA = """
node Person {
    slug: String @key
    age: I32?
    mail: String? @unique
    nick: String @default("none")
    @range(age, 0..99)
}

node Place {
    name: String @key
}

edge Knows: Person -> Person {
    since: I32?
    @key(src, dst)
}

edge LivesIn: Person -> Place @card(0..1) {
    rooms: I32?
    @unique(src, dst)
}
"""

PEOPLE = ("a", "b", "c", "d", "e")
PLACES = ("x", "y", "z")
TABLES = ("node:Person", "node:Place", "edge:Knows", "edge:LivesIn")

Row = dict[str, Any]


class Refused(Exception):
    """The model says that the write breaks a rule."""


@dataclass
class GraphModel:
    """Rows by table and key: the key of an edge is its pair of ends."""

    tables: dict[str, dict[Any, Row]] = field(default_factory=lambda: {table: {} for table in TABLES})

    def copy(self) -> GraphModel:
        return GraphModel(copy.deepcopy(self.tables))

    def upsert(self, table: str, row: Row) -> None:
        """Merge the given values into the row of the same key, or add it with its defaults."""
        key = _key(table, row)
        old = self.tables[table].get(key, _blank(table))
        self.tables[table][key] = {**old, **row}

    def append(self, table: str, row: Row) -> None:
        if _key(table, row) in self.tables[table]:
            raise Refused("the key exists")
        self.upsert(table, row)

    def update(self, table: str, where: Any, **values: Any) -> None:
        for row in self.tables[table].values():
            if where(row):
                row.update(values)

    def delete(self, table: str, where: Any) -> None:
        gone = [key for key, row in self.tables[table].items() if where(row)]
        for key in gone:
            del self.tables[table][key]
        if table.startswith("node:"):
            for edges, source, target in _EDGES:
                self.tables[edges] = {
                    key: row
                    for key, row in self.tables[edges].items()
                    if not (source == table and row["src"] in gone) and not (target == table and row["dst"] in gone)
                }

    def check(self) -> None:
        """Raise Refused when the graph is not a valid one."""
        people = self.tables["node:Person"]
        if any(row["age"] is not None and not 0 <= row["age"] <= 99 for row in people.values()):
            raise Refused("range")
        mails = Counter(row["mail"] for row in people.values() if row["mail"] is not None)
        if any(count > 1 for count in mails.values()):
            raise Refused("unique")
        for edges, source, target in _EDGES:
            for row in self.tables[edges].values():
                if row["src"] not in self.tables[source] or row["dst"] not in self.tables[target]:
                    raise Refused("ends")
        homes = Counter(row["src"] for row in self.tables["edge:LivesIn"].values())
        if any(count > 1 for count in homes.values()):
            raise Refused("cardinality")


_EDGES = (("edge:Knows", "node:Person", "node:Person"), ("edge:LivesIn", "node:Person", "node:Place"))
_BLANKS: dict[str, Row] = {
    "node:Person": {"age": None, "mail": None, "nick": "none"},
    "node:Place": {},
    "edge:Knows": {"since": None},
    "edge:LivesIn": {"rooms": None},
}


def _blank(table: str) -> Row:
    return dict(_BLANKS[table])


def _key(table: str, row: Row) -> Any:
    if table.startswith("edge:"):
        return (row["src"], row["dst"])
    return row["slug"] if table == "node:Person" else row["name"]
