"""Options that nobody has are told as that, at each of the four places that take some; what Spark puts in is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest

pytestmark = pytest.mark.spark

SCHEMA = "node Person { slug: String @key  age: I32? }"
COLUMNS = "slug string, age int"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    with og.init(tmp_path_factory.mktemp("options") / "graph.omni", schema=SCHEMA) as graph:
        graph.load([{"slug": "a", "age": 1}], mode="append", type="Person")
        return graph.uri


def used(kind: str, options: dict[str, str]) -> None:
    """What Spark calls at the start of each kind of use."""
    from pyspark.sql.types import IntegerType, StringType, StructType

    from omnigraph.spark.source.datasource import OmniGraphDataSource

    source, columns = OmniGraphDataSource(options), StructType().add("slug", StringType()).add("age", IntegerType())
    if kind == "read":
        source.reader(source.schema())
    elif kind == "write":
        source.writer(columns, False)
    elif kind == "read stream":
        source.streamReader(source.schema())
    else:
        source.streamWriter(columns, False)


FEED, TYPE = {"startingFrom": "now"}, {"type": "Person"}


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("read", {**TYPE, "barnch": "b"}, "the data source has no option `barnch`; did you mean `branch`"),
        ("read", {**TYPE, "SNAPSHT": "b"}, "no option `snapsht`; did you mean `snapshot`"),
        ("read", {**TYPE, "startingfrm": "now"}, "no option `startingfrm`; did you mean `startingFrom`"),
        ("read", {**TYPE, "asOf": "yesterday"}, "no option `asof`; there are type, branch, snapshot, version"),
        ("read", {**TYPE, **FEED}, "no option `startingfrom`; it is for streams out of a graph: spark.readStream"),
        ("read", {**TYPE, "maxcommitspertrigger": "1"}, "it is for streams out of a graph: spark.readStream"),
        ("write", {**TYPE, "barnch": "b"}, "the data source has no option `barnch`; did you mean `branch`"),
        ("write", {**TYPE, "mod": "merge"}, r'did you mean `mode`\? how to write is said by .mode\("append"\)'),
        ("write", {**TYPE, "Mode": "merge"}, r'no option `mode`; how to write is said by .mode\("append"\)'),
        ("write", {**TYPE, "badRecords": "x"}, "it is for streams into a graph"),
        ("write", {**TYPE, "snapshot": "x"}, "A snapshot cannot be written to"),
        ("read stream", {"startingfrm": "now"}, "no option `startingfrm`; did you mean `startingFrom`"),
        ("read stream", {**TYPE, "startingfrm": "now"}, "no option `startingfrm`; did you mean `startingFrom`"),
        ("read stream", {**FEED, "barnch": "b"}, "no option `barnch`; did you mean `branch`"),
        ("read stream", {**FEED, "ongaps": "b"}, "no option `ongaps`; did you mean `onGap`"),
        (
            "read stream",
            {"types": "Person"},
            "`types`; it is for streams out of a graph: spark.readStream with startingFrom",
        ),
        ("read stream", {**TYPE, "startingFrom": ""}, "Say where the stream starts"),
        ("read stream", {**FEED, **TYPE, "types": "Person"}, "a stream has one of the two options"),
        (
            "read stream",
            {**FEED, **TYPE, "kinds": "edge"},
            "Person is of the kind node, and the stream takes kinds=edge",
        ),
        ("write stream", {**TYPE, "mod": "merge"}, "into a graph has no option `mod`; did you mean `mode`"),
        ("write stream", {**TYPE, "barnch": "b"}, "into a graph has no option `barnch`; did you mean `branch`"),
        ("write stream", {**TYPE, "badrecord": "b"}, "no option `badrecord`; did you mean `badRecords`"),
        ("write stream", {**TYPE, "zzz": "b"}, "no option `zzz`; there are type, mode, branch"),
    ],
)
def test_an_option_that_is_not_there_is_told(uri: str, kind: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        used(kind, {"path": uri, **options})


def test_nothing_that_spark_puts_in_is_refused(spark: Any, uri: str, tmp_path: Path) -> None:
    """A name of a query and of a source, a checkpoint, a place, a schema, a view; and every name in any case."""
    read = spark.read.format("omnigraph").option("TYPE", "Person").option("Branch", "main")
    assert read.load(uri).count() == read.schema("slug string").load(uri).count() == 1
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW some USING omnigraph OPTIONS (path '{uri}', TYPE 'Person')")
    spark.sql("INSERT INTO some (slug, age) VALUES ('b', 2)")
    spark.createDataFrame([("c", "c", 3)], f"id string, {COLUMNS}").write.insertInto("some")
    spark.catalog.dropTempView("some")
    spark.sql(f"CREATE TABLE kept USING omnigraph OPTIONS (path '{uri}', type 'Person') COMMENT 'x'")
    spark.sql("DROP TABLE kept")
    frame = spark.createDataFrame([("d", 4)], COLUMNS)
    frame.write.format("omnigraph").option("TYPE", "Person").option("ifrows", "append").mode("append").save(uri)

    def run(writer: Any, name: str, place: str) -> None:
        writer = writer.queryName(name).option("checkpointLocation", str(tmp_path / name)).outputMode("append")
        writer.trigger(availableNow=True).start(place).awaitTermination()

    changes = spark.readStream.format("omnigraph").option("STARTINGFROM", "beginning").option("TYPES", "Person")
    run(changes.load(uri).writeStream.format("parquet"), "out", str(tmp_path / "changes"))
    assert {row.id for row in spark.read.parquet(str(tmp_path / "changes")).collect()} == {"a", "b", "c", "d"}
    lines = tmp_path / "lines"
    lines.mkdir()
    (lines / "1.txt").write_text('{"type": "Person", "data": {"slug": "e"}}\n')
    incoming = spark.readStream.text(str(lines))
    run(incoming.writeStream.format("omnigraph").option("MODE", "merge"), "in", uri)
    assert read.load(uri).count() == 5


def test_spark_brings_it_to_whoever_reads_a_stream(spark: Any, uri: str) -> None:
    with pytest.raises(Exception, match="no option `startingfrm`; did you mean `startingFrom`"):
        spark.readStream.format("omnigraph").option("startingfrm", "now").load(uri)
