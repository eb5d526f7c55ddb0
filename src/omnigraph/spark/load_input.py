"""What a load is given, as a Spark frame of messages: files cut into splits, a DataFrame, or rows from this process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.spark.load_messages import MESSAGE_SCHEMA, LoadContext, pack
from omnigraph.spark.load_splits import Split, SplitOutcome, plan_splits
from omnigraph.spark.spread import one_partition_each
from omnigraph.write.decode.files import InputFile, kept_file, named_files
from omnigraph.write.decode.frames import decode_frames
from omnigraph.write.decode.inputs import InputOptions, column_mapping, find_graph_type, open_input
from omnigraph.write.input_size import input_bytes
from omnigraph.write.rows import Rows
from omnigraph.write.validate.collector import Place, ViolationCollector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.spark.progress import Job

BUCKET_BYTES = 256 << 20
"""Input whose keys are checked together in one task."""

MOST_BUCKETS = 2048
_SPLIT_MARK = "\x00split "


def open_load_input(session: SparkSession, data: Any, options: InputOptions, stack: ExitStack) -> LoadInput:
    """The input of a load, whatever it is."""
    if type(data).__module__.startswith("pyspark.") and hasattr(data, "mapInArrow"):
        partitions = int(session.conf.get("spark.sql.shuffle.partitions", "8") or 8)
        return FrameInput(data, options, partitions if _is_large(_frame_bytes(data)) else 1)
    files = named_files(data)
    if files is not None:
        return FilesInput([kept_file(file, stack) for file in files], options, _cores(session))
    return RowsInput(data, options, stack, _cores(session))


class LoadInput:
    """The common part. `buckets` says in how many parts the keys are checked."""

    buckets: int
    violations: ViolationCollector

    def __init__(self, options: InputOptions, buckets: int) -> None:
        self.options = options
        self.buckets = max(1, min(buckets, MOST_BUCKETS))
        self.violations = ViolationCollector()

    def graph_type(self, catalog: Catalog) -> GraphType | None:
        """The one type that the input is of, when the caller has named it."""
        return find_graph_type(catalog, self.options) if self.options.type is not None else None

    def messages(self, session: SparkSession, context: LoadContext, whole: frozenset[str], job: Job) -> DataFrame:
        """The frame in which every task decodes its part and sends messages."""
        raise NotImplementedError

    def cut_files(self, outcomes: Iterable[SplitOutcome]) -> frozenset[str]:
        """Files that were cut inside a record and must be read as a whole."""
        return frozenset()

    def places(self, outcomes: Iterable[SplitOutcome]) -> Callable[[Violation], Place]:
        """Where a violation is, in the caller's terms."""
        return lambda violation: Place(violation.source, violation.record)


