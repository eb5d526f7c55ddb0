"""Random writes, good and bad, for a schema with every kind of rule. It shares no code with the product."""

from __future__ import annotations

import json
import math
import random
from typing import Any

from tests.model.write_model import Graph, Model, Prop, Row, Type

SCHEMA = """
node Person {
    slug: String @key
    age: I32?
    status: enum(active, retired)?
    mail: String? @unique
    name: String?
    level: I64?
    born: Date?
    seen: DateTime?
    rate: F64?
    small: F32?
    big: U64?
    tags: [I32]?
    shape: Vector(2)?
    flag: Bool
    rank: I32 @default(3)
    @unique(name, level)
    @range(age, 0..9)
    @check(slug, "[a-z]+[0-9]*")
}
node Day { day: Date @key  note: String? }
node Pair { a: String  n: I32  extra: String?  @key(a, n) }
node Note { text: String  code: I64? @unique }
node Mark {
    moment: DateTime
    weight: F64
    fine: Bool
    half: F64?
    when: DateTime? @unique
    count: U32?
    words: [String]?
    label: String?
    @key(moment, weight, fine)
    @range(half, -1.5..)
    @range(count, ..7)
    @check(label, "[^x]*|xx")
}
edge Knows: Person -> Person { w: F64? }
edge Wrote: Person -> Note @card(0..2) { at: Date?  @unique(src, dst) }
edge Born: Person -> Day { tag: enum(x, y)  more: String?  @key(src, dst, tag) }
edge Holds: Pair -> Person @card(2..3) { n: I32? @unique }
edge Marked: Mark -> Mark @card(0..3) {
    degree: F64
    since: DateTime?
    why: String?
    @key(src, dst, degree)
    @unique(src, since)
}
"""

MODEL = Model(
    [
        Type(
            "Person",
            {
                "slug": Prop("String", required=True, pattern="[a-z]+[0-9]*"),
                "age": Prop("I32", low=0, high=9),
                "status": Prop("enum", values=("active", "retired")),
                "mail": Prop("String"),
                "name": Prop("String"),
                "level": Prop("I64"),
                "born": Prop("Date"),
                "seen": Prop("DateTime"),
                "rate": Prop("F64"),
                "small": Prop("F32"),
                "big": Prop("U64"),
                "tags": Prop("[I32]"),
                "shape": Prop("Vector", dim=2),
                "flag": Prop("Bool", required=True),
                "rank": Prop("I32", required=True, default=3),
            },
            key=("slug",),
            uniques=(("mail",), ("name", "level")),
        ),
        Type("Day", {"day": Prop("Date", required=True), "note": Prop("String")}, key=("day",)),
        Type(
            "Pair",
            {"a": Prop("String", required=True), "n": Prop("I32", required=True), "extra": Prop("String")},
            key=("a", "n"),
        ),
        Type("Note", {"text": Prop("String", required=True), "code": Prop("I64")}, uniques=(("code",),)),
        Type("Knows", {"w": Prop("F64")}, ends=("Person", "Person")),
        Type("Wrote", {"at": Prop("Date")}, uniques=(("src", "dst"),), ends=("Person", "Note"), card=(0, 2)),
        Type(
            "Born",
            {"tag": Prop("enum", required=True, values=("x", "y")), "more": Prop("String")},
            key=("src", "dst", "tag"),
            ends=("Person", "Day"),
        ),
        Type("Holds", {"n": Prop("I32")}, uniques=(("n",),), ends=("Pair", "Person"), card=(2, 3)),
        Type(
            "Mark",
            {
                "moment": Prop("DateTime", required=True),
                "weight": Prop("F64", required=True),
                "fine": Prop("Bool", required=True),
                "half": Prop("F64", low=-1.5),
                "when": Prop("DateTime"),
                "count": Prop("U32", high=7),
                "words": Prop("[String]"),
                "label": Prop("String", pattern="[^x]*|xx"),
            },
            key=("moment", "weight", "fine"),
            uniques=(("when",),),
        ),
        Type(
            "Marked",
            {"degree": Prop("F64", required=True), "since": Prop("DateTime"), "why": Prop("String")},
            key=("src", "dst", "degree"),
            uniques=(("src", "since"),),
            ends=("Mark", "Mark"),
            card=(0, 3),
        ),
    ]
)

