"""Grouping and sorting by columns of whole tables, by entities, and by what an `optional` left null."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from omnigraph.query import ir
from omnigraph.read.operators import group
from omnigraph.read.operators.sort import key_codes
from omnigraph.read.state.frame import EntityCodes, Frame
from omnigraph.schema.types import EntityType
from tests.read.asking import ask, graph, person, values

PERSON = "node:Person"
PEOPLE = graph(
    [person("a"), person("b", age=2), person("c", age=2), person("d", age=1)],
    [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("d", "d"), ("d", "a")],
    teams="t",
    member_of=[("a", "t"), ("c", "t")],
)
QUERIES = {
    "match { $p: Person  $p knows $q } return { $q.age, count($p) as n }": [(None, 1), (1, 2), (2, 3)],
    "match { $p: Person  optional { $p knows $q } } return { $q.age, count($p) as n }": [(None, 2), (1, 2), (2, 3)],
    "match { $p: Person  $p knows|memberOf $x } return { $x.@type as t, $p.age, count($x) as n }": [
        ("Person", None, 2),
        ("Person", 1, 2),
        ("Person", 2, 2),
        ("Team", None, 1),
        ("Team", 2, 1),
    ],
}


@pytest.mark.parametrize("text", QUERIES)
def test_groups_are_the_same_however_many_rows_there_are(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """From `DENSE_ROWS` on, rows are counted by the numbers that the values of a whole column have."""
    for least in (group.DENSE_ROWS, 1):
        monkeypatch.setattr(group, "DENSE_ROWS", least)
        assert sorted(values(ask(PEOPLE, text)), key=repr) == sorted(QUERIES[text], key=repr)


def stub(**names: Any) -> Any:
    """The few parts of a run that are looked at."""
    return SimpleNamespace(**names)


def test_only_a_key_that_is_a_variable_stays_bound() -> None:
    codes = np.array([3, 1, 3], dtype=np.int64)
    frame = Frame(3, {"p": codes}, {"old": EntityCodes((PERSON,), codes)})
    person_type = EntityType(PERSON)
    keys = {
        "p": ir.Column("p", ir.Entity("p", person_type), person_type),
        "old": ir.Column("old", ir.ColumnRef("old", person_type), person_type),
    }
    for name, bound in (("p", ["p"]), ("old", [])):
        operator = ir.GroupBy(ir.Scan("p", PERSON), (keys[name],), ())
        found = group.group(stub(variables={"p": (PERSON,)}), frame, operator)
        assert list(found.bindings) == bound
        assert found.columns[name].codes.tolist() == [1, 3]


@pytest.mark.parametrize(("descending", "nulls_first", "order"), [(False, False, [2, 1, 0]), (True, True, [0, 1, 2])])
def test_the_first_entity_is_not_taken_for_a_null(descending: bool, nulls_first: bool, order: list[int]) -> None:
    frame = Frame(3, {"p": np.array([-1, 1, 0], dtype=np.int64)})
    run = stub(variables={"p": (PERSON,)}, order=lambda tables, codes: codes)
    key = ir.SortKey(ir.Entity("p", EntityType(PERSON), True), descending, nulls_first)
    assert np.argsort(key_codes(run, frame, key), kind="stable").tolist() == order
