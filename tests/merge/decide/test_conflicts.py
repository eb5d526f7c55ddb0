"""Conflicts and answers as values: answers nobody gave, and conflicts that were found in several places."""

from __future__ import annotations

from omnigraph.merge.decide.conflicts import Choice, ConflictKind, MergeConflict, Resolutions
from omnigraph.merge.decide.three_way import Found, _joined
from tests.merge.graphs import CITY, PERSON


def test_answers_belong_to_their_table_and_none_are_needed() -> None:
    assert Resolutions().of_table(PERSON) == {}
    given = Resolutions.of(None, {(PERSON, "a"): "theirs", (CITY, "a"): None})
    assert given.of_table(PERSON) == {"a": Choice.THEIRS}
    assert given.of_table(CITY) == {"a": None}


def test_conflicts_of_several_parts_come_in_the_order_of_their_ids() -> None:
    def part(*ids: str) -> Found:
        found = [MergeConflict(PERSON, id_, ConflictKind.DIVERGENT_UPDATE, "both changed it") for id_ in ids]
        return Found(inserted=[f"new-{id_}" for id_ in ids], colliding=found)

    joined = _joined([part("b", "d"), part("c"), part("a")])
    assert [conflict.row_id for conflict in joined.colliding] == ["a", "b", "c", "d"]
    assert joined.inserted.to_pylist() == ["new-b", "new-d", "new-c", "new-a"]