_SLUGS = ["a", "b", "c", "d1"]
_DAYS = ["2026-01-02", "0001-01-01", "9999-12-31", "2024-02-29"]
_GOOD: dict[str, list[Any]] = {
    "slug": _SLUGS,
    "age": [0, 9, 5],
    "status": ["active", "retired"],
    "mail": ["m1", "m2", "", "ä"],
    "name": ["n1", "n2"],
    "level": [1, 2, "3", -(2**63), 2**63 - 1],
    "born": _DAYS,
    "seen": [
        "2026-01-02T03:04:05Z",
        "2026-01-02T05:04:05.250+02:00",
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
    ],
    "rate": [0.5, 1, 2**53, -1e300, 5e-324],
    "small": [0.5, 1, 2**24, 3e38, 1e-45],
    "big": [0, 2**64 - 1, "7"],
    "tags": [[], [1, 2], [2**31 - 1]],
    "shape": [[0.5, 1], [-1.5, 3]],
    "flag": [True, False],
    "rank": [1, 2],
    "day": _DAYS,
    "note": ["t", "u"],
    "a": ["p", 'q"'],
    "n": [1, -2, 3],
    "extra": ["e"],
    "text": ["t1", "t2"],
    "code": [1, 2, "5"],
    "w": [0.25, 3],
    "at": _DAYS,
    "tag": ["x", "y"],
    "more": ["m"],
    "moment": ["2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05.600Z"],
    "weight": [-0.0, 1, 1e10, 5e-324, 0.1],
    "fine": [True, False],
    "half": [-1.5, 0.25, 1e300],
    "when": ["2026-01-02T03:04:05Z", "2026-01-02T05:04:05.000+02:00", "1969-12-31T23:59:59.999999Z"],
    "count": [0, 7],
    "words": [[], ["a", ""]],
    "label": ["", "ä\nb", "xx"],
    "degree": [0.5, 2, -1.5e-7],
    "since": ["2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00"],
    "why": ["w"],
}
_BAD: dict[str, list[Any]] = {
    "slug": ["BAD!", "", 5, True],
    "age": [-1, 10, 2**31, 1.5, "5", True],
    "status": ["gone", 5],
    "mail": [5, ["m1"]],
    "name": [False],
    "level": [2**63, "x", "01", 1.0],
    "born": ["2026-02-30", "2026-1-1", 5, "0000-01-01", "2026-01-02T00:00:00Z"],
    "seen": ["2026-01-02T03:04:05", "2026-01-02T03:04:05.1234567Z", 5, "9999-12-31T23:59:59-01:00"],
    "rate": [2**53 + 1, "1.5", True],
    "small": [1e-60, 1e39, 2**24 + 1, "x"],
    "big": [-1, 2**64],
    "tags": [[1, None], 5, [2**31], ["1"]],
    "shape": [[1.0], [1, 2, 3], [1.0, "x"], [1.0, None], [1e-60, 1]],
    "flag": [0, "true"],
    "rank": ["1"],
    "day": ["2026-13-01", 5],
    "note": [5],
    "a": [5],
    "n": ["1"],
    "extra": [{}],
    "text": [5, None],
    "code": [1.5],
    "w": ["1"],
    "at": ["soon"],
    "tag": ["z", 5],
    "more": [5],
    "moment": ["2026-01-02T03:04:05", 5, None],
    "weight": [2**53 + 1, "1", True],
    "fine": ["true", 1],
    "half": [-1.6, "0.5"],
    "when": ["2026-01-02", 0],
    "count": [8, -1, 2**32],
    "words": [["a", None], "a", [1]],
    "label": ["x", "axb", "xxx", 5],
    "degree": ["0.5", None],
    "since": ["now"],
    "why": [[]],
}
_MALFORMED: list[Any] = [
    5,
    [],
    "x",
    {},
    {"type": "Person", "edge": "Knows"},
    {"data": {}},
    {"type": "Nobody"},
    {"edge": 5},
    {"type": "Note", "data": 5},
    {"type": "Note", "id": "i", "data": {"id": "j", "text": "t"}},
]


