"""Back-fill and the way back of an analysis: one commit on a branch, nothing else touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import BadRequest
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.write.load.load import load

pytestmark = pytest.mark.spark

SCHEMA = """
node Person {
    slug: String @key
    bio: String?
    length: I32?
    rank: F64?
}
edge Knows: Person -> Person { weight: F64? }
"""


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    made = create_store(str(tmp_path / "graph.omni"), SCHEMA)
    people = [{"slug": f"p{n}", "bio": "x" * n if n else None, "length": 99 if n == 1 else None} for n in range(6)]
    load(made, people, mode="append", type="Person")
    load(made, [{"src": "p0", "dst": f"p{n}"} for n in range(1, 6)], mode="append", type="Knows")
    return made


def rows(store: GraphStore, *columns: str, branch: str = "main", table: str = "node:Person") -> list[dict[str, Any]]:
    pin = store.snapshot(branch=branch).pin(table)
    return store.tables.scan_table(table_of(pin), columns=["id", *columns], order_by=["id"]).to_pylist()


def lengths(table: pa.Table) -> pa.Array:
    return pc.utf8_length(table["bio"]).combine_chunks()


def test_a_backfill_sets_what_is_missing_on_a_branch(spark: Any, store: GraphStore) -> None:
    from omnigraph.spark.jobs.backfill import backfill

    before = rows(store, "bio", "length", "_rowid")
    result = backfill(
        spark, store, "Person", "length", lengths, inputs=["bio"], branch="fill", from_="main", actor="act-ada"
    )
    assert result.branch_created
    assert [row["length"] for row in rows(store, "length", branch="fill")] == [None, 99, 2, 3, 4, 5]
    after = rows(store, "bio", "length", "_rowid", branch="fill")
    assert [(row["id"], row["bio"], row["_rowid"]) for row in after] == [
        (row["id"], row["bio"], row["_rowid"]) for row in before
    ]
    assert rows(store, "bio", "length", "_rowid") == before


def test_a_key_and_an_unknown_property_are_refused(spark: Any, store: GraphStore) -> None:
    from omnigraph.spark.jobs.backfill import backfill

    with pytest.raises(BadRequest, match="part of the key"):
        backfill(spark, store, "Person", "slug", lengths, inputs=["bio"])
    with pytest.raises(BadRequest, match="no property `lenght`"):
        backfill(spark, store, "Person", "lenght", lengths, inputs=["bio"])


def test_an_analysis_goes_back_as_a_property_on_a_branch(spark: Any, store: GraphStore) -> None:
    from omnigraph.spark.jobs.analytics import pagerank
    from omnigraph.spark.jobs.backfill import write_back
    from omnigraph.spark.source.datasource import to_spark

    edges = to_spark(spark, store, "Knows", columns=["src", "dst"])
    ranks = pagerank(edges, to_spark(spark, store, "Person", columns=["id"]), max_rounds=3)
    result = write_back(spark, store, ranks, "Person", branch="ranked", from_="main")
    assert result.rows_loaded == 6
    assert sum(row["rank"] for row in rows(store, "rank", branch="ranked")) == pytest.approx(1)
    assert {row["rank"] for row in rows(store, "rank")} == {None}


def test_a_result_becomes_a_frame(spark: Any, store: GraphStore) -> None:
    from omnigraph.query.lower.compile import compile_query
    from omnigraph.read.run import run_query
    from omnigraph.spark.result_frames import result_frame

    snapshot = store.snapshot()
    catalog = store.catalog(snapshot.schema_digest)
    compiled = compile_query("query q() { match { $p: Person } return { $p, $p.bio } limit 3 }", catalog)
    frame = result_frame(run_query(store, snapshot, catalog, compiled), spark)  # type: ignore[arg-type]
    assert [row["p"]["@id"] for row in frame.collect()] == ["p0", "p1", "p2"]
