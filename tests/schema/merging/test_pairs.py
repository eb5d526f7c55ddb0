"""Every pair of schema changes on two sides, and what becomes of them: one schema, or the conflict in words."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import Phase, given, settings

from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.merging.facts import facts_of
from omnigraph.schema.merging.merge_schemas import MergedSchema, merge_schemas
from tests.strategies.schemas import catalogs, schema_sources

BASE = """
node A {
    k: String @key
    a: I32?
    e: enum(x, y)?
    f: F32?
    @range(a, 0..100)
}
node B { b: String? }
edge E: A -> B
"""

CHANGES: dict[str, tuple[tuple[str, str], ...]] = {
    "add": (("f: F32?", "f: F32?\n    new: String?"),),
    "add again": (("f: F32?", "f: F32?\n    new: String?"),),
    "add other": (("f: F32?", "f: F32?\n    other: I32 @default(3)"),),
    "rename": (("a: I32?", 'z: I32? @rename_from("a")'), ("@range(a,", "@range(z,")),
    "rename otherwise": (("a: I32?", 'y: I32? @rename_from("a")'), ("@range(a,", "@range(y,")),
    "rename to added": (("f: F32?", 'new: F32? @rename_from("f")'),),
    "drop": (("a: I32?", ""), ("@range(a, 0..100)", "")),
    "widen": (("a: I32?", "a: I64?"),),
    "widen otherwise": (("a: I32?", "a: F64?"),),
    "require": (("a: I32?", "a: I32"),),
    "constraint": (("@range(a, 0..100)", "@range(a, 0..100)\n    @unique(a)"),),
    "narrow": (("0..100", "0..50"),),
    "narrow otherwise": (("0..100", "10..100"),),
    "enum": (("enum(x, y)", "enum(x, y, p)"),),
    "enum otherwise": (("enum(x, y)", "enum(x, y, q)"),),
    "index": (("a: I32?", "a: I32? @index"),),
    "default": (("a: I32?", "a: I32? @default(1)"),),
    "default otherwise": (("a: I32?", "a: I32? @default(2)"),),
    "add type": (("node B {", "node C { c: I32? }\nnode B {"),),
    "rename type": (("node A {", 'node Z @rename_from("A") {'), ("edge E: A", "edge E: Z")),
    "rename type otherwise": (("node A {", 'node Y @rename_from("A") {'), ("edge E: A", "edge E: Y")),
    "drop type": (("node B { b: String? }", ""), ("edge E: A -> B", "")),
    "add edge": (("edge E: A -> B", "edge E: A -> B\nedge F: A -> B"),),
    "change type": (("b: String?", "b: String?\n c: I32?"),),
    "card": (("edge E: A -> B", "edge E: A -> B @card(0..1)"),),
    "card otherwise": (("edge E: A -> B", "edge E: A -> B @card(0..2)"),),
}

DROPPED_A = "`A.a` is dropped on the {0} and changed on the {1}"
OUTCOMES: dict[tuple[str, str], str] = {
    ("add", "add again"): "both sides have their own `A.new`: rename or drop one of the two",
    ("add", "rename to added"): "both sides have their own `A.new`: rename or drop one of the two",
    ("add again", "rename to added"): "both sides have their own `A.new`: rename or drop one of the two",
    ("rename", "rename otherwise"): "the name of `A.",
    ("rename", "drop"): DROPPED_A,
    ("rename otherwise", "drop"): DROPPED_A,
    ("drop", "widen"): DROPPED_A,
    ("drop", "widen otherwise"): DROPPED_A,
    ("drop", "require"): DROPPED_A,
    ("drop", "index"): DROPPED_A,
    ("drop", "default"): DROPPED_A,
    ("drop", "default otherwise"): DROPPED_A,
    ("drop", "constraint"): "`A` needs `A.a`, which is dropped on the ",
    ("drop", "narrow"): "the range of `A` was changed on both sides",
    ("drop", "narrow otherwise"): "the range of `A` was changed on both sides",
    ("widen", "widen otherwise"): "the type of `A.a` was changed on both sides: `",
    ("narrow", "narrow otherwise"): "the range of `A` was changed on both sides: ",
    ("default", "default otherwise"): "the default of `A.a` was changed on both sides: ",
    ("rename type", "rename type otherwise"): "the name of `",
    ("drop type", "add edge"): "`F` needs `B`, which is dropped on the ",
    ("drop type", "change type"): "`B` is dropped on the ",
    ("drop type", "card"): "`E` is dropped on the ",
    ("drop type", "card otherwise"): "`E` is dropped on the ",
    ("narrow otherwise", "default"): "together they break a rule: ",
    ("narrow otherwise", "default otherwise"): "together they break a rule: ",
    ("card", "card otherwise"): "the cardinality of `E` was changed on both sides: @card(0..",
}
"""The pairs that collide, in one order, with words of the conflict. Every other pair merges."""


def changed(name: str, previous: Catalog, unused_id: int) -> tuple[str, Catalog]:
    text = BASE
    for old, new in CHANGES[name]:
        assert old in text
        text = text.replace(old, new)
    return text, compile_schema(text, previous, unused_id=unused_id)


def merged(source: str, target: str) -> tuple[Catalog, Catalog, Catalog, MergedSchema]:
    base = compile_schema(BASE)
    theirs = changed(source, base, 1)
    ours = changed(target, base, theirs[1].next_id)
    return base, theirs[1], ours[1], merge_schemas(facts_of(base), theirs, ours)


@pytest.mark.parametrize(("source", "target"), list(product(CHANGES, CHANGES)))
def test_every_pair_of_changes(source: str, target: str) -> None:
    base, theirs, ours, found = merged(source, target)
    expected = OUTCOMES.get((source, target)) or OUTCOMES.get((target, source))
    if source == target and source in ("add", "add again", "add other", "add type", "add edge", "change type"):
        # The same text on both sides makes two things: each side has given out an id of its own.
        expected = "both sides have their own "
    if expected is not None:
        sides = ("source", "target") if source == "drop" else ("target", "source")
        assert any(clash.message.startswith(expected.format(*sides)) for clash in found.clashes), found.clashes
        return
    assert found.clashes == ()
    before, result = facts_of(base), facts_of(found.catalog)
    # What a side changed is in the result, and nothing else is: told fact by fact, without the merge's own code.
    for side in (facts_of(theirs), facts_of(ours)):
        for fact in side.keys() | before.keys():
            if repr(side.get(fact)) != repr(before.get(fact)) and "enum" not in f"{source} {target}":
                assert repr(result.get(fact)) == repr(side.get(fact)), fact
    assert compile_schema(found.source, found.catalog) == found.catalog


def test_values_that_both_sides_add_to_an_enum_are_all_taken() -> None:
    *_, found = merged("enum", "enum otherwise")
    assert str(found.catalog.nodes[0].by_name["e"].type) == "enum(p, q, x, y)"


def test_both_changes_of_one_property_are_taken_when_they_are_of_different_kinds() -> None:
    *_, found = merged("rename", "widen")
    (property_,) = (p for p in found.catalog.nodes[0].properties if p.id == "p3")
    assert (property_.name, str(property_.type)) == ("z", "I64")
    assert found.catalog.nodes[0].ranges[0].property == "z"


def test_one_side_alone_keeps_its_text_with_comments_and_order() -> None:
    base = compile_schema(BASE)
    text = BASE + "// a remark\nnode New {}\n"
    source = (text, compile_schema(text, base))
    for pair in ((source, (BASE, base)), ((BASE, base), source)):
        found = merge_schemas(facts_of(base), *pair)
        assert (found.source, found.catalog, found.clashes) == (text, source[1], ())


@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(catalogs(3, 2, 4), schema_sources(3, 2, 4), schema_sources(3, 2, 4))
def test_a_merge_says_the_same_from_both_sides(base: Catalog, one: str, other: str) -> None:
    left = one, compile_schema(one, base)
    right = other, compile_schema(other, base, unused_id=left[1].next_id)
    found, back = (merge_schemas(facts_of(base), *pair) for pair in ((left, right), (right, left)))
    assert bool(found.clashes) == bool(back.clashes)
    if not found.clashes:
        assert facts_of(found.catalog) == facts_of(back.catalog)
        assert compile_schema(found.source, found.catalog) == found.catalog