class Writes:
    """Random writes over a graph; `bad` is how likely a part is to be wrong."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def records(self, graph: Graph, bad: float) -> list[Any]:
        """Records of a load."""
        count = self.random.choice([0, 1, 1, 2, 3, 5, 8])
        return [
            self.random.choice(_MALFORMED) if self.chance(bad / 8) else self._record(graph, bad) for _ in range(count)
        ]

    def only(self, graph: Graph, table: str, bad: float) -> list[Any]:
        """Records of one table, which an overwrite can take without touching the others."""
        return [self._record(graph, bad, table) for _ in range(self.random.choice([1, 2, 4]))]

    def alike(self, graph: Graph, table: str, bad: float) -> list[Any]:
        """Records of one table that all say the same properties, with values of their types: rows of a table."""
        type_ = MODEL.types[table]
        names = [name for name, prop in type_.props.items() if self.chance(0.4 if not prop.required else 1 - bad / 6)]
        made = []
        for _ in range(self.random.choice([1, 2, 4, 6])):
            record: Row = {"type" if not type_.ends else "edge": type_.name}
            for key, node in zip(("from", "to"), type_.ends or ()):
                there = sorted(graph[f"node:{node}"])
                record[key] = self.random.choice(there) if there and not self.chance(bad / 4) else "nobody"
            nullable = {name: not type_.props[name].required or self.chance(bad / 6) for name in names}
            record["data"] = {name: self._typed(name, bad, nullable=nullable[name]) for name in names}
            made.append(record)
        return made

    def _record(self, graph: Graph, bad: float, table: str | None = None) -> Row:
        type_ = MODEL.types[table or self.random.choice(list(MODEL.types))]
        data = {}
        for name, prop in type_.props.items():
            needed = prop.required and prop.default is None
            if self.chance(0.35 if not needed else 1 - bad / 6):
                data[name] = self._value(name, bad, nullable=not needed)
        record: Row = {"type" if not type_.ends else "edge": type_.name}
        if self.chance(bad / 10):
            data["zz"] = 1
        if not type_.key and self.chance(0.4):
            (data if self.chance(0.5) else record)["id"] = self.random.choice(["i1", "i2", "i3", 7])
        elif type_.key and self.chance(bad / 10):
            record["id"] = self.random.choice(["a", "2026-01-02", '["p", "1"]', "zz"])
        if type_.ends:
            for key, node in zip(("from", "to"), type_.ends):
                if not self.chance(bad / 10):
                    record[key] = self._end(graph, node, bad)
        if self.chance(bad / 10):
            record["extra"] = 1
        if data or self.chance(0.5):
            record["data"] = data
        keys = list(record)
        self.random.shuffle(keys)
        return {key: record[key] for key in keys}

    def _value(self, name: str, bad: float, *, nullable: bool) -> Any:
        if self.chance(bad / 4):
            return self.random.choice(_BAD[name])
        if nullable and self.chance(0.15):
            return None
        return self.random.choice(_GOOD[name])

    def _end(self, graph: Graph, node: str, bad: float) -> Any:
        """An id that exists, mostly; sometimes the value of the key, another spelling, or nothing that exists."""
        if self.chance(bad / 4):
            return self.random.choice(["nobody", 5, None, 1.5, True, ["x"], ["p", 1, 2]])
        there = sorted(graph[f"node:{node}"])
        if not there:
            return self.random.choice(_GOOD["slug" if node != "Day" else "day"])
        found = self.random.choice(there)
        if node == "Pair" and self.chance(0.5):
            parts = json.loads(found)
            return self.random.choice([json.dumps(parts, indent=1), [parts[0], int(parts[1])], parts])
        if node == "Mark" and self.chance(0.6):
            moment, weight, fine = json.loads(found)
            later = moment.replace("T03:", "T04:").replace("Z", "+01:00")
            values = [self.random.choice([moment, later]), float(weight), fine == "true"]
            return self.random.choice([values, json.dumps(values), [moment, weight, fine]])
        return found

    # --- mutations -----------------------------------------------------------------------------------------------

    def inserts(self, graph: Graph, bad: float) -> list[Any]:
        """Inserts and updates, in the model's form."""
        return [
            self._insert(graph, bad) if self.chance(0.75) else self._update(graph, bad)
            for _ in range(self.random.choice([1, 1, 2, 4]))
        ]

    def deletes(self, graph: Graph) -> list[Any]:
        """Deletes, in the model's form."""
        return [
            ("delete", table, self._where(graph, table))
            for table in self.random.sample(list(MODEL.types), self.random.choice([1, 1, 2]))
        ]

    def new_and_rows(self, graph: Graph, bad: float) -> list[Any]:
        """Inserts that must be new, and inserts of rows."""
        made = []
        for _ in range(self.random.choice([1, 2])):
            _, table, values = self._insert(graph, bad)
            if self.chance(0.5):
                made.append(("insert new", table, values))
                continue
            records = self.only(graph, table, bad)
            rows = [{**record.get("data", {}), **_beside(record)} for record in records]
            made.append(("insert rows", table, rows, self.chance(0.3)))
        return made

    def matched(self, graph: Graph) -> tuple[str, list[Any]]:
        """A mutation over a match as text, and what it means for the model."""
        people, knows = graph["node:Person"], graph["edge:Knows"]
        slug = self.random.choice(_SLUGS)
        pairs = {(row["src"], row["dst"]) for row in knows.values()}
        level = self.random.choice([0, 1, 2])
        return self.random.choice(
            [
                (
                    f"match {{ $p: Person  $p.rank > {level} }} update $p set {{ rank: $p.rank - 1 }}",
                    [
                        (
                            "update each",
                            "node:Person",
                            [(id_, {"rank": row["rank"] - 1}) for id_, row in people.items() if row["rank"] > level],
                        )
                    ],
                ),
                (
                    f"update Person set {{ age: coalesce(age, 0) + {level} }} where rank + 1 > {level + 2}",
                    [
                        (
                            "update each",
                            "node:Person",
                            [
                                (id_, {"age": (row["age"] or 0) + level})
                                for id_, row in people.items()
                                if row["rank"] + 1 > level + 2
                            ],
                        )
                    ],
                ),
                (
                    "match { $a knows $b } update $b set { name: $a.slug, level: null }",
                    [("update each", "node:Person", [(b, {"name": a, "level": None}) for a, b in pairs])],
                ),
                (
                    f'match {{ $a $w:knows $b  $a.slug = "{slug}" }} update $w set {{ w: 2.5 }}',
                    [
                        (
                            "update each",
                            "edge:Knows",
                            [(id_, {"w": 2.5}) for id_, row in knows.items() if row["src"] == slug],
                        )
                    ],
                ),
                (
                    f'match {{ $a $w:knows $b  $b.slug = "{slug}" }} delete $w',
                    [("delete each", "edge:Knows", {id_ for id_, row in knows.items() if row["dst"] == slug})],
                ),
                (
                    "match { $a: Person  $b: Person  $a.slug < $b.slug  $a.flag = $b.flag } "
                    "insert Knows { from: $a, to: $b, w: 1 }",
                    [
                        (
                            "insert each",
                            "edge:Knows",
                            [
                                {"src": a, "dst": b, "w": 1.0}
                                for a in people
                                for b in people
                                if a < b and people[a]["flag"] == people[b]["flag"]
                            ],
                        )
                    ],
                ),
                (
                    'match { $a: Person  $d: Day } insert Born { from: $a, to: $d, tag: "x", more: $d.note }',
                    [
                        (
                            "insert each",
                            "edge:Born",
                            [
                                {"src": a, "dst": d, "tag": "x", "more": row["note"]}
                                for a in people
                                for d, row in graph["node:Day"].items()
                            ],
                        )
                    ],
                ),
                (
                    'match { $a: Person } insert Pair { a: "m", n: $a.rank, extra: $a.mail }',
                    [
                        (
                            "insert each",
                            "node:Pair",
                            [{"a": "m", "n": row["rank"], "extra": row["mail"]} for row in people.values()],
                        )
                    ],
                ),
                (
                    "match { $a knows $b  not { $b knows $a } } delete $b",
                    [("delete each", "node:Person", {b for a, b in pairs if (b, a) not in pairs})],
                ),
            ]
        )

    def _typed(self, name: str, bad: float, *, nullable: bool) -> Any:
        """A value of the right type: it may break a rule, not the type, which is checked before anything runs."""
        if self.chance(bad / 4):
            odd = {"slug": "BAD!", "age": self.random.choice([-1, 10]), "status": "gone", "tag": "z", "count": 8}
            odd |= {"half": -2.5, "label": "x"}
            if name in odd:
                return odd[name]
        if nullable and self.chance(0.15):
            return None
        return self.random.choice(_GOOD[name])

    def _insert(self, graph: Graph, bad: float) -> Any:
        table = self.random.choice(list(MODEL.types))
        type_ = MODEL.types[table]
        values: Row = {}
        for name, prop in type_.props.items():
            needed = prop.required and prop.default is None
            if needed or self.chance(0.3):
                values[name] = self._typed(name, bad, nullable=not prop.required)
        if type_.ends:
            for end, node in zip(("src", "dst"), type_.ends):
                there = sorted(graph[f"node:{node}"])
                values[end] = self.random.choice(there) if there and not self.chance(bad / 4) else "nobody"
        elif not type_.key and self.chance(0.3):
            values["id"] = self.random.choice(["i1", "i2", "i4"])
        return ("insert", table, values)

    def _update(self, graph: Graph, bad: float) -> Any:
        table = self.random.choice(list(MODEL.types))
        type_ = MODEL.types[table]
        names = [name for name in type_.props if name not in type_.key]
        if not names:
            return self._insert(graph, bad)
        chosen = self.random.sample(names, self.random.choice([1, min(2, len(names))]))
        values = {name: self._typed(name, bad, nullable=not type_.props[name].required) for name in chosen}
        return ("update", table, values, self._where(graph, table))

    def _where(self, graph: Graph, table: str) -> Any:
        """A condition as a function and as text: `(function, text)`."""
        type_ = MODEL.types[table]
        ids = sorted(graph[table])
        choices = [(lambda id_, row: True, 'id != "never"')]
        if ids:
            id_ = self.random.choice(ids)
            choices.append((lambda found, row, id_=id_: found == id_, f"id = {literal(id_)}"))
        if type_.ends and ids:
            end = self.random.choice(["src", "dst"])
            one = graph[table][self.random.choice(ids)][end]
            choices.append(
                (
                    lambda found, row, end=end, one=one: row[end] == one,
                    f"{'from' if end == 'src' else 'to'} = {literal(one)}",
                )
            )
        simple = [name for name, prop in type_.props.items() if prop.type in ("String", "I32", "enum", "Date")]
        if simple:
            name = self.random.choice(simple)
            value = self.random.choice(_GOOD[name])
            text = f'date("{value}")' if type_.props[name].type == "Date" else literal(value)
            choices.append((lambda found, row, n=name, v=value: row[n] == v, f"{name} = {text}"))
            choices.append((lambda found, row, n=name: row[n] is None, f"{name} = null"))
        return self.random.choice(choices)