class FilesInput(LoadInput):
    """Files that tasks read themselves."""

    def __init__(self, files: list[InputFile], options: InputOptions, cores: int) -> None:
        weight = sum(file.size * _inflation(file) for file in files)
        super().__init__(options, max(cores, -(-weight // BUCKET_BYTES)) if _is_large(weight) else 1)
        self._files = files
        self._cores = cores
        self._splits: list[Split] = []
        # Sources sort by name, as they do in process, whatever the order in which the files were given.
        self._rank = {name: rank for rank, name in enumerate(sorted({file.name for file in files}))}

    def messages(self, session: SparkSession, context: LoadContext, whole: frozenset[str], job: Job) -> DataFrame:
        """One task for each split."""
        self._splits = plan_splits(self._files, self._cores, whole)
        work = [pickle.dumps((split, self._source(split))) for split in self._splits]
        frame = one_partition_each(session, work)
        records, size = job.records, job.bytes

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from omnigraph.spark.load_tasks import split_messages

            for batch in batches:
                for payload in batch.column("payload").to_pylist():
                    split, source = pickle.loads(payload)
                    yield from pack(split_messages(context, split, source, records.add))
                    size.add(split.bytes)

        return frame.mapInArrow(task, MESSAGE_SCHEMA)

    def _source(self, split: Split) -> str:
        return f"{_SPLIT_MARK}{self._rank[split.file.name]:08d} {split.number:08d}"

    def cut_files(self, outcomes: Iterable[SplitOutcome]) -> frozenset[str]:
        """Files that were cut inside a record and must be read as a whole."""
        return frozenset(self._splits[outcome.number].file.name for outcome in outcomes if outcome.cut_a_record)

    def places(self, outcomes: Iterable[SplitOutcome]) -> Callable[[Violation], Place]:
        """File and record number, counted through the splits of the file."""
        records = {outcome.number: outcome.records for outcome in outcomes}
        before: dict[int, int] = {}
        total: dict[str, int] = {}
        for split in self._splits:
            before[split.number] = total.get(split.file.name, 0) if split.is_part else 0
            total[split.file.name] = total.get(split.file.name, 0) + records.get(split.number, 0)

        def place(violation: Violation) -> Place:
            if violation.source is None or not violation.source.startswith(_SPLIT_MARK):
                return Place(violation.source, violation.record)
            split = self._splits[int(violation.source.rsplit(" ", 1)[1])]
            record = None if violation.record is None else violation.record + before[split.number]
            return Place(split.file.name, record)

        return place


class FrameInput(LoadInput):
    """A Spark DataFrame of one type. Its records are numbered within its partitions."""

    def __init__(self, frame: DataFrame, options: InputOptions, buckets: int) -> None:
        super().__init__(options, buckets)
        self._frame = frame

    def graph_type(self, catalog: Catalog) -> GraphType | None:
        """The type that the rows are of; a frame does not say it itself."""
        return find_graph_type(catalog, self.options)

    def messages(self, session: SparkSession, context: LoadContext, whole: frozenset[str], job: Job) -> DataFrame:
        """One task for each partition of the frame."""
        options, records = self.options, job.records
        mapping = column_mapping(context.catalog, find_graph_type(context.catalog, options), options)
        mapping.resolve(self._frame.columns)

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            from omnigraph.spark.load_tasks import TaskReport, stage_messages

            number = TaskContext.get().partitionId()
            done = TaskReport()
            pieces = decode_frames(
                mapping, (as_stored(batch) for batch in batches), f"<frame, partition {number}>", done.violations
            )
            yield from pack(stage_messages(context, pieces, done, number, records.add))

        return self._frame.mapInArrow(task, MESSAGE_SCHEMA)


class RowsInput(LoadInput):
    """Data of this process (Arrow, pandas, Polars, Python rows, bytes, open files): decoded here, checked by tasks."""

    def __init__(self, data: Any, options: InputOptions, stack: ExitStack, cores: int) -> None:
        size = input_bytes(data)
        super().__init__(options, cores if size == 0 or _is_large(size) else 1)
        self._decode = open_input(data, options, stack)

    def messages(self, session: SparkSession, context: LoadContext, whole: frozenset[str], job: Job) -> DataFrame:
        """One task for each piece that was decoded."""
        self.violations = ViolationCollector()
        work = [pickle.dumps(rows) for rows in self._decode(context.catalog, self.violations)]
        frame = one_partition_each(session, work or [pickle.dumps(None)])
        records = job.records

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from omnigraph.spark.load_tasks import TaskReport, stage_messages

            for batch in batches:
                for row in batch.to_pylist():
                    rows = pickle.loads(row["payload"])
                    pieces: list[Rows | SplitOutcome] = [] if rows is None else [rows]
                    yield from pack(stage_messages(context, pieces, TaskReport(), row["position"], records.add))

        return frame.mapInArrow(task, MESSAGE_SCHEMA)


def as_stored(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Spark has no unsigned 64-bit integers and hands them over as decimals: make them whole numbers again."""
    arrays = []
    for column in batch.columns:
        whole = pa.types.is_decimal(column.type) and column.type.scale == 0
        if whole and not pc.any(pc.less(column, pa.scalar(0, column.type))).as_py():
            column = column.cast(pa.uint64())
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _is_large(size: int) -> bool:
    """Whether the keys of this much input are worth more than one task; each of them looks at the committed rows."""
    return size > BUCKET_BYTES // 8


def _frame_bytes(frame: DataFrame) -> int:
    """What Spark thinks a frame will have at most; very much when it does not know."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _inflation(file: InputFile) -> int:
    """How many bytes of JSON lines a byte of this file is worth."""
    return 4 if file.name.endswith((".gz", ".zst", ".parquet")) else 1


def _cores(session: SparkSession) -> int:
    return max(1, int(session.sparkContext.defaultParallelism))
