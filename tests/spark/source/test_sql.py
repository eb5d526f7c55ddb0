"""The data source in SQL, in Spark's save modes, and misused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.commit.staging_marks import MARKS
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.spark.source.datasource import register
from omnigraph.write.load.load import load

pytestmark = pytest.mark.spark

SCHEMA = "node Person { slug: String @key  age: I32? }\nedge Knows: Person -> Person"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    made = create_store(str(tmp_path_factory.mktemp("sql") / "graph.omni"), SCHEMA)
    load(made, [{"slug": f"p{n}", "age": n} for n in range(5)], mode="append", type="Person")
    load(made, [{"src": f"p{n}", "dst": f"p{n + 1}"} for n in range(4)], mode="append", type="Knows")
    return made


@pytest.fixture
def views(spark: Any, store: GraphStore) -> Iterator[Any]:
    """A view for each type, in SQL and from a frame."""
    options = f"path '{store.uri}', type"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW people USING omnigraph OPTIONS ({options} 'Person')")
    spark.read.format("omnigraph").option("type", "Knows").load(store.uri).createOrReplaceTempView("knows")
    yield spark
    for name in ("people", "knows"):
        spark.catalog.dropTempView(name)


def people(spark: Any, store: GraphStore, branch: str = "main") -> dict[str, int]:
    frame = spark.read.format("omnigraph").option("type", "Person").option("branch", branch).load(store.uri)
    return {row.slug: row.age for row in frame.collect()}


def test_views_of_nodes_and_edges_are_joined(views: Any) -> None:
    query = """
        SELECT a.slug, count(*) AS n, max(b.age) AS oldest FROM people a
        JOIN knows k ON k.src = a.id JOIN people b ON b.id = k.dst
        WHERE a.age BETWEEN 1 AND 2 GROUP BY a.slug ORDER BY a.slug
    """
    assert [tuple(row) for row in views.sql(query).collect()] == [("p1", 1, 2), ("p2", 1, 3)]


def test_rows_are_inserted_through_a_view_with_all_checks(views: Any, store: GraphStore) -> None:
    views.sql("INSERT INTO people (slug, age) VALUES ('inserted', 7)")
    by_position = views.createDataFrame([("by-position", "by-position", 8)], "id string, slug string, age int")
    by_position.write.insertInto("people")
    assert {"inserted": 7, "by-position": 8}.items() <= people(views, store).items()
    head = store.snapshot().head
    with pytest.raises(Exception, match="missing_endpoint"):
        views.sql("INSERT INTO knows (src, dst) VALUES ('p0', 'ghost')")
    assert store.snapshot().head == head


def test_a_table_of_the_catalog_points_to_views(spark: Any, store: GraphStore) -> None:
    """Spark 4.3 makes such a table and then hands the source none of its options."""
    spark.sql(f"CREATE TABLE friends USING omnigraph OPTIONS (path '{store.uri}', type 'Knows')")
    try:
        for statement in ("SELECT count(*) FROM friends", "INSERT INTO friends (src, dst) VALUES ('p0', 'p4')"):
            with pytest.raises(Exception, match="make a temporary view instead"):
                spark.sql(statement).collect()
    finally:
        spark.sql("DROP TABLE friends")
    assert store.snapshot().pin("edge:Knows").row_count == 4, "the graph went with the table"


def test_save_modes(spark: Any, store: GraphStore) -> None:
    create_branch(store, "modes", "main")
    frame = spark.createDataFrame([("extra", 1)], "slug string, age int")
    write = frame.write.format("omnigraph").option("type", "Person").option("branch", "modes")
    before = people(spark, store, "modes")
    for refused in ("ignore", "errorifexists"):
        with pytest.raises(Exception, match=r"cannot be written in the .* Please use either the \"Append\" or"):
            write.mode(refused).save(store.uri)
    write.option("ifRows", "ignore").mode("append").save(store.uri)
    with pytest.raises(Exception, match=r"Person has \d+ rows on modes.*ifRows=error"):
        write.option("ifRows", "error").mode("append").save(store.uri)
    assert people(spark, store, "modes") == before
    assert list(store.objects.list(MARKS)) == [], "the mark of a write that did nothing is still there"
    write.option("ifRows", "append").mode("append").save(store.uri)
    assert people(spark, store, "modes") == {**before, "extra": 1}
    with pytest.raises(Exception, match="dangling_edge"):
        write.mode("overwrite").save(store.uri)
    empty = spark.createDataFrame([], "src string, dst string")
    empty.write.format("omnigraph").option("type", "Knows").option("branch", "modes").mode("overwrite").save(store.uri)
    write.mode("overwrite").save(store.uri)
    assert people(spark, store, "modes") == {"extra": 1}
    assert len(people(spark, store)) >= 5


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({}, None, "Say which type"),
        ({"type": "Person", "brnch": "x"}, None, "no option `brnch`; did you mean `branch`"),
        ({"type": "Person", "version": "last"}, None, "`version` is a whole number above zero, and `last` is not"),
        ({"type": "Person", "version": "1", "snapshot": "x"}, None, "Give `snapshot` or `version`, not both"),
        ({"type": "Person", "branch": "nowhere"}, None, "nowhere"),
        ({"type": "Person", "columns": "slg"}, None, "did you mean `slug`"),
        ({"type": "Person"}, "slug int", "`slug` is of type string and the schema given says int"),
        (
            {"type": "Person"},
            "slug string, age int not null",
            "`age` may be null and the schema given says that it never",
        ),
        ({"type": "Person"}, "slg string", "did you mean `slug`"),
        ({"type": "Person", "pushDown": "perhaps"}, None, "`pushDown` is one of false, true"),
        ({"type": "Person", "rowsPerPartition": "0"}, None, "`rowsPerPartition` is a whole number above zero"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_misuse_is_told(store: GraphStore, options: dict[str, str], schema: str | None, message: str) -> None:
    """Told by the source itself: Spark brings the message to the caller as it is, wrapped in its own.

    With a session, which PySpark needs to read a schema that is a text.
    """
    from pyspark.sql.types import StructType

    from omnigraph.errors import OmniGraphError
    from omnigraph.spark.source.datasource import OmniGraphDataSource

    source = OmniGraphDataSource({"path": store.uri, **options})
    with pytest.raises(OmniGraphError, match=message):
        source.reader(source.schema() if schema is None else StructType.fromDDL(schema))


def test_a_schema_may_say_that_a_column_of_the_table_is_never_null(spark: Any, store: GraphStore) -> None:
    reader = spark.read.format("omnigraph").option("type", "Person")
    told = reader.schema("id string not null, slug string not null, age int").load(store.uri)
    assert [field.nullable for field in told.schema] == [False, False, True]
    assert {row.id: row.age for row in told.collect()} == people(spark, store)


def test_spark_brings_the_message_and_refuses_what_it_does_not_offer(spark: Any, store: GraphStore) -> None:
    with pytest.raises(Exception, match="Say which graph, and only one"):
        spark.read.format("omnigraph").option("type", "Person").load([store.uri, store.uri]).count()
    with pytest.raises(Exception, match="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"):
        spark.sql(f"SELECT * FROM omnigraph.`{store.uri}`")


def test_what_spark_prunes_is_what_was_named_when_the_frame_was_made(spark: Any, store: GraphStore) -> None:
    """Spark 4.3 does not say to a Python source which columns a query uses; once it does, this will tell."""

    def scanned(frame: Any) -> str:
        plan = frame._jdf.queryExecution().executedPlan().toString()
        return str(next(line for line in plan.splitlines() if "BatchScan" in line))

    whole = spark.read.format("omnigraph").option("type", "Person").load(store.uri)
    narrow = spark.read.format("omnigraph").option("type", "Person").option("columns", "slug").load(store.uri)
    assert "age" in scanned(whole.select("slug"))
    assert "age" not in scanned(narrow.select("slug"))


def test_an_empty_frame_leaves_no_fork(spark: Any, store: GraphStore) -> None:
    create_branch(store, "untouched", "main")
    location = store.snapshot(branch="untouched").pin("node:Person").location
    before = {fork.name for fork in store.tables.list_forks(location)}
    empty = spark.createDataFrame([], "slug string")
    empty.write.format("omnigraph").option("type", "Person").option("branch", "untouched").mode("append").save(
        store.uri
    )
    assert {fork.name for fork in store.tables.list_forks(location)} == before


def test_a_session_whose_filters_stay_with_spark_reads_with_a_filter(spark: Any, store: GraphStore) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    try:
        frame = spark.read.format("omnigraph").option("type", "Person").load(store.uri)
        assert [row.slug for row in frame.where("slug = 'p3'").collect()] == ["p3"]
    finally:
        spark.conf.set(name, before)


def test_a_thread_that_started_no_session_finds_the_format_once_it_is_registered_there(
    spark: Any, store: GraphStore
) -> None:
    create_branch(store, "threads")

    def write_and_read() -> dict[str, int]:
        register(spark)
        frame = spark.range(1).selectExpr("'from a thread' AS slug", "7 AS age")
        options = {"type": "Person", "branch": "threads"}
        frame.write.format("omnigraph").options(**options).mode("append").save(store.uri)
        return people(spark, store, "threads")

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(write_and_read).result()["from a thread"] == 7
