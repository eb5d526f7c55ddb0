"""Answers that were wrong once, each as a user would ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og

SCHEMA = """
node Person { name: String @key  n: U32?  r: I32? }
node Team { name: String @key }
edge Knows: Person -> Person
edge MemberOf: Person -> Team
edge Likes: Person -> Team
"""
ROWS = [
    {"type": "Person", "data": {"name": "b", "n": 2, "r": 5}},
    {"type": "Person", "data": {"name": "c"}},
    {"edge": "Knows", "from": "b", "to": "c"},
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
        # Nothing at all to look at.
        ("match { $a: Person  not { $a memberOf $m  $m.name != $a.name } } return { $a.name }", [("b",), ("c",)]),
    ],
)
def test_the_answer_is_right(graph: og.Graph, body: str, expected: list[tuple[object, ...]]) -> None:
    found = graph.query(f"query q() {{ {body} }}")
    assert [tuple(row.values()) for row in found.rows()] == expected
