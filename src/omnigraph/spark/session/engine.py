"""Which engine a piece of bulk work runs on: this process, or Spark.

A JVM takes seconds to start, so small work stays in process. The thresholds are settings (`spark_load_bytes`,
`spark_rows`), with the measurement they came from; a session that is active already lowers both. Where there is only
Spark Connect no job can run: `auto` stays in process, and who asks for Spark is refused before anything is done.
"""

from __future__ import annotations

from typing import Literal

from omnigraph.config import settings
from omnigraph.errors import BadRequest
from omnigraph.spark.session.session import active_session, refusal_of_jobs

Engine = Literal["local", "spark"]


def choose_engine(requested: str | None = None, *, input_bytes: int = 0, table_rows: int = 0) -> Engine:
    """`local` or `spark` for work on this much input and tables of this many rows.

    `requested` is what the call asked for; a call that leaves it at `auto` gets what the process is set to, and where
    that is `auto` too, size decides. Deciding never imports PySpark.
    """
    wanted = settings().engine if requested in (None, "auto") else requested
    match wanted:
        case "local":
            return "local"
        case "spark":
            refusal = refusal_of_jobs()
            if refusal is not None:
                raise refusal
            return "spark"
        case "auto":
            factor = settings().spark_active_factor if active_session() is not None else 1.0
            large = input_bytes >= settings().spark_load_bytes * factor or table_rows >= settings().spark_rows * factor
            return "spark" if large and refusal_of_jobs() is None else "local"
        case _:
            raise BadRequest(f"`{wanted}` is not an engine: use auto, local or spark.")
