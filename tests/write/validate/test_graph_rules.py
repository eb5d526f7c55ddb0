"""Rules across rows: on key columns, part by part, and for changes that come from a merge."""

from __future__ import annotations

import datetime
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.ledger.store import GraphStore
from omnigraph.query import ir
from omnigraph.query.evaluate import matching_rows
from omnigraph.query.predicates import bound
from omnigraph.schema.types import Scalar, ScalarType
from omnigraph.storage.reading.pushdown import split
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion
from omnigraph.write.graph_change import RowChanges, validate_graph_change
from omnigraph.write.validate.duplicates import match_tuples, repeats
from omnigraph.write.validate.partitions import Parts
from tests.write.graphs import company, edge, fill, person

_cells = st.none() | st.sampled_from(["a", "b", "c"])
_pairs = st.lists(st.tuples(_cells, _cells), max_size=12)


def chunked(values: list[str | None], size: int = 3) -> pa.ChunkedArray:
    pieces = [values[at : at + size] for at in range(0, len(values), size)] or [[]]
    return pa.chunked_array([pa.array(piece, pa.string()) for piece in pieces])


def columns(pairs: list[tuple[str | None, str | None]]) -> list[pa.ChunkedArray]:
    return [chunked([pair[side] for pair in pairs]) for side in (0, 1)]


def first_rows(tuples: list[tuple[str | None, ...]]) -> dict[int, int]:
    seen: dict[tuple[str | None, ...], int] = {}
    return {row: seen[t] for row, t in enumerate(tuples) if None not in t and seen.setdefault(t, row) != row}


@pytest.mark.parametrize("rows_per_part", [2, 1000])
@settings(max_examples=150, deadline=None)
@given(pairs=_pairs)
def test_a_tuple_that_repeats_is_found_and_one_with_a_null_is_exempt(rows_per_part: int, pairs: list[tuple]):
    with pytest.MonkeyPatch.context() as patch:
        for module in ("duplicates", "partitions"):
            patch.setattr(f"omnigraph.write.validate.{module}.ROWS_PER_PART", rows_per_part)
        later, first = repeats(columns(pairs))
        assert dict(zip(later.tolist(), first.tolist())) == first_rows(pairs)
        later, first = repeats(columns(pairs)[:1])
        assert dict(zip(later.tolist(), first.tolist())) == first_rows([pair[:1] for pair in pairs])


@settings(max_examples=150, deadline=None)
@given(_pairs, _pairs)
def test_tuples_are_matched_with_others(pairs: list[tuple], others: list[tuple]):
    found, partners = match_tuples(columns(pairs), columns(others))
    assert found.tolist() == [row for row, pair in enumerate(pairs) if None not in pair and pair in others]
    assert all(pairs[row] == others[partner] for row, partner in zip(found, partners))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=30), st.integers(1, 5))
def test_every_value_is_in_one_part_and_equal_ones_in_the_same(values: list[str], parts: int):
    column = chunked(values)
    found = [Parts(column, parts).values(column, part).to_pylist() for part in range(parts)]
    assert Counter(value for part in found for value in part) == Counter(values)
    assert sum(len(set(part)) for part in found) == len(set(values))


_integer = ScalarType(Scalar.I32)
_text = ScalarType(Scalar.STRING)
_number_column = ir.Prop(ir.THIS, "n", _integer, True)
_text_column = ir.Prop(ir.THIS, "t", _text, True)
_leaves = st.one_of(
    st.builds(
        ir.Compare,
        st.sampled_from(ir.CompareOp),
        st.just(_number_column),
        st.builds(ir.Literal, st.integers(0, 3), st.just(_integer)),
    ),
    st.builds(
        ir.Compare,
        st.sampled_from(ir.CompareOp),
        st.builds(ir.Literal, st.integers(0, 3), st.just(_integer)),
        st.just(_number_column),
    ),
    st.builds(
        ir.Compare,
        st.sampled_from(ir.CompareOp),
        st.just(_text_column),
        st.builds(ir.Param, st.just("p"), st.just(_text)),
    ),
    st.builds(ir.IsNull, st.sampled_from([_number_column, _text_column]), st.booleans()),
    st.builds(
        ir.StartsWith, st.just(_text_column), st.builds(ir.Literal, st.sampled_from(["a", "b", ""]), st.just(_text))
    ),
    st.builds(ir.Contains, st.just(_text_column), st.builds(ir.Literal, st.just("b"), st.just(_text))),
)
_predicates = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(lambda items: ir.And(tuple(items)), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda items: ir.Or(tuple(items)), st.lists(inner, min_size=1, max_size=3)),
        st.builds(ir.Not, inner),
    ),
    max_leaves=6,
)


