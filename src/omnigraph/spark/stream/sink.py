"""`df.writeStream.format("omnigraph")`: each micro-batch is one commit of the graph, exactly once.

Tasks put their records into the store of the graph; the commit, which Spark runs in a process of its own, loads them as
every other load and publishes them together with the id of the query and the number of the batch. When a driver dies
after that and before Spark has written its checkpoint, Spark repeats the batch, and the branch says that it has it.

The id of a query is made with its checkpoint and lives as long as that: Spark hands it to every task. A query that
starts with a new checkpoint is another query, and begins with its first batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from omnigraph.errors import BadRequest, InternalError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.values import StreamBatch
from omnigraph.spark.load.load_input import as_stored
from omnigraph.spark.source.plain_errors import plain_errors
from omnigraph.spark.stream.batch_commit import forget, publish_batch
from omnigraph.spark.stream.sink_options import SinkOptions, check_columns, refuse_complete, sink_options
from omnigraph.spark.stream.staged_records import Piece, place_of_run, put_columns, put_lines
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root

QUERY_ID, BATCH_ID, RUN_ID = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
"""The properties by which Spark tells its tasks which query and batch they work for, and in which run of it."""

declare("stream.staged", "A task of a micro-batch has put its records; nothing is committed")


@dataclass
class StagedBatch(WriterCommitMessage):  # type: ignore[misc]  # PySpark has no types here
    """What one task has put, for which stream, and in which run."""

    stream: str = ""
    run: str = ""
    partition: int = 0
    pieces: list[Piece] = field(default_factory=list)


class StreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # PySpark has no types here
    """Loads micro-batches. Made anew for each of them, once for its tasks and once for its commit."""

    def __init__(self, uri: str, options: Mapping[str, str], columns: Sequence[str], overwrite: bool) -> None:
        refuse_complete(overwrite)
        self.uri = uri
        self.options: SinkOptions = sink_options(options)
        check_columns(self.options, columns)

    @plain_errors
    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedBatch:
        """In a task: put its records."""
        task = TaskContext.get()
        stream = task.getLocalProperty(QUERY_ID) if task else None
        number = task.getLocalProperty(BATCH_ID) if task else None
        if task is None or not stream or number is None:
            raise InternalError("Spark did not say which batch of which query this is: the format is for its streams")
        run = task.getLocalProperty(RUN_ID) or "run"
        objects = open_objects(parse_root(self.uri))
        place = place_of_run(StreamBatch(stream, int(number)), run)
        prefix = f"{place}/{task.partitionId():06d}-{task.taskAttemptId()}"
        if self.options.type is None:
            values = (batch.column(self.options.value_column) for batch in iterator)
            pieces = list(put_lines(objects, prefix, values))
        else:
            pieces = list(put_columns(objects, prefix, (as_stored(batch) for batch in iterator)))
        failpoint("stream.staged")
        return StagedBatch(stream, run, task.partitionId(), pieces)

    @plain_errors
    def commit(self, messages: list[StagedBatch | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish the batch, unless the branch has it."""
        staged = sorted((message for message in messages if message is not None), key=lambda one: one.partition)
        if not staged:
            # Only so is continuous processing told from micro-batches: their tasks always report, also of no rows.
            raise BadRequest(
                "the tasks of this stream report nothing, as in continuous processing, which gives a Python sink no "
                'rows; stop it and start it with trigger(processingTime="1 second"), or without a trigger, and a new '
                "checkpoint. Nothing was loaded"
            )
        pieces = [piece for message in staged for piece in message.pieces]
        batch = StreamBatch(staged[0].stream, batchId)
        publish_batch(self.uri, self.options, batch, staged[0].run, pieces)

    @plain_errors
    def abort(self, messages: list[StagedBatch | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """A task failed for good: remove what the others have put."""
        for stream, run in {(message.stream, message.run) for message in messages if message is not None}:
            forget(self.uri, StreamBatch(stream, batchId), run)
