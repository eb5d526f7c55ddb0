"""`graph.load_stream(df)`: the short form of `df.writeStream.format("omnigraph")`, with errors as the graph tells them.

What can be known to be wrong is refused before the query starts: Spark would tell it after the first batch, in a trace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph import errors
from omnigraph.errors import BadRequest, OmniGraphError, SparkJobFailed, ValidationFailed
from omnigraph.spark.session.connect import speaks_connect
from omnigraph.spark.session.interrupts import plain_interrupts
from omnigraph.spark.session.session import spark_session
from omnigraph.spark.source.datasource import FORMAT, register
from omnigraph.spark.spread import advice_on, reason_of
from omnigraph.spark.stream.sink_options import SinkOptions, check_columns, checked, checked_trigger
from omnigraph.write.decode.inputs import InputOptions, column_mapping, find_graph_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from omnigraph.ledger.store import GraphStore

_TOLD = re.compile(
    r"(?:^|: )omnigraph\.errors\.(?P<kind>\w+): (?P<message>.+?)(?=^ SQLSTATE|^=== Streaming Query|\Z)", re.M | re.S
)


@dataclass(frozen=True)
class LoadStream:
    """A stream into a graph that is running. `query` is Spark's own handle, with all that Spark knows about it.

    `ui` is the page on which Spark shows its streams, if there is one.
    """

    query: StreamingQuery
    ui: str | None = None

    @property
    def id(self) -> str:
        """The id of the query, which commits carry: the same whenever it is started with its checkpoint."""
        return str(self.query.id)

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return bool(self.query.isActive)

    @property
    def progress(self) -> list[dict[str, Any]]:
        """What Spark tells about the last micro-batches: rows, rates and the time of each step, in milliseconds."""
        return list(self.query.recentProgress)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it ends; whether it did within `timeout` seconds. What ended it is raised in the graph's words.

        Ctrl-C meanwhile stops it.
        """
        try:
            with self._interrupts():
                if timeout is None:
                    self.query.awaitTermination()
                    return True
                return bool(self.query.awaitTermination(timeout))
        except KeyboardInterrupt:
            self.stop()
            raise
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark.", "py4j.")):
                raise
            raise told(error) from error

    def stop(self) -> None:
        """End it. A batch that is on its way is finished, or left out as a whole and comes with the next start."""
        self.query.stop()

    def _interrupts(self) -> AbstractContextManager[Any]:
        """What Ctrl-C meets. A query of Spark Connect runs elsewhere, and nothing of PySpark stands in its way here."""
        return nullcontext() if speaks_connect(self.query) else plain_interrupts(spark_session().sparkContext)

    def __repr__(self) -> str:
        return f"<LoadStream {self.query.name or self.id}, {'running' if self.is_active else 'ended'}>"


def load_stream(
    store: GraphStore,
    frame: DataFrame,
    *,
    checkpoint: str,
    mode: str,
    type: str | None,
    src: str | None,
    dst: str | None,
    columns: Mapping[str, str] | None,
    value_column: str,
    branch: str,
    bad_records: str | None,
    missing_batches: str,
    trigger: Mapping[str, Any] | None,
    name: str | None,
    actor: str | None,
) -> LoadStream:
    """Start a query that loads the micro-batches of a frame into a branch."""
    store.refuse_if_read_only("load_stream")
    if not getattr(frame, "isStreaming", False):
        raise BadRequest("load_stream takes a streaming DataFrame (spark.readStream…); load takes one that is at rest")
    how = SinkOptions(mode, type, src, dst, columns or {}, branch, actor, value_column, bad_records, missing_batches)
    options = checked(how)
    check_columns(options, frame.columns)
    when = checked_trigger(trigger or {})
    snapshot = store.snapshot(branch=branch, operation="load_stream")
    if type is not None:
        catalog = store.catalog(snapshot.schema_digest)
        taken = InputOptions(type, src, dst, columns)
        column_mapping(catalog, find_graph_type(catalog, taken), taken).resolve(frame.columns)
    ui = None
    # A server of Connect finds the format by itself, and does not tell where its pages are.
    if not speaks_connect(frame):
        ui = spark_session().sparkContext.uiWebUrl
        # Sessions of one context know different formats.
        register(frame.sparkSession, push_down=False)
    writer = frame.writeStream.format(FORMAT).options(**options.to_options()).option("checkpointLocation", checkpoint)
    writer = writer.queryName(name) if name else writer
    return LoadStream(_started(writer, when, store.uri), f"{ui}/StreamingQuery/" if ui else None)


def _started(writer: Any, when: Mapping[str, Any], uri: str) -> StreamingQuery:
    try:
        return (writer.trigger(**when) if when else writer).start(uri)
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise BadRequest(f"Spark does not start the stream: {reason_of(error)}") from error


def told(error: BaseException) -> OmniGraphError:
    """What ended a query, in the graph's words."""
    found = _TOLD.search(str(error))
    kind = getattr(errors, found["kind"], None) if found else None
    if found is None or not isinstance(kind, type) or not issubclass(kind, OmniGraphError):
        return SparkJobFailed(
            f"The stream has ended: {reason_of(error)}. Mend that and start it again with its checkpoint: nothing is "
            f"lost or doubled.{advice_on(str(error))}"
        )
    message = found["message"].strip()
    return kind(message, ()) if issubclass(kind, ValidationFailed) else kind(message)
