"""Frames that are Parquet files as they are, read by the tasks themselves: which are, and that it changes nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import BadRequest, ValidationFailed
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store

pytestmark = pytest.mark.spark

SCHEMA = """
node Person {
  slug: String @key  age: I32?  score: F64?  ratio: F32?  born: Date?  seen: DateTime?  ok: Bool?  big: I64?
  taste: Vector(2)?
}
edge Knows: Person -> Person { since: Date? }
"""
ROWS = 60
COLUMNS: dict[str, pa.Array] = {
    "slug": pa.array([f"p{n}" for n in range(ROWS)]),
    "age": pa.array([None if n % 7 == 0 else n for n in range(ROWS)], pa.int32()),
    "score": pa.array([None if n == 3 else n / 7 for n in range(ROWS)]),
    "ratio": pa.array([n / 3 for n in range(ROWS)], pa.float32()),
    "born": pa.array([date(1950 + n, 1 + n % 12, 1) for n in range(ROWS)]),
    "seen": pa.array([datetime(2020, 1, 1, n % 24, tzinfo=UTC) for n in range(ROWS)], pa.timestamp("us", "UTC")),
    "ok": pa.array([None if n % 5 == 0 else n % 2 == 0 for n in range(ROWS)]),
    "big": pa.array([2**60 + n for n in range(ROWS)]),
    "taste": pa.array([[n / 2, 1.0] for n in range(ROWS)], pa.list_(pa.float32())),
}


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    return create_store(str(tmp_path / "graph.omni"), SCHEMA)


def written(path: Path, columns: dict[str, pa.Array] | None = None, **options: Any) -> str:
    pq.write_table(pa.table(columns or COLUMNS), path, row_group_size=25, **options)
    return str(path)


def scan_of(frame: Any) -> Any:
    from omnigraph.spark.load.parquet_scans import parquet_scan

    return parquet_scan(frame)


def load(spark: Any, store: GraphStore, data: Any, **options: Any) -> Any:
    from omnigraph.spark.load.load import load as load_on_spark

    return load_on_spark(spark, store, data, mode="append", **options)


def stored(store: GraphStore, *columns: str) -> list[dict[str, Any]]:
    pin = store.snapshot().pin("node:Person")
    return sorted(
        store.tables.scan_table(table_of(pin), columns=list(columns)).to_pylist(), key=lambda row: row["slug"]
    )


@pytest.fixture
def set_conf(spark: Any) -> Iterator[Any]:
    kept: dict[str, str] = {}

    def set_it(name: str, value: str) -> None:
        kept[name] = spark.conf.get(name)
        spark.conf.set(name, value)

    yield set_it
    for name, value in kept.items():
        spark.conf.set(name, value)


# --- which frames ----------------------------------------------------------------------------------------------------


def test_columns_that_are_left_out_and_renamed_are_followed(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(written(tmp_path / "a b%.parquet"))
    chosen = frame.drop("score").withColumnRenamed("age", "years").selectExpr("years", "slug", "years AS again")
    scan = scan_of(chosen)
    assert scan.columns == (("age", "years"), ("slug", "slug"), ("age", "again"))
    assert [file.path for file in scan.files] == [str(tmp_path / "a b%.parquet")]


def test_a_directory_of_files_and_a_schema_of_the_callers_are_followed(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(3):
        written(folder / f"{number}.parquet")
    written(folder / "_hidden.parquet")
    frame = spark.read.schema("slug string, age int").option("pathGlobFilter", "[01].parquet").parquet(str(folder))
    scan = scan_of(frame)
    assert [Path(file.path).name for file in scan.files] == ["0.parquet", "1.parquet"]
    assert scan.columns == (("slug", "slug"), ("age", "age"))


@pytest.mark.parametrize(
    "change",
    [
        "slug <> 'p1'",
        "cast(age AS bigint) AS age",
        "upper(slug) AS slug",
        "_metadata.file_name AS slug",
        "'x' AS slug",
    ],
)
def test_whatever_computes_is_left_to_spark(spark: Any, tmp_path: Path, change: str) -> None:
    frame = spark.read.parquet(written(tmp_path / "a.parquet"))
    assert scan_of(frame) is not None
    changed = frame.where(change) if " <> " in change else frame.selectExpr(change)
    assert scan_of(changed) is None


def test_limits_unions_and_caches_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(written(tmp_path / "a.parquet"))
    for other in (frame.limit(3), frame.union(frame), frame.distinct(), frame.sample(0.5), frame.join(frame, "slug")):
        assert scan_of(other) is None
    kept = spark.read.parquet(written(tmp_path / "b.parquet")).cache()
    assert scan_of(kept) is None
    kept.unpersist()


def test_values_in_the_names_of_directories_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "all" / "age=4").mkdir(parents=True)
    written(tmp_path / "all" / "age=4" / "a.parquet", {"slug": COLUMNS["slug"]})
    assert scan_of(spark.read.parquet(str(tmp_path / "all"))) is None


def test_options_and_settings_that_change_a_meaning_are_left_to_spark(
    spark: Any, tmp_path: Path, set_conf: Any
) -> None:
    path = written(tmp_path / "a.parquet")
    assert scan_of(spark.read.option("mergeSchema", "true").parquet(path)) is None
    assert scan_of(spark.read.option("datetimeRebaseMode", "LEGACY").parquet(path)) is None
    other = spark.newSession()
    other.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    assert scan_of(other.read.parquet(path)) is None
    set_conf("spark.sql.files.ignoreCorruptFiles", "true")
    assert scan_of(spark.read.parquet(path)) is None


@pytest.mark.parametrize(
    "column",
    [
        pa.array([date(1500, 1, 1)] * ROWS),
        pa.array([datetime(1850, 1, 1, tzinfo=UTC)] * ROWS, pa.timestamp("us", "UTC")),
        pa.array([datetime(2020, 1, 1)] * ROWS, pa.timestamp("us")),
        pa.array([7] * ROWS, pa.uint32()),
        pa.array(["a"] * ROWS).dictionary_encode(),
        pa.array([1] * ROWS, pa.decimal128(20, 0)),
    ],
    ids=["old date", "old moment", "local time", "unsigned", "dictionary", "decimal"],
)
def test_types_that_may_be_read_otherwise_are_left_to_spark(spark: Any, tmp_path: Path, column: pa.Array) -> None:
    path = written(tmp_path / "a.parquet", {"slug": COLUMNS["slug"], "other": column})
    frame = spark.read.parquet(path)
    assert scan_of(frame) is None
    assert scan_of(frame.select("slug")) is not None


def test_moments_of_the_old_kind_and_dates_without_statistics_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    old = written(tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert scan_of(spark.read.parquet(old).select("seen")) is None
    bare = written(tmp_path / "b.parquet", write_statistics=False)
    assert scan_of(spark.read.parquet(bare).select("born")) is None
    assert scan_of(spark.read.parquet(bare).select("slug")) is not None


def test_files_that_differ_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    written(folder / "0.parquet", {"slug": COLUMNS["slug"], "age": COLUMNS["age"]})
    written(folder / "1.parquet", {"slug": COLUMNS["slug"]})
    frame = spark.read.schema("slug string, age int").parquet(str(folder))
    assert scan_of(frame) is None
    assert scan_of(frame.select("slug")) is not None
    wider = spark.read.schema("slug string, age bigint").parquet(str(folder / "0.parquet"))
    assert scan_of(wider) is None


# --- what is loaded --------------------------------------------------------------------------------------------------


def test_what_is_loaded_is_what_spark_would_read(spark: Any, tmp_path: Path) -> None:
    """Random choices of columns, filters and casts: the graph has the rows that Spark itself collects."""
    from pyspark.sql.functions import col

    draw = random.Random(7)
    direct = 0
    for number in range(12):
        store = create_store(str(tmp_path / f"g{number}"), SCHEMA)
        chosen = ["slug", *draw.sample([name for name in COLUMNS if name != "slug"], draw.randint(1, 5))]
        draw.shuffle(chosen)
        frame = spark.read.parquet(written(tmp_path / f"{number}.parquet")).select(*chosen)
        step = draw.choice(["", "", "where", "cast", "swap"])
        if step == "where":
            frame = frame.where(col("slug") > "p3")
        elif step == "cast" and "age" in chosen:
            frame = frame.withColumn("age", col("age").cast("bigint") + 1)
        elif step == "swap":
            frame = frame.withColumnsRenamed({"slug": "key_of_it"})
        mapped = {"key_of_it": "slug"} if step == "swap" else None
        direct += scan_of(frame) is not None
        load(spark, store, frame, type="Person", columns=mapped)
        names = ["slug" if name == "key_of_it" else name for name in frame.columns]
        wanted = [dict(zip(names, row, strict=True)) for row in frame.collect()]
        assert _shown(stored(store, *names)) == _shown(sorted(wanted, key=lambda row: row["slug"]))
    assert 3 <= direct <= 11


def _shown(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{name: str(_moment(value)) for name, value in sorted(row.items())} for row in rows]


def _moment(value: Any) -> Any:
    """Spark collects moments in the time of this process, without a zone."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def test_edges_name_the_file_and_the_record_of_a_missing_end(spark: Any, tmp_path: Path, store: GraphStore) -> None:
    people = spark.read.parquet(written(tmp_path / "people.parquet"))
    load(spark, store, people, type="Person")
    ends = {"a": COLUMNS["slug"], "b": pa.array(["nobody" if n == 41 else "p0" for n in range(ROWS)])}
    frame = spark.read.parquet(written(tmp_path / "knows.parquet", ends))
    with pytest.raises(ValidationFailed) as refused:
        load(spark, store, frame, type="Knows", src="a", dst="b")
    only = refused.value.violations[0]
    assert (only.source, only.record, only.property) == (str(tmp_path / "knows.parquet"), 42, "dst")
    load(spark, store, frame.where("b <> 'nobody'"), type="Knows", src="a", dst="b")
    assert store.snapshot().pin("edge:Knows").row_count == ROWS - 1


def test_mistakes_about_columns_are_told_as_for_every_frame(spark: Any, tmp_path: Path, store: GraphStore) -> None:
    frame = spark.read.parquet(written(tmp_path / "a.parquet"))
    for change in (frame.withColumnRenamed("age", "years"), frame.selectExpr("slug", "age + 1 AS years")):
        with pytest.raises(BadRequest, match="the column `years` is no property of Person"):
            load(spark, store, change, type="Person")
    with pytest.raises(BadRequest) as untyped:
        load(spark, store, frame)
    with pytest.raises(BadRequest) as computed:
        load(spark, store, frame.where("slug <> 'x'"))
    assert str(untyped.value) == str(computed.value)
