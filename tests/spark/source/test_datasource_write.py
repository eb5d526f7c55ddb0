"""Writing through the data source: the checks and the commit of every other load."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from omnigraph.failpoints import ENVIRONMENT_VARIABLE
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.commit.staging_marks import MARKS
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.maintain.verify import verify
from omnigraph.spark.source.datasource import register
from omnigraph.write.load.load import load
from tests.spark.failures.graph_files import counted, left_over

pytestmark = pytest.mark.spark

SCHEMA = "node Person { slug: String @key  age: I32? }\nedge Knows: Person -> Person { @unique(src, dst) }"


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    made = create_store(str(tmp_path / "graph.omni"), SCHEMA)
    load(made, [{"slug": f"p{n}", "age": n} for n in range(5)], mode="append", type="Person")
    return made


def write(frame: Any, store: GraphStore, type: str, mode: str = "append", **options: str) -> None:
    frame.write.format("omnigraph").option("type", type).options(**options).mode(mode).save(store.uri)


def read(spark: Any, store: GraphStore, type: str, **options: str) -> Any:
    return spark.read.format("omnigraph").option("type", type).options(**options).load(store.uri)


def test_a_frame_is_appended_as_one_commit(spark: Any, store: GraphStore) -> None:
    before = store.snapshot().head
    frame = spark.createDataFrame([("p0", "p1"), ("p1", "p2"), ("p2", "p3")], "a string, b string").repartition(3)
    write(frame, store, "Knows", map="a=src,b=dst", actor="act-ada")
    head = store.snapshot().head
    assert (head.parent_commit_id, head.actor_id) == (before.graph_commit_id, "act-ada")
    rows = read(spark, store, "knows", columns="src,dst").collect()
    assert {tuple(row) for row in rows} == {("p0", "p1"), ("p1", "p2"), ("p2", "p3")}
    assert list(store.objects.list(MARKS)) == [], "the mark of the write is still there"


def test_a_session_that_never_heard_of_the_format_finds_it(spark: Any, store: GraphStore) -> None:
    fresh = spark.newSession()
    assert {row.slug for row in read(fresh, store, "Person").where("age > 2").collect()} >= {"p3", "p4"}


@pytest.mark.parametrize(
    ("type", "rows", "schema", "message"),
    [
        ("Knows", [("p0", "ghost")], "src string, dst string", "missing_endpoint"),
        ("Person", [("p0", 1)], "slug string, age int", "existing_id|exists already"),
        ("Person", [("q", 1), ("q", 2)], "slug string, age int", "duplicate_id"),
        ("Person", [(None, 1)], "slug string, age int", "missing_key"),
        ("Persn", [("q",)], "slug string", "did you mean `Person`"),
        ("Person", [("q",)], "slg string", "did you mean `slug`"),
    ],
)
def test_what_breaks_a_rule_is_refused_and_leaves_nothing(
    spark: Any, store: GraphStore, type: str, rows: list[Any], schema: str, message: str
) -> None:
    head = store.snapshot().head
    files = sorted(Path(store.root.path).rglob("*.lance"))
    with pytest.raises(Exception, match=message):
        write(spark.createDataFrame(rows, schema), store, type)
    assert store.snapshot().head == head
    assert sorted(Path(store.root.path).rglob("*.lance")) == files
    assert list(store.objects.list(MARKS)) == [], "the mark of the write is still there"


def test_overwriting_replaces_all_rows_of_the_type_and_must_leave_a_valid_graph(spark: Any, store: GraphStore) -> None:
    load(store, [{"src": "p0", "dst": "p1"}, {"src": "p1", "dst": "p2"}], mode="append", type="Knows")
    create_branch(store, "afresh", "main")
    frame = spark.createDataFrame([("p7",), ("p8",)], "slug string")
    with pytest.raises(AnalysisException, match="dangling_edge"):
        write(frame, store, "Person", mode="overwrite", branch="afresh")
    write(spark.createDataFrame([("p1", "p0")], "src string, dst string"), store, "Knows", "overwrite", branch="afresh")
    assert [tuple(row) for row in read(spark, store, "Knows", branch="afresh", columns="src,dst").collect()] == [
        ("p1", "p0")
    ]
    assert read(spark, store, "Knows").count() == 2


def test_the_first_write_to_a_table_on_a_branch_forks_it(spark: Any, store: GraphStore) -> None:
    create_branch(store, "own", "main")
    location = store.snapshot(branch="own").pin("node:Person").location
    before = {fork.name for fork in store.tables.list_forks(location)}
    with pytest.raises(AnalysisException, match="exists already"):
        write(spark.createDataFrame([("p0",)], "slug string"), store, "Person", branch="own")
    assert {fork.name for fork in store.tables.list_forks(location)} == before, "the fork of a refused write stays"
    people = read(spark, store, "Person").count()
    for slug in ("first", "second"):
        write(spark.createDataFrame([(slug,)], "slug string"), store, "Person", branch="own")
    assert read(spark, store, "Person", branch="own").count() == people + 2
    assert read(spark, store, "Person").count() == people
    assert len({fork.name for fork in store.tables.list_forks(location)} - before) == 1
    assert verify(store).ok


def test_a_frame_is_read_at_a_branch_a_commit_or_a_version(spark: Any, store: GraphStore) -> None:
    commit = store.snapshot().head
    load(store, [{"slug": "later"}], mode="append", type="Person")
    create_branch(store, "side", "main")
    load(store, [{"slug": "aside"}], mode="append", type="Person", branch="side")
    now = read(spark, store, "Person").count()
    assert read(spark, store, "Person", snapshot=commit.graph_commit_id).count() == now - 1
    assert read(spark, store, "Person", version=str(commit.manifest_version)).count() == now - 1
    assert read(spark, store, "Person", branch="side").where("slug = 'aside'").count() == 1
    with pytest.raises(Exception, match="no type `Persn`; did you mean `Person`"):
        read(spark, store, "Persn")


def test_many_keys_are_checked_across_tasks_and_leave_nothing_behind(spark: Any, store: GraphStore) -> None:
    people = spark.range(8000).selectExpr("concat('someone-with-a-long-name-', id) as slug").repartition(2)
    write(people, store, "Person")
    assert list(store.objects.list(MARKS)) == []
    edges = people.selectExpr("slug as src", "concat('someone-with-a-long-name-', hash(slug) % 8000) as dst")
    with pytest.raises(Exception, match=r"missing_endpoint"):
        write(edges, store, "Knows")
    twice = people.union(people.limit(1)).selectExpr("slug as src", "'p1' as dst")
    with pytest.raises(Exception, match=r"unique"):
        write(twice, store, "Knows")
    assert list(store.objects.list(MARKS)) == []
    assert store.snapshot().pin("node:Person").row_count == 8005
    assert verify(store).ok


@contextmanager
def failing_at(spark: Any, failpoint: str, what: str) -> Iterator[None]:
    """Tasks of frame writes fail there."""
    spark.sparkContext.environment[ENVIRONMENT_VARIABLE] = f"{failpoint}={what}"
    register(spark)
    try:
        yield
    finally:
        del spark.sparkContext.environment[ENVIRONMENT_VARIABLE]
        register(spark)


@pytest.mark.parametrize("what", ["kill", "raise"])
def test_a_task_that_is_lost_after_writing_doubles_no_row_and_leaves_no_file(
    spark: Any, store: GraphStore, what: str
) -> None:
    people = spark.range(300).selectExpr("concat('n', id) as slug").repartition(2)
    with failing_at(spark, "frame.written.first", what):
        write(people, store, "Person")
    assert counted(store) == [0, 305]
    assert left_over(store) == []


@pytest.mark.parametrize("branch", ["main", "side"])
def test_a_frame_write_whose_tasks_always_die_leaves_nothing(spark: Any, store: GraphStore, branch: str) -> None:
    create_branch(store, "side", "main")
    before = {entry.path for entry in store.objects.list("nodes")}
    people = spark.range(300).selectExpr("concat('n', id) as slug").repartition(2)
    with failing_at(spark, "frame.written", "kill"), pytest.raises(Exception, match="Python worker exited"):
        write(people, store, "Person", branch=branch)
    assert {entry.path for entry in store.objects.list("nodes")} == before
    assert list(store.objects.list(MARKS)) == []
    write(people, store, "Person", branch=branch)
    assert store.snapshot(branch=branch).pin("node:Person").row_count == 305
