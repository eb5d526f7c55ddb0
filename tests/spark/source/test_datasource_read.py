"""Reading tables through the data source: pinned, pushed down, partitioned by fragments, every type."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import BadRequest, NotFound
from omnigraph.spark.source.scan_plan import ScanPlan, Stretch, plan_from_text, scan_plan
from omnigraph.spark.source.spark_filters import is_exact, to_condition
from omnigraph.storage.reading.blobs import blob_array, blob_field
from omnigraph.storage.reading.filters import Compare
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("small", pa.int32()),
        ("large", pa.uint64()),
        ("count", pa.uint32()),
        ("ratio", pa.float64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("vector", pa.list_(pa.float32(), 2)),
        ("tags", pa.list_(pa.string())),
    ]
)


def row(number: int) -> dict[str, Any]:
    return {
        "id": f"k{number}",
        "small": number,
        "large": 2**64 - 1 - number,
        "count": 2**32 - 1 - number,
        "ratio": number / 4,
        "flag": number % 2 == 0,
        "day": date(2026, 1, 1 + number),
        "moment": datetime(2026, 1, 2, 3, 4, number, 5, tzinfo=UTC),
        "vector": [float(number), 0.5],
        "tags": ["a", f"t{number}"],
    }


EMPTY = dict.fromkeys(SCHEMA.names) | {"id": "empty"}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, TableStore, TableVersion]:
    root = tmp_path_factory.mktemp("tables")
    tables = TableStore(parse_root(str(root)))
    first = tables.create("nodes/n1", SCHEMA)
    for start in (0, 4):
        rows = [row(n) for n in range(start, start + 4)] + ([EMPTY] if start else [])
        first = tables.commit_staged(tables.stage_append(first, pa.Table.from_pylist(rows, schema=SCHEMA)), "test")
    return str(root), tables, first


def frame(
    spark: Any, stored: tuple[str, TableStore, TableVersion], columns: list[str] | None = None, push_down: bool = False
) -> Any:
    from omnigraph.spark.source.datasource import table_frame

    return table_frame(spark, stored[0], stored[1], stored[2], columns, push_down=push_down)


def test_every_type_comes_through_and_goes_back(spark: Any, stored: Any) -> None:
    from omnigraph.spark.types import from_travelling

    back = from_travelling(frame(spark, stored).toArrow(), SCHEMA)
    found = sorted(back.to_pylist(), key=lambda r: r["id"])
    assert found == sorted([*(row(n) for n in range(8)), EMPTY], key=lambda r: r["id"])


def reader_of(stored: Any, rows_per_partition: int) -> Any:
    from omnigraph.spark.source.readers import FilteringReader

    root, tables, version = stored
    plan = scan_plan(version, tables.schema(version), tables.fragments(version))
    assert plan_from_text(plan.to_text()) == plan
    return FilteringReader(root, plan, {"id": False}, rows_per_partition)


def ids_read(reader: Any, partitions: list[Any]) -> list[str]:
    return [row["id"] for part in partitions for batch in reader.read(part) for row in batch.to_pylist()]


def test_partitions_are_equal_parts_of_the_fragments(stored: Any) -> None:
    reader = reader_of(stored, 5)
    one_each = reader.partitions()
    assert [p.stretch for p in one_each] == [Stretch((0, 1), 0, 5), Stretch((1,), 1, 4)]
    assert [p.stretch for p in reader_of(stored, 100).partitions()] == [Stretch((0, 1))]
    assert ids_read(reader, one_each[:1]) == ["k0", "k1", "k2", "k3", "k4"]


def test_a_filtered_fragment_is_read_as_a_whole(stored: Any) -> None:
    from pyspark.sql.datasource import EqualTo

    reader = reader_of(stored, 2)
    parts = reader.partitions()
    assert len(parts) == 5
    assert ids_read(reader, parts) == [*(f"k{n}" for n in range(8)), "empty"]
    assert list(reader.pushFilters([EqualTo(("small",), 3)])) == []
    assert [p.stretch for p in reader.partitions()] == [Stretch((0,)), Stretch((1,))]


@given(st.lists(st.integers(1, 9), max_size=6), st.integers(1, 30))
def test_every_row_is_in_one_partition(sizes: list[int], rows: int) -> None:
    version = TableVersion("nodes/n1", None, 1)
    plan = ScanPlan(version, pa.schema([]), tuple((10 + number, size) for number, size in enumerate(sizes)))
    found: list[tuple[int, int]] = []
    for part in plan.stretches(rows, filtered=False):
        held = [(number, row) for number, size in plan.fragments if number in part.fragments for row in range(size)]
        start = part.offset or 0
        found += held[start : start + (len(held) if part.limit is None else part.limit)]
        assert part.limit is None or part.limit <= rows
    assert found == [(number, row) for number, size in plan.fragments for row in range(size)]


def test_planning_a_read_opens_no_table_and_loads_no_lance(stored: Any) -> None:
    reader = reader_of(stored, 5)
    code = """