ROWS = pa.table(
    {"row": range(15), "n": pa.array([0, 1, 2, 3, None] * 3, pa.int32()), "t": ["a", "b", "ab", None, ""] * 3}
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableStore, TableVersion]:
    tables = TableStore(parse_root(tmp_path_factory.mktemp("tables")))
    return tables, tables.create("nodes/t", ROWS.schema, rows=ROWS)


@settings(max_examples=100, deadline=None)
@given(predicate=_predicates)
def test_what_is_pushed_down_lets_every_matching_row_through(
    stored: tuple[TableStore, TableVersion], predicate: ir.Expr
):
    now, params = datetime.datetime.now(datetime.UTC), {"p": "ab"}
    pushed, _ = split(bound(predicate, params, now))
    if pushed is None:
        return
    data = {(ir.THIS, name): ROWS[name] for name in ROWS.column_names}
    matching = set(np.flatnonzero(matching_rows(predicate, data, params, now, ROWS.num_rows)).tolist())
    tables, version = stored
    assert matching <= set(tables.scan_table(version, filter=pushed)["row"].to_pylist())


def people(*rows: dict[str, object]) -> pa.Table:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("slug", pa.string()),
            ("name", pa.string()),
            ("age", pa.int32()),
            ("status", pa.string()),
            ("mail", pa.string()),
        ]
    )
    return pa.Table.from_pylist([{"slug": row["id"], **row} for row in rows], schema=schema)


def knows(*pairs: tuple[str, str, str]) -> pa.Table:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("src", pa.string()),
            ("dst", pa.string()),
            ("since", pa.date32()),
            ("strength", pa.int32()),
        ]
    )
    return pa.Table.from_pylist([{"id": id_, "src": src, "dst": dst} for id_, src, dst in pairs], schema=schema)


def test_the_result_of_a_merge_is_checked_as_a_graph(store: GraphStore):
    fill(store, person("a", mail="m@x"), person("b"), company("c"), edge("Knows", "a", "b"), edge("WorksAt", "a", "c"))

    def counts(**changes: RowChanges) -> dict[str, int]:
        named = {key.replace("_", ":", 1): change for key, change in changes.items()}
        violations, reads = validate_graph_change(store, store.snapshot(), named)
        assert reads, "what was read to find out"
        return dict(violations.counts)

    gone = pa.array(["b"])
    assert counts(node_Person=RowChanges(people({"id": "z", "age": 3}))) == {}
    assert counts(node_Person=RowChanges(people({"id": "z", "age": 300}))) == {"range": 1}
    assert counts(node_Person=RowChanges(people({"id": "z", "mail": "m@x"}))) == {"unique": 1}
    assert counts(node_Person=RowChanges(deletes=gone)) == {"dangling_edge": 1}
    assert counts(edge_Knows=RowChanges(knows(("k", "a", "nobody")))) == {"missing_endpoint": 1}
    assert counts(node_Person=RowChanges(deletes=gone), edge_Knows=RowChanges(knows(("k", "a", "b")))) == {
        "missing_endpoint": 1,
        "dangling_edge": 1,
    }
    assert counts(node_Person=RowChanges(people({"id": "z"})), edge_Knows=RowChanges(knows(("k", "a", "z")))) == {}
