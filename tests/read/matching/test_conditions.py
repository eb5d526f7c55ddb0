"""Every condition of a block holds for every row, whichever step binds the last variable that it reads."""

from __future__ import annotations

import pytest

from tests.read.asking import ask, graph, person, values

TWO_WAYS = graph(
    [person("a", age=1), person("b", age=2)],
    [("a", "b", {"since": 1}), ("b", "a", {"since": 2}), ("a", "a", {"since": 3}), ("a", "a", {"since": 3})],
    teams="t",
    member_of=[("a", "t", {"role": "lead"}), ("b", "t", {"role": "plain"})],
)
LOOPS = "$a: Person  $a $e:knows $b  $b $f:knows $a"


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        (f"{LOOPS}  $e.since = $f.since", 4),
        (f"{LOOPS}  $e.since != $f.since", 2),
        (f"{LOOPS}  $e.since < $f.since", 1),
        (f"{LOOPS}  ($e.since = $f.since or $e.since < $b.age)", 5),
        (f"{LOOPS}  $e.since = $a.age", 2),
        ("$a: Person  $a $e:knows $a  $a $f:knows $a  $e.since = $f.since", 4),
        ("$a: Person  $a $e:knows $a  $e.since = $a.age", 0),
        ("$a: Person  $a $e:knows $a  ($e.since > $a.age or $a.age = 7)", 2),
        ("$a: Person  $b: Person  $a $e:knows $b  $e.since = $b.age", 0),
        ("$a: Person  $b: Person  $a $e:knows $b  $a $g:memberOf $t  $b $h:memberOf $t  $g.role = $h.role", 2),
        ("$a: Person  not { $a $e:knows $b  $b $f:knows $a  $e.since < $f.since }", 1),
        ("$a: Person  not { $a $e:knows $a  $e.since > $a.age }", 1),
        ("$a: Person  $b: Person  not { $a $e:knows $b  $e.since < $b.age }", 3),
        ("$a: Person  not { $a $e:knows $a  not { $a $f:knows $b  $b $g:knows $a  $f.since = $e.since } }", 2),
    ],
)
def test_a_condition_on_an_edge_that_closes_a_cycle_holds(clauses, expected):
    assert values(ask(TWO_WAYS, f"match {{ {clauses} }} return {{ count($a) as n }}")) == [expected]


SIBLINGS = graph(
    "a b c",
    [("a", "b", {"since": 1})],
    teams="t u",
    member_of=[("a", "t"), ("b", "u")],
    part_of=[("t", "u")],
)


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ('not { $p knows $x  $x.name = "b" }  not { $p memberOf $x  $x.title = "u" }', ["c"]),
        ('not { $p memberOf $x  $x.title = "t" }  not { $p knows $x  $x.age > 3 }', ["b", "c"]),
        ("not { $p $x:knows $y  $x.since = 1 }  not { $p memberOf $x  $x partOf $y }", ["b", "c"]),
        ("not { $p knows $x  not { $x memberOf $z } }  not { $p memberOf $z  $z partOf $x }", ["b", "c"]),
        ("not { $p knows $x }  not { $x: Team  $p memberOf $x  $x.title != $p.name }", ["c"]),
    ],
)
def test_sibling_blocks_may_use_one_name_for_different_things(clauses, expected):
    assert values(ask(SIBLINGS, f"match {{ $p: Person  {clauses} }} return {{ $p.name }}")) == expected
