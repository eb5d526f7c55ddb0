"""The first rows of a product are the first rows of the whole product, however small the stretches are."""

from __future__ import annotations

import pytest

from omnigraph.read.operators import product
from tests.read.asking import graph, person, run

PEOPLE = graph(
    [person(f"p{n}", age=n % 3, score=float(n % 2)) for n in range(7)],
    [("p0", "p1"), ("p2", "p1"), ("p3", "p4")],
    teams="a b c d e",
    member_of=[("p0", "a"), ("p2", "b"), ("p3", "b")],
)
MATCHES = [
    "$p: Person  $t: Team",
    "$p: Person  $t: Team  $q: Person",
    "$p: Person  $t: Team  $p.name < $t.title or $p.age = 1  not { $p memberOf $t }",
    "$p: Person  $p knows $x  $t: Team  $q: Person  $q.name > $x.name",
]
ORDERS = ["", "$t.title desc", "$p.age", "$p.age desc, $t.title, $p.score", "$p.name < $t.title", "$t.size, $p.score"]


@pytest.mark.parametrize("stretch", [1, 4, 11])
@pytest.mark.parametrize("order", ORDERS)
def test_a_limit_on_a_product_gives_the_first_rows_of_all(monkeypatch, order, stretch):
    for clauses in MATCHES:
        text = f"match {{ {clauses} }} return {{ $p.name as p, $t.title as t }}"
        text += f" order {{ {order} }}" if order else ""
        whole = run(PEOPLE, text).rows()
        monkeypatch.setattr(product, "STRETCH", stretch)
        for count in (1, 3, 10, 1000):
            assert run(PEOPLE, f"{text} limit {count}").rows() == whole[:count]
        monkeypatch.undo()


def test_a_product_with_fewer_rows_than_its_limit_is_never_held_as_a_whole(monkeypatch):
    names = [f"p{n:03d}" for n in range(200)]
    many = graph(names, teams=names)
    clauses = '$p: Person  $t: Team  ($p.name = $t.title or $t.title < $p.name and $p.name = "p001")'
    text = f"match {{ {clauses} }} return {{ $p.name as p, $t.title as t }} order {{ $p.name desc }} limit 500"
    whole = run(many, text).rows()
    assert len(whole) == 201
    monkeypatch.setattr(product, "STRETCH", 1000)
    assert run(many, text, memory_limit=400_000).rows() == whole
