"""Indexes are derived: a damaged one makes reads slow, not wrong; verify tells, and `index` builds it anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.graph import Graph
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.maintain.optimize.optimize import ensure_indices
from omnigraph.maintain.verify import Rule, verify
from tests.maintain.graphs import PERSON, SCHEMA, put

QUERY = 'query one() { match { $p: Person { name: "p7" } } return { $p.age } }'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with create_store(tmp_path / "graph", SCHEMA) as store:
        put(store, **{f"p{number}": number for number in range(50)})
        ensure_indices(store)
        put(store, last=99)
    return tmp_path / "graph"


def damage(place: Path, kind: str) -> None:
    for name in ("page_data", "page_lookup"):
        for file in place.glob(f"nodes/*/_indices/*/{name}.lance"):
            data = file.read_bytes()
            if kind == "removed":
                file.unlink()
            elif kind == "cut off":
                file.write_bytes(data[: len(data) // 2])
            elif name == "page_data":
                # In the first key: Lance reads another one and says nothing.
                at = data.index(b"p0")
                file.write_bytes(data[:at] + b"q0" + data[at + 2 :])


def rules(store: GraphStore, *, deep: bool = False) -> set[Rule]:
    return {finding.rule for finding in verify(store, deep=deep).findings}


@pytest.mark.parametrize("kind", ["removed", "cut off"])
def test_reads_and_writes_do_without_an_index_that_cannot_be_read(place: Path, kind: str) -> None:
    damage(place, kind)
    with open_store(place) as store:
        assert rules(store) == {Rule.INDEXES}
        graph = Graph(store)
        assert graph.query(QUERY).scalar() == 7
        graph.mutate('query q() { update Person set { age: 70 } where name = "p7" }')
        graph.mutate('query q() { delete Person where name = "p8" }')
        assert graph.query(QUERY).scalar() == 70
        done = ensure_indices(store)
        assert {table.table_key for table in done.tables if table.indexes_built} == {PERSON}
        assert ensure_indices(store).commit is None
    with open_store(place) as store:
        assert rules(store, deep=True) == set()
        assert Graph(store).query(QUERY).scalar() == 70


def test_a_silent_flip_in_an_index_is_found_by_its_checksum_and_mended(place: Path) -> None:
    damage(place, "flipped")
    with open_store(place) as store:
        assert rules(store) == set()
        found = verify(store, deep=True).findings
        assert {finding.rule for finding in found} == {Rule.CHECKSUMS}
        assert all("/_indices/" in finding.message for finding in found)
        assert ensure_indices(store).commit is not None
    with open_store(place) as store:
        shown = [finding for finding in verify(store, deep=True).findings if finding.table_key is not None]
        assert shown == []


def test_a_branch_that_has_the_table_from_its_source_says_what_to_do(place: Path) -> None:
    with open_store(place) as store:
        create_branch(store, "review")
    damage(place, "removed")
    with open_store(place) as store:
        ensure_indices(store)
        (text, *_) = {finding.message for finding in verify(store).findings}
        assert "after a write to it `omnigraph index --branch review`" in text
        put(store, "review", new=1)
        ensure_indices(store, "review")
        assert rules(store) == set()
