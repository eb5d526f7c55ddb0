"""A graph in plain Python, to replay what concurrent writers did one after the other. Shares no code with the store."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

SCHEMA = """
node Person {
    slug: String @key
    age: I64?
    mail: String? @unique
}

node City {
    slug: String @key
}

edge LivesIn: Person -> City @card(0..1)

edge Knows: Person -> Person {
    @key(src, dst)
}
"""

QUERIES = {
    "put_person": "query q($s: String, $a: I64, $m: String) { insert Person { slug: $s, age: $a, mail: $m } }",
    "swap_age": "query q($s: String, $a: I64, $b: I64) { update Person set { age: $b } where slug = $s and age = $a }",
    "set_mail": "query q($s: String, $m: String) { update Person set { mail: $m } where slug = $s }",
    "drop_person": "query q($s: String) { delete Person where slug = $s }",
    "put_city": "query q($s: String) { insert City { slug: $s } }",
    "drop_city": "query q($s: String) { delete City where slug = $s }",
    "move": "query q($s: String, $c: String) { insert LivesIn { from: $s, to: $c } }",
    "meet": "query q($s: String, $t: String) { insert Knows { from: $s, to: $t } }",
}

Operation = tuple[str, dict[str, Any]]
REFUSED = "refused"


def random_operation(dice: random.Random) -> Operation:
    """One mutation over few names, so that writers meet each other all the time."""
    person = lambda: f"p{dice.randrange(5)}"  # noqa: E731
    city = lambda: f"c{dice.randrange(3)}"  # noqa: E731
    mail = lambda: f"m{dice.randrange(4)}"  # noqa: E731
    age = lambda: dice.randrange(3)  # noqa: E731
    kind = dice.choice(sorted(QUERIES))
    values = {
        "put_person": lambda: {"s": person(), "a": age(), "m": mail()},
        "swap_age": lambda: {"s": person(), "a": age(), "b": age()},
        "set_mail": lambda: {"s": person(), "m": mail()},
        "drop_person": lambda: {"s": person()},
        "put_city": lambda: {"s": city()},
        "drop_city": lambda: {"s": city()},
        "move": lambda: {"s": person(), "c": city()},
        "meet": lambda: {"s": person(), "t": person()},
    }
    return kind, values[kind]()


@dataclass
class Model:
    """The state after some operations."""

    people: dict[str, tuple[int, str]] = field(default_factory=dict)
    cities: set[str] = field(default_factory=set)
    homes: dict[str, str] = field(default_factory=dict)
    knows: set[tuple[str, str]] = field(default_factory=set)

    def copy(self) -> Model:
        """Another one that is equal."""
        return Model(dict(self.people), set(self.cities), dict(self.homes), set(self.knows))

    def apply(self, operation: Operation) -> str | tuple[int, int]:
        """Do one operation: nodes and edges that it changed, or that it is refused."""
        kind, p = operation
        return getattr(self, f"_{kind}")(p)

    def _taken(self, mail: str, by_other_than: str) -> bool:
        return any(own == mail for slug, (_, own) in self.people.items() if slug != by_other_than)

    def _set_person(self, slug: str, row: tuple[int, str]) -> str | tuple[int, int]:
        if self.people.get(slug) == row:
            return 0, 0
        if self._taken(row[1], slug):
            return REFUSED
        self.people[slug] = row
        return 1, 0

    def _put_person(self, p: dict[str, Any]) -> str | tuple[int, int]:
        return self._set_person(p["s"], (p["a"], p["m"]))

    def _swap_age(self, p: dict[str, Any]) -> str | tuple[int, int]:
        if p["s"] not in self.people or self.people[p["s"]][0] != p["a"]:
            return 0, 0
        return self._set_person(p["s"], (p["b"], self.people[p["s"]][1]))

    def _set_mail(self, p: dict[str, Any]) -> str | tuple[int, int]:
        if p["s"] not in self.people:
            return 0, 0
        return self._set_person(p["s"], (self.people[p["s"]][0], p["m"]))

    def _drop_person(self, p: dict[str, Any]) -> str | tuple[int, int]:
        if self.people.pop(p["s"], None) is None:
            return 0, 0
        edges = {pair for pair in self.knows if p["s"] in pair}
        self.knows -= edges
        home = self.homes.pop(p["s"], None)
        return 1, len(edges) + (home is not None)

    def _put_city(self, p: dict[str, Any]) -> str | tuple[int, int]:
        if p["s"] in self.cities:
            return 0, 0
        self.cities.add(p["s"])
        return 1, 0

    def _drop_city(self, p: dict[str, Any]) -> str | tuple[int, int]:
        if p["s"] not in self.cities:
            return 0, 0
        self.cities.remove(p["s"])
        lost = [slug for slug, city in self.homes.items() if city == p["s"]]
        for slug in lost:
            del self.homes[slug]
        return 1, len(lost)

    def _move(self, p: dict[str, Any]) -> str | tuple[int, int]:
        if p["s"] not in self.people or p["c"] not in self.cities or p["s"] in self.homes:
            return REFUSED
        self.homes[p["s"]] = p["c"]
        return 0, 1

    def _meet(self, p: dict[str, Any]) -> str | tuple[int, int]:
        if p["s"] not in self.people or p["t"] not in self.people:
            return REFUSED
        if (p["s"], p["t"]) in self.knows:
            return 0, 0
        self.knows.add((p["s"], p["t"]))
        return 0, 1
