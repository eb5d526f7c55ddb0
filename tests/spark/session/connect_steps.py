"""What a user does with a session of Spark Connect, step by step: functions that run in the process of the client,
where that session is the active one, and give back plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.config import override

ALL = "query all() { match { $p: Person } return { $p.slug, $p.age } order { $p.slug } }"
Rows = list[tuple[Any, ...]]


def session() -> Any:
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    assert type(active).__module__ == "pyspark.sql.connect.session"
    return active


def plain(frame: Any) -> Rows:
    return sorted(tuple(row) for row in frame.collect())


def read(uri: str, **options: str) -> Any:
    return session().read.format("omnigraph").options(**options).load(uri)


def rows(uri: str, options: Mapping[str, str]) -> Rows:
    return plain(read(uri, **options))


def registered(uri: str) -> Rows:
    """The source told to the session, as a session needs it that takes filters down to Lance."""
    from omnigraph.spark.source.datasource import register

    register(session())
    return plain(read(uri, type="Person", pushDown="true").where("age >= 3").drop("id"))


def joined(uri: str, query: str) -> Rows:
    for view, type_name in (("people", "Person"), ("knows", "Knows")):
        session().sql(
            f"CREATE OR REPLACE TEMPORARY VIEW {view} USING omnigraph OPTIONS (path '{uri}', type '{type_name}')"
        )
    read(uri, type="Person", columns="id,age").createOrReplaceTempView("ages")
    return plain(session().sql(query))


def write(uri: str, given: Rows, schema: str, mode: str, options: Mapping[str, str]) -> None:
    frame = session().createDataFrame(given, schema)
    frame.write.format("omnigraph").options(**options).mode(mode).save(uri)


def insert(uri: str, branch: str) -> None:
    options = f"path '{uri}', branch '{branch}', type"
    for type_name in ("Person", "Knows"):
        view = f"CREATE OR REPLACE TEMPORARY VIEW into_{type_name} USING omnigraph OPTIONS ({options} '{type_name}')"
        session().sql(view)
    session().createDataFrame([("p8", "p8", 8)], "id string, slug string, age int").write.insertInto("into_Person")
    session().sql("INSERT INTO into_Knows (src, dst) VALUES ('p8', 'p0')")


def stream_in(uri: str, lines: str, checkpoint: str, branch: str) -> str:
    """The id of the query, which lives with its checkpoint."""
    writer = session().readStream.text(lines).writeStream.format("omnigraph").option("branch", branch)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(uri)
    assert query.awaitTermination(100)
    return str(query.id)


def load_stream(uri: str, lines: str, checkpoint: str, branch: str, **options: Any) -> dict[str, Any]:
    with og.open(uri) as graph:
        stream = graph.load_stream(
            session().readStream.text(lines),
            checkpoint=checkpoint,
            branch=branch,
            trigger={"availableNow": True},
            **options,
        )
        ended = stream.wait(100)
        batches = [(one.batchId, one.numInputRows) for one in stream.progress]
        return {"id": stream.id, "ended": ended, "active": stream.is_active, "batches": batches, "ui": stream.ui}


def stream_out(uri: str, place: Path) -> Rows:
    """All changes of a type that were told so far, in this start of the query and in those before."""
    options = {"type": "Person", "branch": "fed", "startingFrom": "beginning"}
    changes = session().readStream.format("omnigraph").options(**options).load(uri)
    writer = changes.select("_version", "_op", "slug", "age").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    assert writer.start(str(place / "told")).awaitTermination(100)
    return plain(session().read.parquet(str(place / "told")).drop("_version"))


def frames_of_ours(uri: str) -> dict[str, Any]:
    """Frames that the graph itself makes."""
    with og.open(uri) as graph:
        frame = graph.to_spark("Person", columns=["slug", "age"])
        with ThreadPoolExecutor(1) as other:
            in_a_thread = other.submit(lambda: plain(graph.to_spark("Person", columns=["slug", "age"]))).result()
        return {
            "to_spark": plain(frame),
            "in a thread": in_a_thread,
            "side": plain(graph.to_spark("Person", columns=["slug"], branch="side")),
            "result": plain(graph.query(ALL).to_spark()),
        }


def measures(uri: str) -> dict[str, Rows]:
    from omnigraph.spark.jobs.analytics import connected_components, degrees, pagerank, shortest_path_lengths

    edges = read(uri, type="Knows", columns="src,dst")
    start = read(uri, type="Person", columns="id").where("id = 'p1'")
    return {
        "degrees": plain(degrees(edges)),
        "components": plain(connected_components(edges)),
        "ranks": plain(pagerank(edges, max_rounds=1).selectExpr("id", "round(rank, 4)")),
        "lengths": plain(shortest_path_lengths(edges, start, max_hops=2)),
    }


def told(call: Callable[[], Any]) -> str:
    """How an error reads whose caller asked for too much."""
    try:
        return f"no error: {call()!r}"
    except Exception as error:
        return f"{type(error).__module__}.{type(error).__qualname__}: {error}"


def short_errors() -> None:
    session().conf.set("spark.sql.connect.serverStacktrace.enabled", "false")


def failed_write(uri: str, given: Rows, schema: str, mode: str, options: Mapping[str, str]) -> str:
    return told(lambda: write(uri, given, schema, mode, options))


def failed_stream(uri: str, lines: str, checkpoint: str, branch: str, column: str) -> str:
    return told(lambda: load_stream(uri, lines, checkpoint, branch, value_column=column))


def jobs(uri: str, place: Path) -> dict[str, str]:
    """Everything that can be asked for with `engine="spark"`, and the jobs that are handed a session."""
    from omnigraph.spark.jobs.backfill import backfill, write_back
    from omnigraph.spark.jobs.export import export_graph
    from omnigraph.spark.load.load import load

    record = [{"type": "Person", "data": {"slug": "never"}}]
    with og.open(uri) as graph:
        store, frame = graph._store, read(uri, type="Person")
        calls: dict[str, Callable[[], Any]] = {
            "load": lambda: graph.load(record, mode="append", engine="spark"),
            "load, new branch": lambda: graph.load(record, mode="append", branch="new", from_="main", engine="spark"),
            "query": lambda: graph.query(ALL, engine="spark"),
            "export": lambda: graph.export(str(place / "export"), engine="spark"),
            "merge": lambda: graph.merge("side", engine="spark"),
            "diff": lambda: graph.diff("main", "side", engine="spark"),
            "revert": lambda: graph.revert(graph.head().graph_commit_id, engine="spark"),
            "optimize": lambda: graph.optimize(engine="spark"),
            "ensure_indices": lambda: graph.ensure_indices(engine="spark"),
            "embed": lambda: graph.embed(engine="spark"),
            "copy": lambda: og.copy(uri, str(place / "copy"), engine="spark"),
            "session given: load": lambda: load(session(), store, frame, mode="merge", type="Person"),
            "session given: export": lambda: export_graph(session(), store, str(place / "export")),
            "session given: backfill": lambda: backfill(
                session(), store, "Person", "age", lambda table: table["age"], inputs=["slug"]
            ),
            "session given: write_back": lambda: write_back(session(), store, frame, "Person"),
        }
        return {name: told(call) for name, call in calls.items()}


def frames(uri: str, lines: str, engines: Sequence[Any]) -> dict[str, str]:
    """A frame of Connect handed to a load."""
    with og.open(uri) as graph:

        def load(frame: Any, engine: Any = "auto") -> str:
            return told(lambda: graph.load(frame, type="Person", mode="merge", engine=engine))

        found = {engine: load(read(uri, type="Person"), engine) for engine in engines}
        return {**found, "streaming": load(session().readStream.text(lines))}


def by_arrow(uri: str) -> int:
    """What the refusal of a frame says to do for a merge."""
    with og.open(uri) as graph:
        older = read(uri, type="Person", branch="arrow").selectExpr("slug", "age + 100 AS age").toArrow()
        return int(graph.load(older, type="Person", mode="merge", branch="arrow").rows_loaded)


def in_process(uri: str) -> dict[str, Any]:
    """`auto`, for small work and for what would be work for Spark, in this thread and in another."""
    record = {"type": "Person", "data": {"slug": "by auto", "age": 1}}

    def round_of_work(number: int) -> list[Any]:
        with og.open(uri) as graph:
            given = [{**record, "data": {"slug": f"auto {number}"}}]
            loaded = graph.load(given, mode="append", branch="auto")
            return [loaded.engine, len(graph.query(ALL, branch="auto"))]

    small = round_of_work(0)
    with override(spark_load_bytes=1, spark_rows=1), ThreadPoolExecutor(1) as other:
        return {"small": small, "large": round_of_work(1), "in a thread": other.submit(round_of_work, 2).result()}


def without_its_session() -> dict[str, str]:
    """The session ends; the process stays one that has spoken Connect."""
    from omnigraph.spark.session.engine import choose_engine
    from omnigraph.spark.session.session import spark_session

    session().stop()
    return {
        "auto": choose_engine("auto", input_bytes=1 << 50),
        "spark": told(lambda: choose_engine("spark")),
        "session": told(spark_session),
    }
