"""Predicates that name a whole key are looked up by id, and mean what they mean as predicates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import create_store
from omnigraph.query import ir
from omnigraph.query.lower.compile import compile_query
from omnigraph.write.key_lookup import ids_by_key
from omnigraph.write.load import load
from omnigraph.write.mutate import mutate

SCHEMA = """
node Plain { slug: String @key  n: I32? }
node Pair { a: String  b: I64  n: I32?  @key(a, b) }
node Day { d: Date @key  n: I32? }
node Moment { t: DateTime @key  n: I32? }
node Flag { f: Bool @key  n: I32? }
node Real { x: F64 @key  n: I32? }
node Loose { n: I32? }
edge Knows: Plain -> Plain { n: I32?  @key(src, dst) }
"""


@pytest.mark.parametrize(
    ("type_", "where", "expected"),
    [
        ("Plain", 'slug = "a"', ["a"]),
        ("Plain", 'slug = "a" and n > 1', ["a"]),
        ("Plain", 'slug = "a" or n > 1', None),
        ("Plain", 'slug != "a"', None),
        ("Plain", "n = 1", None),
        ("Pair", 'a = "x" and b = 7', ['["x","7"]']),
        ("Pair", 'a = "x"', None),
        ("Day", 'd = date("1970-01-03")', ["1970-01-03"]),
        ("Flag", "f = true", ["true"]),
        ("Real", "x = 1.5", None),  # engines disagree on -0.0, so floats are compared here
        ("Loose", "n = 1", None),
    ],
)
def test_the_ids_that_a_predicate_names(tmp_path: Path, type_: str, where: str, expected: list[str] | None) -> None:
    store = create_store(str(tmp_path / "graph"), SCHEMA)
    catalog = store.catalog(store.snapshot().schema_digest)
    query = compile_query(f"query q() {{ delete {type_} where {where} }}", catalog, None)
    assert isinstance(query, ir.MutationQuery)
    statement = query.statements[0]
    assert isinstance(statement, ir.Delete)
    found = ids_by_key(catalog.table(f"node:{type_}"), statement.predicate)  # type: ignore[arg-type]
    assert (None if found is None else found.to_pylist()) == expected


@pytest.mark.parametrize(
    ("type_", "key", "kind", "value", "other"),
    [
        ("Plain", "slug", "String", "a", "b"),
        ("Day", "d", "Date", "2024-02-29", "2024-03-01"),
        ("Moment", "t", "DateTime", "2024-02-29T12:00:00Z", "2024-02-29T12:00:01Z"),
        ("Flag", "f", "Bool", True, False),
        ("Real", "x", "F64", -0.0, 1.5),
    ],
)
def test_updates_by_key_find_their_row_for_every_type_of_key(
    tmp_path: Path, type_: str, key: str, kind: str, value: Any, other: Any
) -> None:
    store = create_store(str(tmp_path / "graph"), SCHEMA)
    load(store, [{key: value, "n": 1}, {key: other, "n": 1}], type=type_, mode="append")
    source = f"query q($k: {kind}) {{ update {type_} set {{ n: 2 }} where {key} = $k }}"
    assert mutate(store, source, params={"k": value}).affected_nodes == 1
    assert mutate(store, source, params={"k": value}).commit is None
    table = store.snapshot().pin(f"node:{type_}")
    assert sorted(store.tables.scan_table(table_of(table))["n"].to_pylist()) == [1, 2]
