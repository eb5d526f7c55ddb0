"""Answers that were wrong once, each as a user would ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.read.operators import group

SCHEMA = """
interface Named { name: String }
node Person implements Named { name: String @key  n: U32?  r: I32? }
node Team implements Named { name: String @key }
node Day { on: DateTime @key }
node Odd { name: String @key  id: String?  src: String? @index  dst: Vector(2)? }
node Seat { row: String  number: I64  @key(row, number)  free: Bool? }
edge Knows: Person -> Person
edge MemberOf: Person -> Team
edge Likes: Person -> Team
edge Next: Day -> Day
"""
ROWS = [
    {"type": "Person", "data": {"name": "b", "n": 2, "r": 5}},
    {"type": "Person", "data": {"name": "c"}},
    {"type": "Team", "data": {"name": "t"}},
    {"edge": "Knows", "from": "b", "to": "c"},
    {"type": "Day", "data": {"on": "2026-01-02T00:00:00Z"}},
    {"type": "Day", "data": {"on": "2026-01-03T00:00:00Z"}},
    {"type": "Seat", "data": {"row": "a", "number": 7}},
    {"type": "Odd", "data": {"name": "x", "id": "2", "src": "light", "dst": [1, 0]}},
    {"type": "Odd", "data": {"name": "y", "id": "3", "src": "no light", "dst": [1, 1]}},
    {"type": "Odd", "data": {"name": "z", "id": "1", "dst": [0, 1]}},
    {"edge": "Next", "from": "2026-01-02T00:00:00Z", "to": "2026-01-03T00:00:00Z"},
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    place: Path = tmp_path_factory.mktemp("answers")
    (place / "schema.pg").write_text(SCHEMA)
    with og.init(place / "graph.omni", schema=place / "schema.pg") as made:
        made.load(ROWS, mode="append")
        yield made


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # An `either` that starts from what another one binds was left out.
        (
            "match { either { $a knows $c } or { $c knows $a }  either { $f memberOf $m } or { $a memberOf $m } } "
            "return { $a.name }",
            [],
        ),
        # Numbers compare by value, whether or not the property could hold them.
        ("match { $a: Person  $a.r < 2147483648 } return { $a.name }", [("b",)]),
        ("match { $a: Person  $a.n > -1 } return { $a.name }", [("b",)]),
        ("match { $a: Person { r: 9000000000 } } return { $a.name }", []),
        ("match { $a: Person  $a.r in [5, 9000000000] } return { $a.name }", [("b",)]),
        # A number that is written out does not make a difference of small numbers unsigned.
        ("match { $a: Person  $a.n - 10 < 0 } return { $a.n - 10 as x }", [(-8,)]),
        # The name of a block is its own, also when a later `optional` has one like it.
        (
            "match { $c: Person  $c knows $t  not { $t likes $e }  optional { $e knows $c } } "
            "return { $c.name, $e.name }",
            [("b", None)],
        ),
        # `case` behind a comparison.
        ("match { $a: Person  $a.r < case { when $a.n = 2 then 6 else 0 } } return { $a.name }", [("b",)]),
        # A variable of an interface that is one of its types inside a block.
        ("match { $x: Named  exists { $x: Person  $x.r > 3 } } return { $x.name }", [("b",)]),
        ("match { $x: Named  not { $x: Person  $x.r > 3 } } return { $x.name }", [("c",), ("t",)]),
        (
            "match { $x: Named  either { $x: Team } or { $x: Person  $x.r = 5 } } return { $x.name, $x.@type as t }",
            [("b", "Person"), ("t", "Team")],
        ),
        (
            "match { $x: Named  optional { $x: Person  $x knows $y } } return { $x.name, $y.name }",
            [("b", "c"), ("c", None), ("t", None)],
        ),
        ("match { $x: Named  exists { $x: Person  exists { $x.r > 3 } } } return { $x.name }", [("b",)]),
        (
            "match { $x: Named  $y: Team  optional { $x: Person  $x.r > 3 or $y.name = $x.name  $x knows $z } } "
            "return { $x.name, $z.name }",
            [("b", "c"), ("c", None), ("t", None)],
        ),
        # Properties that are called as the entity's own fields.
        ("match { $o: Odd } return { $o.name } order { $o.id desc }", [("y",), ("x",), ("z",)]),
        ("match { $o: Odd } return { $o.id, count($o) as n }", [("1", 1), ("2", 1), ("3", 1)]),
        ('match { $o: Odd } return { $o.name } order { bm25($o.src, "light") }', [("x",), ("y",)]),
        ('match { $o: Odd  search($o.src, "no") } return { $o.@id as i }', [("y",)]),
        ('match { $o: Odd  not search($o.src, "no") } return { $o.@id as i }', [("x",)]),
        ("match { $o: Odd } return { $o.name } order { nearest($o.dst, [0.0, 2.0]) } limit 2", [("z",), ("y",)]),
        # An `optional` inside another block numbers its rows, and so does that block.
        (
            'match { optional { $x: Person }  not { $x.name = "c"  optional { $g knows $x  $g.r = 5 } } } '
            "return { $x.name }",
            [("b",)],
        ),
        # Nothing at all to look at.
        ("match { $a: Person  not { $a memberOf $m  $m.name != $a.name } } return { $a.name }", [("b",), ("c",)]),
    ],
)
def test_the_answer_is_right(
    graph: og.Graph, body: str, expected: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "DENSE_ROWS", 1)
    found = graph.query(f"query q() {{ {body} }}")
    assert [tuple(row.values()) for row in found.rows()] == expected


SECOND, THIRD = "2026-01-02T01:00+01:00", "2026-01-03T01:00+01:00"
"""Days in another spelling than their ids have."""


@pytest.mark.parametrize(
    ("header", "body", "values", "expected"),
    [
        # An id may be given in any spelling of the key that it is made of, also as a parameter.
        ("$d: String", "match { $a: Day  $a.@id = $d } return { $a.on }", {"d": SECOND}, 1),
        ("$d: String", "match { $a: Day  $d = $a.@id } return { $a.on }", {"d": " 2026-01-02T00:00:00Z"}, 0),
        ("$d: String", "match { $a: Day  $a.@id != $d } return { $a.on }", {"d": SECOND}, 1),
        ("$d: String?", "match { $a: Day  $a.@id = $d } return { $a.on }", {}, 0),
        ("$d: [String]", "match { $a: Day  $a.@id in $d } return { $a.on }", {"d": [SECOND, "x"]}, 1),
        (
            "$d: [String]",
            "match { $a: Day  $d contains $a.@id } return { $a.on }",
            {"d": [SECOND, "x"]},
            1,
        ),
        ("$d: String", "match { $a: Day  $a.@id in [$d] } return { $a.on }", {"d": SECOND}, 1),
        ("$s: String", "match { $a: Seat  $a.@id = $s } return { $a.row }", {"s": '[ "a",  7 ]'}, 1),
        ("$s: [String]", "match { $a: Seat  $a.@id in $s } return { $a.row }", {"s": ['["a", "7"]']}, 1),
        ("$d: String", "match { $a $e:next $b  $e.@src = $d } return { $b.on }", {"d": SECOND}, 1),
        ("$d: String", "match { $a $e:next $b  $e.@dst = $d } return { $b.on }", {"d": SECOND}, 0),
        (
            "$d: [String]",
            "match { $a $e:next $b  $e.@dst in $d } return { $b.on }",
            {"d": [THIRD]},
            1,
        ),
        ("$d: String", "match { $a next[@src = $d] $b } return { $b.on }", {"d": SECOND}, 1),
        (
            "$d: String",
            'match { $a: Day  $a.@id = $d or $a.@id = "2026-01-02T00:00Z" } return { $a.on }',
            {"d": THIRD},
            2,
        ),
        ("$d: String", "match { $a: Person  $a.name = $d } return { $a.name }", {"d": SECOND}, 0),
    ],
)
def test_an_id_is_found_in_any_spelling(
    graph: og.Graph, header: str, body: str, values: dict[str, object], expected: int
) -> None:
    assert len(graph.query(f"query q({header}) {{ {body} }}", params=values).rows()) == expected