import pickle, sys
from pyspark.sql.datasource import EqualTo
reader = pickle.load(sys.stdin.buffer)
assert list(reader.pushFilters([EqualTo(("small",), 3)])) == []
assert len(reader.partitions()) == 2
assert not {"lance", "pandas", "duckdb"} & set(sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(reader), capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("small = 3", {"k3"}),
        ("id IN ('k1', 'k5', 'nobody')", {"k1", "k5"}),
        ("id LIKE 'k%' AND small > 5", {"k6", "k7"}),
        ("id LIKE '%mpt%'", {"empty"}),
        ("small IS NULL", {"empty"}),
        ("small IS NOT NULL AND NOT (small < 7)", {"k7"}),
        ("large = 18446744073709551613", {"k2"}),
        ("ratio >= 1.5", {"k6", "k7"}),
        ("day = DATE'2026-01-03'", {"k2"}),
        ("moment < TIMESTAMP'2026-01-02T03:04:02Z'", {"k0", "k1"}),
        ("flag = true AND small <> 0", {"k2", "k4", "k6"}),
    ],
)
def test_filters_mean_the_same_pushed_down(spark: Any, stored: Any, where: str, expected: set[str]) -> None:
    for push_down in (False, True):
        found = frame(spark, stored, push_down=push_down).where(where).select("id").collect()
        assert {each.id for each in found} == expected


def test_a_frame_that_stands_twice_is_read_for_each_place(spark: Any, stored: Any) -> None:
    people = frame(spark, stored, ["id"])
    pairs = people.where("id = 'k3'").crossJoin(people.toDF("other")).collect()
    assert {(pair.id, pair.other) for pair in pairs} == {
        ("k3", other) for other in [*(f"k{n}" for n in range(8)), "empty"]
    }
    people.createOrReplaceTempView("people_twice")
    query = "select count(*) as n from people_twice a, people_twice b where a.id = 'k1' and b.id <> 'k1'"
    assert spark.sql(query).collect()[0].n == 8


def test_a_small_table_is_known_to_be_small(spark: Any, stored: Any) -> None:
    """Rows of a data source are of no known size, and joins with them sort both sides."""
    from pyspark.sql import functions as f

    joined = frame(spark, stored, ["id"]).join(frame(spark, stored, ["id"]).toDF("other"), f.expr("id = other"))
    assert "BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()
    assert joined.count() == 9


def test_filters_reach_lance(stored: Any) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan, In, StringEndsWith

    reader = reader_of(stored, 100)
    left = list(
        reader.pushFilters([EqualTo(("small",), 3), StringEndsWith(("id",), "3"), GreaterThan(("ratio",), 0.5)])
    )
    assert [type(item).__name__ for item in left] == ["StringEndsWith", "GreaterThan"]
    (partition,) = reader.partitions()
    assert [batch.to_pylist() for batch in reader.read(partition)] == [[{"id": "k3"}]]
    assert to_condition(EqualTo(("small",), 3), SCHEMA) == Compare("small", "=", 3)
    assert to_condition(EqualTo(("tags",), 3), SCHEMA) is None
    assert is_exact(In(("id",), ("a", "b")))
    assert not is_exact(In(("ratio",), (0.5,)))


def test_only_the_named_columns_are_read(spark: Any, stored: Any) -> None:
    assert frame(spark, stored, ["small", "id"]).columns == ["small", "id"]
    with pytest.raises(NotFound, match=r"no column `smal`; did you mean `small`\?"):
        frame(spark, stored, ["smal"])
    for columns, reason in (([], "No column is named"), (["id", "id"], "`id` is named twice")):
        with pytest.raises(BadRequest, match=reason):
            frame(spark, stored, columns)


def test_a_column_that_is_never_null_says_so(spark: Any, stored: Any) -> None:
    """Save where rows could be inserted through the frame: an id that is left out is made."""
    assert [field.name for field in frame(spark, stored).schema if not field.nullable] == ["id"]
    assert all(field.nullable for field in frame(spark, stored, push_down=True).schema)
    for whole in (frame(spark, stored), frame(spark, stored, push_down=True)):
        assert whole.where("id is null").count() == 0


def test_a_frame_stays_at_its_snapshot(spark: Any, stored: Any) -> None:
    _, tables, version = stored
    before = frame(spark, stored, ["id"])
    more = pa.Table.from_pylist([row(20)], schema=SCHEMA)
    after = tables.commit_staged(tables.stage_append(version, more), "later")
    assert before.count() == 9
    assert frame(spark, (stored[0], tables, after), ["id"]).count() == 10


def test_an_empty_table_is_an_empty_frame(spark: Any, stored: Any) -> None:
    tables = stored[1]
    empty = tables.create("nodes/n2", SCHEMA)
    assert frame(spark, (stored[0], tables, empty)).collect() == []


def test_blobs_come_only_when_named(spark: Any, tmp_path: Path) -> None:
    tables = TableStore(parse_root(str(tmp_path)))
    schema = pa.schema([pa.field("id", pa.string()), blob_field("photo")])
    version = tables.create("nodes/n1", schema)
    rows = pa.table([pa.array(["a", "b"]), blob_array([b"\x00jpeg", None])], schema=schema)
    version = tables.commit_staged(tables.stage_append(version, rows), "test")
    stored = (str(tmp_path), tables, version)
    assert frame(spark, stored).columns == ["id"]
    assert {(r.id, r.photo) for r in frame(spark, stored, ["id", "photo"]).collect()} == {
        ("a", b"\x00jpeg"),
        ("b", None),
    }
