"""The rules of page 02 for blocks inside a match, stages, walks and variables of several types, by hand."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequest
from omnigraph.read.matching import inner
from omnigraph.schema.compiler.compile import compile_schema
from tests.read.asking import ask, graph, person, run, values

# a -> b -> c -> d, a -> c, d -> d; a and b in team t, c in u.
PEOPLE = graph(
    [person("a", age=1), person("b", age=2), person("c", age=3), person("d")],
    [
        ("a", "b", {"since": 1}),
        ("b", "c", {"since": 2}),
        ("c", "d", {"since": 3}),
        ("a", "c", {"since": 9}),
        ("d", "d", {"since": 1}),
    ],
    teams="t u",
    member_of=[("a", "t"), ("b", "t"), ("c", "u")],
)
CASES = {
    "optional keeps a row without a match once": (
        "match { $p: Person  optional { $p knows $f  $f.age > 2 } } return { $p.name, $f.name as f }",
        [("a", "c"), ("b", "c"), ("c", None), ("d", None)],
    ),
    "a later optional uses what an earlier one bound": (
        "match { $p: Person  optional { $p knows $f  $f.age = 3 }  optional { $f memberOf $t } } "
        "return { $p.name, $f.name as f, $t.title as t }",
        [("a", "c", "u"), ("b", "c", "u"), ("c", None, None), ("d", None, None)],
    ),
    "a property of what optional left null is null": (
        "match { $p: Person  optional { $p memberOf $t }  $t.title is null } return { $p.name, count($t) as n }",
        [("d", 0)],
    ),
    "exists keeps rows with a match, once each": (
        "match { $p: Person  exists { $p knows $f  $f.age > 1 } } return { $p.name }",
        ["a", "b"],
    ),
    "either gives each different binding once": (
        'match { $p: Person { name: "c" }  either { $p knows $f } or { $f knows $p } or { $f knows $p } } '
        "return { $f.name }",
        ["a", "b", "d"],
    ),
    "either may bind different types": (
        'match { $p: Person { name: "c" }  either { $p knows $x } or { $p memberOf $x } } '
        "return { $x.@id, $x.@type as t }",
        [("d", "Person"), ("u", "Team")],
    ),
    "what an either binds comes first where it stands first": (
        "match { either { $v memberOf $t } or { $v memberOf $t  $v knows $v }  $b memberOf $t } "
        "return { $v.name, $t.title as t, $b.name as b }",
        [("a", "t", "a"), ("a", "t", "b"), ("b", "t", "a"), ("b", "t", "b"), ("c", "u", "c")],
    ),
    "what an either and a later clause bind is ordered where the either stands": (
        "match { either { $v knows $j } or { $v memberOf $t  $v knows $j }  $b knows $j  $b.age < 3  $v.age < 3 } "
        "return { $v.name, $j.name as j, $b.name as b }",
        [
            ("a", "b", "a"),
            ("a", "c", "a"),
            ("a", "c", "b"),
            ("b", "c", "a"),
            ("b", "c", "b"),
        ],
    ),
    "what an optional takes from a later clause is ordered where that clause stands": (
        "match { optional { $t: Team  $j memberOf $t }  $b knows $j  $b.age < 3 } "
        "return { $t.title as t, $b.name as b, $j.name as j }",
        [("t", "a", "b"), ("u", "a", "c"), ("u", "b", "c")],
    ),
    "a stage hands on what it lists": (
        "match { $p: Person  $p knows $q } with { $p, count($q) as n } where n > 1 "
        "match { $p memberOf $t } return { $p.name, n, $t.title as t }",
        [("a", 2, "t")],
    ),
    "a stage with a limit cuts before the next match": (
        "match { $p: Person } with { $p } order { $p.age desc } limit 2 match { $p knows $q } "
        "return { $p.name, $q.name as q }",
        [("b", "c"), ("c", "d")],
    ),
    "edge alternatives": (
        'match { $p: Person { name: "a" }  $p knows|memberOf $x } return { $x.@id, $x.@type as t }',
        [("b", "Person"), ("c", "Person"), ("t", "Team")],
    ),
    "any edge that fits": (
        'match { $t: Team { title: "t" }  $p * $t } return { $p.@id }',
        ["a", "b"],
    ),
    "the type of a bound edge": (
        'match { $p: Person { name: "c" }  $p $e:knows|memberOf $x } return { $e.@type, $e.@src as s, $e.@dst as d }',
        [("Knows", "c", "d"), ("MemberOf", "c", "u")],
    ),
    "a condition on a single hop": (
        "match { $p: Person  $p knows[since > 2] $q } return { $p.name, $q.name as q }",
        [("a", "c"), ("c", "d")],
    ),
    "every edge of a walk satisfies the condition": (
        'match { $p: Person { name: "a" }  $p knows{1,3}[since < 9] $q } return { $q.name, 1 as one }',
        [("b", 1), ("c", 1), ("d", 1)],
    ),
    "a path is a shortest walk": (
        'match { $p: Person { name: "a" }  $p knows{1,3} $q as $w } '
        "return { hops($w) as h, nodes($w) as n, edges($w) as e }",
        [(1, ["a", "b"], ["k0"]), (1, ["a", "c"], ["k3"]), (2, ["a", "c", "d"], ["k3", "k2"])],
    ),
    "a self-loop is a walk of one hop": (
        "match { $p: Person  $p knows{1,2} $p as $w } return { nodes($w) as n }",
        [["d", "d"]],
    ),
    "a search under or and not": (
        'match { $p: Person  not search($p.bio, "x") or $p.age = 1 } return { $p.name }',
        ["a"],
    ),
    "distinct rows": ("match { $p: Person  $p memberOf $t } return distinct { $t.title }", ["t", "u"]),
    "having filters groups": (
        "match { $p: Person  $p memberOf $t } return { $t.title, count($p) as n } having { n > 1 }",
        [("t", 2)],
    ),
    "pages do not overlap": (
        "match { $p: Person } return { $p.name } order { $p.active } offset 1 limit 2",
        ["b", "c"],
    ),
    "nulls where the query wants them": (
        "match { $p: Person } return { $p.name } order { $p.age desc nulls first }",
        ["d", "c", "b", "a"],
    ),
    "collect in the order of rows": (
        "match { $p: Person  $p memberOf $t } return { $t.title, collect($p.name) as names, median($p.age) as m }",
        [("t", ["a", "b"], 1.5), ("u", ["c"], 3.0)],
    ),
    "collect over no rows": ("match { $p: Person  $p.age > 1000 } return { collect($p.name) as names }", [None]),
    "collect over rows without a value": (
        'match { $p: Person { name: "d" }  optional { $p knows $q } } return { collect($q.age) as ages }',
        [[]],
    ),
    "an integer against a fraction": ("match { $p: Person  $p.age > 1.5 } return { $p.name }", ["b", "c"]),
}


@pytest.mark.parametrize("rule", sorted(CASES))
def test_blocks_stages_and_walks(rule):
    text, expected = CASES[rule]
    assert values(ask(PEOPLE, text)) == expected


def test_a_division_by_zero_is_refused_and_named():
    with pytest.raises(BadRequest, match=r"1 / \(\$p\.age - 2\)"):
        run(PEOPLE, "match { $p: Person  1 / ($p.age - 2) > 0 } return { $p.name }")


NAMED = compile_schema(
    """
    interface Named { label: String  rank: I32? }
    node Cat implements Named { tag: String @key }
    node Dog implements Named { chip: String @key  loud: Bool? }
    edge Chases: Dog -> Cat { how: String? }
    edge Likes: Dog -> Dog { how: String? }
    """
)
PETS = {
    "node:Cat": [
        {"id": "x", "tag": "x", "label": "tom", "rank": 2},
        {"id": "y", "tag": "y", "label": "kit", "rank": None},
    ],
    "node:Dog": [{"id": "x", "chip": "x", "label": "rex", "rank": 2, "loud": True}],
    "edge:Chases": [{"id": "c0", "src": "x", "dst": "x", "how": "fast"}],
    "edge:Likes": [{"id": "l0", "src": "x", "dst": "x", "how": None}],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "match { $n: Named } return { $n.label, $n.@type as t }",
            [("tom", "Cat"), ("rex", "Dog"), ("kit", "Cat")],
        ),
        ('match { $n: Named  $n.rank = 2  $n.label starts_with "r" } return { $n.@id }', ["x"]),
        (
            "match { $d: Dog  $d chases|likes $n } return { $n.@type, $n.label as l }",
            [("Cat", "tom"), ("Dog", "rex")],
        ),
        ("match { $n: Named } return { $n.rank, count($n) as c, count(distinct $n) as d }", [(None, 1, 1), (2, 2, 2)]),
        (
            "match { $n: Named { rank: 2 } } return { $n }",
            [
                {"@id": "x", "@type": "Cat", "label": "tom", "rank": 2},
                {"@id": "x", "@type": "Dog", "label": "rex", "rank": 2},
            ],
        ),
    ],
)
def test_an_interface_binds_the_nodes_of_every_type_that_implements_it(text, expected):
    assert values(ask(PETS, text, catalog=NAMED)) == expected


@pytest.mark.parametrize("block", ["exists", "not"])
def test_exists_and_not_stop_at_the_first_match(block, monkeypatch):
    names = [f"p{n:04d}" for n in range(2000)]
    # The hub knows everybody, and the first of them is as old as it is already; p0001 knows somebody who is older.
    hub = graph(
        [person(name, age=n) for n, name in enumerate(names)],
        [("p0000", name) for name in names] + [("p0001", "p0002")],
    )
    monkeypatch.setattr(inner, "MANY_EDGES", 0)
    text = f"match {{ $p: Person  {block} {{ $p knows $x  $x.age <= $p.age }} }} return {{ count($p) as n }}"
    found = run(hub, text, "csr")
    assert found.scalar() == (1 if block == "exists" else 1999)
    (followed,) = (line for line in found.explain().lines if line.name == "expand")
    assert followed.rows == inner.FIRST_EDGES + 1


@pytest.mark.parametrize("block", ["exists", "not"])
def test_exists_and_not_find_a_match_among_many_edges(block, monkeypatch):
    names = [f"p{n:03d}" for n in range(200)]
    pairs = [(a, b) for at, a in enumerate(names) for b in names[: at % 60]]
    dense = graph([person(name, age=int(name[1:])) for name in names], pairs)
    text = f"match {{ $p: Person  {block} {{ $p knows $x  $x.age > 30  $x.age < $p.age }} }} return {{ $p.name }}"
    expected = run(dense, text, "indexed").rows()
    monkeypatch.setattr(inner, "MANY_EDGES", 0)
    assert run(dense, text, "csr").rows() == expected
    assert 0 < len(expected) < 200


def test_an_optional_over_several_edge_types_keeps_the_row_that_reaches_nothing_it_wants():
    """As many rows are found as there are edges of the first type, and they are not those edges."""
    people = graph("a b c", "ab", teams="t", member_of=[("b", "t")])
    text = (
        'match { $p: Person  optional { $p knows|memberOf $x  $x.@type = "Team" } } return { $p.name, $x.@type as t }'
    )
    assert values(ask(people, text)) == [("a", None), ("b", "Team"), ("c", None)]