def _beside(record: Row) -> Row:
    """What stands beside the data of a record, as part of a plain row."""
    return {key: record[key] for key in ("id", "from", "to") if key in record}


_TYPES = {"enum": "String", "Vector": "Vector(2)"}


def mutation(statements: list[Any]) -> tuple[str, dict[str, Any]]:
    """The statements as a query text with a parameter for every value, and the values."""
    declared: list[str] = []
    params: dict[str, Any] = {}
    lines: list[str] = []

    def assigned(table: str, values: Row) -> str:
        parts = []
        for name, value in values.items():
            prop = MODEL.types[table].props.get(name)
            kind = "String" if prop is None else _TYPES.get(prop.type, prop.type)
            key = f"v{len(params)}"
            params[key] = value
            optional = "?" if prop is not None and not prop.required else ""
            declared.append(f"${key}: {kind}{optional}")
            parts.append(f"{ {'src': 'from', 'dst': 'to'}.get(name, name) }: ${key}")
        return ", ".join(parts)

    for statement in statements:
        name = statement[1].split(":")[1]
        match statement:
            case ("insert" | "insert new" as word, table, values):
                lines.append(f"{word} {name} {{ {assigned(table, values)} }}")
            case ("insert rows", _, rows, new):
                key = f"v{len(params)}"
                params[key] = rows
                declared.append(f"${key}: [{name}]")
                lines.append(f"insert {'new ' if new else ''}{name} from ${key}")
            case ("update", table, values, (_, text)):
                lines.append(f"update {name} set {{ {assigned(table, values)} }} where {text}")
            case ("delete", _, (_, text)):
                lines.append(f"delete {name} where {text}")
    return f"query q({', '.join(declared)}) {{ {' '.join(lines)} }}", params


def literal(value: Any) -> str:
    """A value as the query language writes it."""
    return json.dumps(value, ensure_ascii=False)


def is_json(value: Any) -> bool:
    """Whether a value can be written as JSON."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_json, value.values()))
    return not isinstance(value, list) or all(map(is_json, value))
