"""Groups and aggregates on Spark, bit for bit those of the process, and without a task that sees all rows.

The two engines share the meaning of aggregates, so what they agree on is looked at by a third: plain Python.
"""

from __future__ import annotations

import math
import random
import statistics
import struct
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.spark.query.groups import group_tasks, scan_groups
from omnigraph.spark.source import task_reads

pytestmark = pytest.mark.spark

SCHEMA = """
interface Thing { kind: String? }
node Item implements Thing {
    key: I32 @key
    kind: String?
    flag: Bool?
    small: I32?
    large: I64?
    count: U64?
    half: F32?
    number: F64?
    day: Date?
    moment: DateTime?
    mood: enum(good, bad, neither)?
}
node Other implements Thing { key: I32 @key  kind: String?  number: F64? }
edge Near: Item -> Item { weight: F64? }
"""
COLUMNS = ("kind", "flag", "small", "large", "count", "half", "number", "day", "moment", "mood")
ROWS = 600
ODD = [0.0, -0.0, math.nan, math.inf, 1e308, -1e308, 1e-300, 5e-324, 0.1, 0.2, -0.3, 1e16]


def items(chance: random.Random) -> list[dict[str, Any]]:
    made = []
    for key in range(ROWS):
        row: dict[str, Any] = {
            "key": key,
            "kind": chance.choice(["a", "b", "", "é", "a "]),
            "flag": chance.random() < 0.5,
            "small": chance.randrange(-3, 4),
            "large": chance.choice([chance.randrange(-9, 9), 2**61, -(2**61), 2**53 + 1]),
            "count": chance.choice([chance.randrange(9), 2**60, 2**53 + 1]),
            "half": chance.choice([0.5, -0.0, 0.0, 1.25, -7.0]),
            "number": chance.choice([*ODD[:2], *ODD[6:], chance.uniform(-1, 1)]),
            "day": f"20{chance.randrange(10, 14)}-01-01",
            "moment": f"20{chance.randrange(10, 14)}-01-01T00:00:00.5Z",
            "mood": chance.choice(["good", "bad", "neither"]),
        }
        made.append({name: None if name != "key" and chance.random() < 0.1 else value for name, value in row.items()})
    return made


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return items(random.Random(5))


