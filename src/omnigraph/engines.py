"""Which engine a call runs on, decided from its size. Deciding imports neither Spark nor anything that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.ledger.values import Snapshot
    from omnigraph.maintain.copying.carriers import Carriers
    from omnigraph.maintain.optimize.workers import Workers
    from omnigraph.merge.placement import Placement


def engine_for_tables(wanted: str, snapshot: Snapshot, table_keys: Iterable[str]) -> str:
    """The engine for work that reads these tables."""
    from omnigraph.spark.session.engine import choose_engine

    rows = max((snapshot.tables[key].row_count for key in table_keys if key in snapshot.tables), default=0)
    return choose_engine(wanted, table_rows=rows)


def engine_for_load(wanted: str, data: Any) -> str:
    """The engine for a load of this input. A Spark frame can only be loaded by Spark."""
    from omnigraph.spark.session.connect import frame_refused, speaks_connect
    from omnigraph.spark.session.engine import choose_engine
    from omnigraph.write.load.input_size import input_bytes, is_spark_frame

    if is_spark_frame(data):
        if speaks_connect(data):
            raise frame_refused(data)
        if choose_engine("spark" if wanted == "auto" else wanted) == "local":
            raise BadRequest("a Spark frame is loaded by the Spark engine; leave the engine out, or use spark")
        return "spark"
    return choose_engine(wanted, input_bytes=input_bytes(data))


def maintenance_workers(wanted: str, uri: str, snapshot: Snapshot) -> Workers:
    """Where compaction and index builds of a branch of the graph at `uri` run."""
    if engine_for_tables(wanted, snapshot, snapshot.tables) == "spark":
        from omnigraph.spark.jobs.compact import spark_workers

        return spark_workers(source=f"{snapshot.branch.name} of {uri}")
    from omnigraph.maintain.optimize.workers import local_workers

    return local_workers()


def row_placement(
    wanted: str, operation: str, *snapshots: Snapshot, source: str | None = None, place: str | None = None
) -> Placement:
    """Where the rows of a merge or a difference between these states are compared. Spark tells by the rest what for."""
    if any(engine_for_tables(wanted, snapshot, snapshot.tables) == "spark" for snapshot in snapshots):
        from omnigraph.spark.jobs.merge import spark_placement

        return spark_placement(operation=operation, source=source, place=place)
    from omnigraph.merge.placement import IN_PROCESS

    return IN_PROCESS


def copy_carriers(wanted: str) -> Callable[[int], Carriers]:
    """Who copies files of a number of bytes. By itself a copy starts no session: it waits for the stores, which threads
    of one process can do as well as those of a JVM; only a session that is there may have more machines to ask. An
    engine that cannot be had is refused now: once the size is known, the copy has begun."""
    from omnigraph.maintain.copying.carriers import LOCAL
    from omnigraph.spark.session.engine import choose_engine
    from omnigraph.spark.session.session import active_session

    asked = choose_engine(wanted)

    def chosen(size: int) -> Carriers:
        if asked == "spark" or (active_session() is not None and choose_engine(wanted, input_bytes=size) == "spark"):
            from omnigraph.spark.jobs.copy import spark_carriers

            return spark_carriers()
        return LOCAL

    return chosen
