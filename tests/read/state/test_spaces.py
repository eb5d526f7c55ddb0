"""What a space of entities reads of its table: not the key, several columns at once, small tables as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.read.state import spaces
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import ArrowTables, TableReader
from tests.read.asking import graph, person
from tests.read.graphs import CATALOG, arrow_tables

PERSON = "node:Person"
PEOPLE = graph([person(f"p{n:03d}", age=n, score=n / 2) for n in range(100)])


class Taken(ArrowTables):
    """Tables that note which columns are taken by row."""

    def __init__(self) -> None:
        super().__init__(arrow_tables(PEOPLE, CATALOG))
        self.taken: list[list[str]] = []

    def take(self, table_key: str, rows: Any, columns: Sequence[str]) -> pa.Table:
        self.taken.append(list(columns))
        return super().take(table_key, rows, columns)


class NoRoom(ReadCaches):
    """Caches that keep no column."""

    def has_room_for(self, reader: TableReader, table_key: str, name: str) -> bool:
        return False


def test_the_key_is_never_read_and_the_rest_is_read_at_once() -> None:
    tables = Taken()
    space = spaces.SortedSpace(tables, NoRoom(), PERSON, "name")
    codes = np.array([7, 3], dtype=np.int64)
    names, age = space.columns(codes, ["name", "age"])
    assert (names.to_pylist(), age.to_pylist()) == (["p007", "p003"], [7, 3])
    assert tables.taken == [["age"]]
    tables.taken.clear()
    space.prefetch(codes, ["name", "age", "score"])
    for name, expected in (("name", ["p007", "p003"]), ("age", [7, 3]), ("score", [3.5, 1.5])):
        assert space.columns(codes, [name])[0].to_pylist() == expected
    assert tables.taken == [["age", "score"]]
    for other in ([3, 7], [7], [1, 2]):
        found = space.columns(np.array(other, dtype=np.int64), ["age"])[0]
        assert found.to_pylist() == other, "what was read along belongs to the rows it was read for"


@pytest.mark.parametrize(("small", "whole"), [(100, True), (99, False)])
def test_a_column_of_a_small_table_is_read_as_a_whole(monkeypatch: pytest.MonkeyPatch, small: int, whole: bool) -> None:
    monkeypatch.setattr(spaces, "SMALL_TABLE", small)
    monkeypatch.setattr(spaces, "READ_VALUE", 1000.0)
    tables, caches = Taken(), ReadCaches()
    space = spaces.SortedSpace(tables, caches, PERSON, "name")
    assert space.columns(np.array([7], dtype=np.int64), ["age"])[0].to_pylist() == [7]
    assert (caches.cached_column(tables.state(PERSON), "age") is not None) is whole
    assert tables.taken == ([] if whole else [["age"]])