@pytest.fixture(scope="module")
def graph(spark: Any, tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> Iterator[og.Graph]:
    made = og.init(tmp_path_factory.mktemp("grouping") / "graph", schema=SCHEMA)
    made.load([{"type": "Item", "data": row} for row in rows], mode="append")
    others = [{"key": key, "kind": "ab"[key % 2], "number": key / 7} for key in range(50)]
    made.load([{"type": "Other", "data": row} for row in others], mode="append")
    near = [(key, key * 7 % ROWS) for key in range(ROWS)]
    made.load(
        [{"edge": "Near", "from": str(a), "to": str(b), "data": {"weight": a / 3}} for a, b in near], mode="append"
    )
    yield made
    made.close()


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that a few hundred rows are read by several tasks."""
    monkeypatch.setattr(task_reads, "SMALLEST_TASK", 100)
    monkeypatch.setattr(task_reads, "LARGEST_TASK", 100)


def bits(value: Any) -> Any:
    """A value that is equal only to what is equal to the last bit; of not-a-number there is one."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    return [bits(item) for item in value] if isinstance(value, list) else value


def answer(graph: og.Graph, text: str, engine: str) -> list[tuple[Any, ...]]:
    found = graph.query(f"query q() {{ {text} }}", engine=engine).to_arrow().to_pylist()
    return [tuple(bits(value) for value in row.values()) for row in found]


def same(graph: og.Graph, text: str) -> list[tuple[Any, ...]]:
    found = answer(graph, text, "spark")
    assert found == answer(graph, text, "local")
    return found


EVERY = """count($i) as a, count($i.number) as b, sum($i.small) as c, avg($i.small) as d, min($i.number) as e,
    max($i.number) as f, sum($i.half) as g, avg($i.half) as h, count(distinct $i.half) as i, min($i.kind) as j,
    max($i.moment) as k, min($i.count) as l, max($i.flag) as m, avg($i.count) as n, avg($i.large) as o,
    sum($i.number) as p, avg($i.number) as q, sum(distinct $i.small) as r, max($i.mood) as s, min($i.day) as t,
    avg(distinct $i.number) as u, count(distinct $i.kind) as v, sum($i.small * 2 + 1) as w"""
SLOW = ", stddev($i.half) as x, median($i.number) as y, median($i.large) as z, stddev(distinct $i.small) as aa"


@pytest.mark.parametrize("few", [0, 65_536])
@pytest.mark.parametrize("key", COLUMNS)
def test_groups_by_every_type(graph: og.Graph, key: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Put together by Spark, and by the driver.
    monkeypatch.setattr(scan_groups, "FEW_STATES", few)
    found = same(graph, f"match {{ $i: Item }} return {{ $i.{key} as key, {EVERY} }} order {{ key }}")
    assert sum(row[1] for row in found) == ROWS


@pytest.mark.parametrize(
    "clauses",
    [
        "$i: Item",
        "$i: Item  $i.small > 0  $i.kind != null",
        "$i: Item  10 / ($i.key + 1) > 2",
        "$i: Item  $i.key < 0",
        "$i: Item  $i near $j",
        "$j: Item  $j $e:near $i  $e.weight > 5.0",
    ],
)
def test_everything_at_once(graph: og.Graph, clauses: str) -> None:
    same(graph, f"match {{ {clauses} }} return {{ {EVERY}{SLOW} }}")
    same(graph, f"match {{ {clauses} }} return {{ {EVERY} }}")
    same(graph, f"match {{ {clauses} }} return {{ $i.mood as key, {EVERY}{SLOW} }} order {{ key }}")


@pytest.mark.parametrize(
    "text",
    [
        "match { $i: Thing } return { $i.kind as key, count($i) as n, count(distinct $i) as m, $i.@type as t }"
        " order { key, t }",
        "match { $i: Item } return { $i.small + 1 as key, avg($i.number * 2.0) as n } order { n desc, key } limit 3",
        "match { $i: Item } return distinct { $i.kind, $i.flag } order { $i.kind, $i.flag }",
        "match { $i: Item } return { count($i) as n, collect($i.small) as all, stddev($i.small) as s }",
        "match { $i: Item } return { $i, sum($i.number) as n } order { n, $i } limit 5",
        "match { $i: Item } with { $i.mood as mood, avg($i.half) as mean } where mean > 0.0"
        ' match { $j: Item { mood: "good" } } return { mood, mean, count($j) as n } order { mood }',
        "match { $i: Item  $i $e:near $j } return { $i.mood as m, sum($e.weight) as w, stddev($e.weight) as s,"
        " median($j.number) as d } order { m }",
        "match { $i: Item } return { $i.mood as m, sum($i.small) as n } having { n > 3 } order { m }",
        "match { $i: Item } return { stddev($i.number) as n }",
        "match { $i: Item  $i.number > 1e300 } return { stddev($i.number) as n, sum($i.number) as s }",
        "match { $i: Item  $i.key < 1 } return { stddev($i.half) as n, median($i.half) as m }",
    ],
)
def test_shapes(graph: og.Graph, text: str) -> None:
    same(graph, text)


def test_sums_and_means_by_plain_python(graph: og.Graph, rows: list[dict[str, Any]]) -> None:
    text = "match { $i: Item } return { $i.mood as m, sum($i.number) as s, median($i.small) as d } order { m }"
    for mood, total, middle in answer(graph, text, "spark"):
        own = [row for row in rows if row["mood"] == mood]
        numbers = [Fraction(row["number"]) for row in own if row["number"] is not None]
        assert total == bits(float(sum(numbers, Fraction(0))) + 0.0)
        assert middle == bits(float(statistics.median(row["small"] for row in own if row["small"] is not None)))


@pytest.mark.parametrize("clauses", ["$i: Item", "$i: Item  $i near $j"])
@pytest.mark.parametrize("key", ["", "$i.mood as m, "])
def test_what_does_not_fit_is_the_same_error(graph: og.Graph, clauses: str, key: str) -> None:
    errors = []
    for engine in ("local", "spark"):
        text = f"query q() {{ match {{ {clauses}  $i.large > 99 }} return {{ {key}sum($i.large) as s }} }}"
        with pytest.raises(BadRequest) as caught:
            graph.query(text, engine=engine)
        errors.append((str(caught.value), caught.value.details))
    assert errors[0] == errors[1]


def test_rows_that_are_nearly_all_different_are_sent_on_as_they_are(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_tasks, "_AT_ONCE", 16)
    same(graph, "match { $i: Item } return { $i.key as k, sum($i.number) as s, count($i) as n } order { k }")


# --- rows per task -------------------------------------------------------------------------------------------------


def stages_told(store: Any, job: Any) -> Iterator[Any]:
    """The stages of a job that Spark still knows. Those that it skipped are the first that it forgets."""
    for stage_id in (job.stageIds().apply(n) for n in range(job.stageIds().size())):
        with suppress(Py4JJavaError):
            yield store.lastStageAttempt(stage_id)


def most_rows_of_a_lone_task(spark: Any, act: Any) -> int:
    """How many rows came through a shuffle to the only task of a stage, at most."""
    store = spark.sparkContext._jsc.sc().statusStore()
    known = {store.jobsList(None).apply(n).jobId() for n in range(store.jobsList(None).size())}
    act()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    most = 0
    jobs = store.jobsList(None)
    for job in (jobs.apply(n) for n in range(jobs.size())):
        if job.jobId() in known:
            continue
        ran = [stage for stage in stages_told(store, job) if stage.numCompleteTasks()]
        assert len(ran) == job.numCompletedStages()
        most = max([most, *(stage.shuffleReadRecords() for stage in ran if stage.numTasks() == 1)])
    return most


@pytest.mark.parametrize(
    "returned",
    [
        "sum($i.number) as s, avg($i.half) as a, count(distinct $i.number) as d, max($i.kind) as m",
        "stddev($i.number) as s",
        "median($i.number) as s",
        "avg(distinct $i.number) as s",
    ],
)
@pytest.mark.parametrize("clauses", ["$i: Item", "$i: Item  $i near $j"])
def test_no_task_sees_all_rows_of_an_aggregate_over_everything(
    spark: Any, graph: og.Graph, clauses: str, returned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else Spark joins so small partitions together.
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        text = f"query q() {{ match {{ {clauses} }} return {{ {returned} }} }}"
        assert most_rows_of_a_lone_task(spark, lambda: graph.query(text, engine="spark")) < ROWS // 4
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")


def test_a_list_of_everything_is_one_value_and_made_by_one_task(spark: Any, graph: og.Graph) -> None:
    text = "query q() { match { $i: Item } return { collect($i.key) as all } }"
    assert most_rows_of_a_lone_task(spark, lambda: graph.query(text, engine="spark")) >= ROWS
