"""What the generator makes can be asked: every name that a query looks at is bound, whatever its shape."""

from __future__ import annotations

import datetime
import random

import pytest

from tests.differential import constructs, tree
from tests.differential.constructs.blocks import sound
from tests.differential.constructs.conditions import Compare
from tests.differential.keys import key_text
from tests.differential.making import QueryMaker, Scope
from tests.differential.oracle import statement
from tests.differential.world import Making

assert constructs.__all__


def test_every_query_that_is_made_has_a_meaning():
    for seed in range(5):
        rng = random.Random(seed)
        world = Making(rng, interfaces=True).states()[0]
        maker = QueryMaker(rng, world.schema, world.tables())
        for _ in range(100):
            assert statement(maker.query(), world.schema)


def test_an_arm_that_looks_at_what_nobody_binds_is_not_sound():
    """Also where it looks from inside a block: a clause that bound the name may have been cut off."""
    outer, scope = tree.Entity("a", "node:Person"), Scope({"a": "node:Person"})
    test = tree.Where(Compare("=", outer, tree.Entity("f", "node:Person")))
    inside = tree.Block("not", (tree.Hop("a", "Knows", "b"), test))
    assert not sound((inside,), scope)
    assert sound((tree.Hop("a", "Knows", "f"), inside), scope)
    assert not sound((tree.Either(((test,), (test,))),), scope)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([-0.0], "0"),
        ([1.0], "1"),
        ([1e10], "1e+10"),
        ([9999999999.5], "9999999999.5"),
        ([0.000001], "0.000001"),
        ([-1.5e-7], "-1.5e-7"),
        ([5e-324], "5e-324"),
        ([True], "true"),
        ([datetime.date(1, 1, 1)], "0001-01-01"),
        ([datetime.datetime(2026, 1, 2, 3, 4, 5, 600000, datetime.UTC)], "2026-01-02T03:04:05.600000Z"),
        (["é", 0.5, False], '["é","0.5","false"]'),
    ],
)
def test_a_key_has_the_text_that_the_page_says(values, text):
    assert key_text(values) == text
