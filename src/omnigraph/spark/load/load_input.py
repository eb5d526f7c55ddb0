"""What a load is given, as a Spark frame of messages: files cut into splits, a DataFrame, or rows from this process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import BadRequest, Violation
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.spark.load.frame_batches import (
    LargeRow,
    can_be_counted,
    counted_batches,
    read_batches,
    settings_for_tasks,
)
from omnigraph.spark.load.load_messages import LoadContext, Message, report
from omnigraph.spark.load.load_splits import COLUMNAR, Split, SplitOutcome, groups_of, plan_splits, weight_of
from omnigraph.spark.load.message_flow import Flow, from_frame, from_items, from_numbers, from_payloads
from omnigraph.spark.load.parquet_scans import ParquetScan, parquet_scan
from omnigraph.spark.spread import placed, told_in_our_words
from omnigraph.write.decode.column_batches import BYTES_PER_BATCH, ROWS_PER_BATCH
from omnigraph.write.decode.files import InputFile, kept_file, named_files
from omnigraph.write.decode.frames import decode_frames
from omnigraph.write.decode.inputs import InputOptions, column_mapping, find_graph_type, open_input
from omnigraph.write.load.input_size import input_bytes
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.collector import Place, ViolationCollector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.spark.session.progress import Job

BUCKET_BYTES = 256 << 20
"""Input whose keys are checked together in one task."""

MOST_BUCKETS = 2048
_SPLIT_MARK = "\x00split "


def open_load_input(session: SparkSession, data: Any, options: InputOptions, stack: ExitStack) -> LoadInput:
    """The input of a load, whatever it is."""
    if type(data).__module__.startswith("pyspark.") and hasattr(data, "mapInArrow"):
        with told_in_our_words("planning the frame"):
            return _frame_input(session, data, options)
    files = named_files(data)
    if files is not None:
        return FilesInput([kept_file(file, stack) for file in files], options, _cores(session))
    return RowsInput(data, options, stack, _cores(session))


def _frame_input(session: SparkSession, frame: DataFrame, options: InputOptions) -> LoadInput:
    if frame.isStreaming:
        raise BadRequest("load takes a DataFrame that is at rest; graph.load_stream takes a streaming one")
    scan = parquet_scan(frame)
    if scan is not None:
        return ScanInput(frame, scan, options, _cores(session))
    return FrameInput(frame, options, _frame_buckets(session, frame))


class LoadInput:
    """The common part. `buckets` says in how many parts the keys are checked; an input that is small may be moved as a
    whole."""

    buckets: int
    violations: ViolationCollector

    def __init__(self, options: InputOptions, buckets: int, *, is_small: bool = False) -> None:
        self.options = options
        self.is_small = is_small
        self.buckets = max(1, min(buckets, MOST_BUCKETS))
        self.violations = ViolationCollector()

    def graph_type(self, catalog: Catalog) -> GraphType | None:
        """The one type that the input is of, when the caller has named it."""
        return find_graph_type(catalog, self.options) if self.options.type is not None else None

    def messages(self, session: SparkSession, context: LoadContext, whole: frozenset[str], job: Job) -> Flow:
        """What comes of it when every task decodes its part and sends messages."""
        raise NotImplementedError

    def handing_over(self, session: SparkSession, context: LoadContext) -> AbstractContextManager[None]:
        """What Spark has to be told while the job runs."""
        return nullcontext()

    def weigh_rows(self) -> None:
        """Hand rows over one by one: some are large."""

    def cut_files(self, outcomes: Iterable[SplitOutcome]) -> frozenset[str]:
        """Files that were cut inside a record and must be read as a whole."""
        return frozenset()

    def places(self, outcomes: Iterable[SplitOutcome]) -> Callable[[Violation], Place]:
        """Where a violation is, in the caller's terms."""
        return lambda violation: Place(violation.source, violation.record)


class FilesInput(LoadInput):
    """Files that tasks read themselves."""

    def __init__(self, files: list[InputFile], options: InputOptions, cores: int) -> None:
        weight = sum(map(weight_of, files))
        large = _is_large(weight)
        super().__init__(options, _buckets(weight, cores) if large else 1, is_small=not large)
        self._files = files
        self._cores = cores
        self._splits: list[Split] = []
        # Sources sort by name, as they do in process, whatever the order in which the files were given.
        self._rank = {name: rank for rank, name in enumerate(sorted({file.name for file in files}))}

    def messages(self, session: SparkSession, context: LoadContext, whole: frozenset[str], job: Job) -> Flow:
        """One task for each split, or for a few of them when they are small."""
        self._splits = self._planned(whole)
        groups = groups_of(self._splits, self._cores)
        work = [pickle.dumps([(split, self._source(split)) for split in group]) for group in groups]
        records, size = job.records, job.bytes

        # Their descriptions are small and travel with the function: rows for them would pass another worker first.
        def send(number: int) -> Iterator[Message]:
            from omnigraph.spark.load.load_tasks import split_messages

            group = pickle.loads(work[number])
            first, others = group[0][0], len(group) - 1
            with placed(f"{first} and {others} more files" if others else str(first)):
                yield from split_messages(context, group, records.add)
            size.add(sum(split.bytes for split, _ in group))

        return from_numbers(session, len(work), send, few=context.sends_little(self.is_small))

    def _planned(self, whole: frozenset[str]) -> list[Split]:
        return plan_splits(self._files, self._cores, whole)

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


class ScanInput(FilesInput):
    """A Spark DataFrame that is columns of Parquet files: tasks read those. Its records are numbered in the files."""

    def __init__(self, frame: DataFrame, scan: ParquetScan, options: InputOptions, cores: int) -> None:
        super().__init__(scan.files, options, cores)
        self._frame = frame
        self._columns = scan.columns

    def graph_type(self, catalog: Catalog) -> GraphType | None:
        """The type that the rows are of; a frame does not say it itself."""
        return find_graph_type(catalog, self.options)

    def messages(self, session: SparkSession, context: LoadContext, whole: frozenset[str], job: Job) -> Flow:
        """One task for each split of the files."""
        column_mapping(context.catalog, find_graph_type(context.catalog, self.options), self.options).resolve(
            self._frame.columns
        )
        return super().messages(session, context, whole, job)

    def _planned(self, whole: frozenset[str]) -> list[Split]:
        return [replace(split, columns=self._columns) for split in super()._planned(whole)]


class FrameInput(LoadInput):
    """A Spark DataFrame of one type. Its records are numbered within its partitions."""

    def __init__(self, frame: DataFrame, options: InputOptions, buckets: int) -> None:
        super().__init__(options, buckets)
        # Spark looks columns up by their names, and finds none with a dot in it and no one of two that differ in case.
        self._names = list(frame.columns)
        self._frame = frame.toDF(*(f"c{number}" for number in range(len(self._names))))
        self._counted = bool(self._names) and can_be_counted(self._frame)

    def graph_type(self, catalog: Catalog) -> GraphType | None:
        """The type that the rows are of; a frame does not say it itself."""
        return find_graph_type(catalog, self.options)

    def messages(self, session: SparkSession, context: LoadContext, whole: frozenset[str], job: Job) -> Flow:
        """One task for each partition of the frame."""
        options, records = self.options, job.records
        mapping = column_mapping(context.catalog, find_graph_type(context.catalog, options), options)
        names = self._names
        refuse_no_columns(names)
        mapping.resolve(names)

        def send(batches: Iterator[pa.RecordBatch]) -> Iterator[Message]:
            from pyspark import TaskContext

            from omnigraph.spark.load.load_tasks import TaskReport, stage_messages

            number = TaskContext.get().partitionId()
            done = TaskReport()
            given = (batch.rename_columns(names) for batch in stored_batches(batches))
            pieces = decode_frames(mapping, given, f"<frame, partition {number}>", done.violations)
            with placed(f"partition {number} of the frame"):
                try:
                    yield from stage_messages(context, pieces, done, number, records.add)
                except LargeRow:
                    yield report(TaskReport(met_a_large_row=True))

        if not self._is_counted(context):
            return from_frame(self._frame, send)
        found, schema = counted_batches(self._frame)

        def read_and_send(messages: Iterator[bytes]) -> Iterator[Message]:
            yield from send(read_batches(messages, schema))

        return from_items(found, read_and_send)

    def handing_over(self, session: SparkSession, context: LoadContext) -> AbstractContextManager[None]:
        """The settings of the session, where Spark leaves them out."""
        return settings_for_tasks(session) if self._is_counted(context) else nullcontext()

    def weigh_rows(self) -> None:
        """Hand rows over the other way from now on: one was too large to be counted only."""
        self._counted = False

    def _is_counted(self, context: LoadContext) -> bool:
        """Whether rows go in batches that are counted and not weighed: the messages about them have to be few, too."""
        return self._counted and context.sends_little(False)


class RowsInput(LoadInput):
    """Data of this process (Arrow, pandas, Polars, Python rows, bytes, open files): decoded here, checked by tasks."""

    def __init__(self, data: Any, options: InputOptions, stack: ExitStack, cores: int) -> None:
        size = input_bytes(data)
        # Of some things nobody knows the size before they were read.
        small = size > 0 and not _is_large(size)
        super().__init__(options, 1 if small else cores, is_small=small)
        self._decode = open_input(data, options, stack)

    def messages(self, session: SparkSession, context: LoadContext, whole: frozenset[str], job: Job) -> Flow:
        """One task for each piece that was decoded."""
        self.violations = ViolationCollector()
        work = [pickle.dumps(rows) for rows in self._decode(context.catalog, self.violations)]
        records, refused = job.records, bool(self.violations)

        def send(position: int, payload: bytes) -> Iterator[Message]:
            from omnigraph.spark.load.load_tasks import TaskReport, stage_messages

            rows = pickle.loads(payload)
            pieces: list[Rows | SplitOutcome] = [] if rows is None else [rows]
            yield from stage_messages(context, pieces, TaskReport(refused=refused), position, records.add)

        few = context.sends_little(self.is_small)
        return from_payloads(session, work or [pickle.dumps(None)], send, few=few)


def refuse_no_columns(names: Sequence[str]) -> None:
    """Rows without any value reach nobody: they would be lost in silence."""
    if not names:
        raise BadRequest("The frame has no columns, so its rows have no values; select what is to be loaded")


def stored_batches(batches: Iterable[pa.RecordBatch], rows: int = ROWS_PER_BATCH) -> Iterator[pa.RecordBatch]:
    """What Spark hands over, in batches of some size: its own have 10,000 rows, and each costs as much as its rows."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        waiting.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count >= rows or size >= BYTES_PER_BATCH:
            yield as_stored(pa.concat_batches(waiting))
            waiting, count, size = [], 0, 0
    if waiting:
        yield as_stored(pa.concat_batches(waiting))


def as_stored(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Spark has no unsigned 64-bit integers and hands them over as decimals: make them whole numbers again."""
    arrays = [_whole_numbers(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _whole_numbers(column: pa.Array) -> pa.Array:
    """A column of decimals without a fraction, or of lists of them, as integers; where one does not fit, as it is."""
    is_list = pa.types.is_list(column.type)
    given = column.type.value_type if is_list else column.type
    if not pa.types.is_decimal(given) or given.scale != 0:
        return column
    try:
        return column.cast(pa.list_(pa.uint64()) if is_list else pa.uint64())
    except pa.ArrowInvalid:
        return column


def _is_large(size: int) -> bool:
    """Whether the keys of this much input are worth more than one task; each of them looks at the committed rows."""
    return size > BUCKET_BYTES // 8


def _frame_buckets(session: SparkSession, frame: DataFrame) -> int:
    """In how many parts to check the keys of a frame: by what Spark thinks it has at most, which is very much when it
    does not know."""
    size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())) * COLUMNAR
    if not _is_large(size):
        return 1
    most = max(int(session.conf.get("spark.sql.shuffle.partitions", "8") or 8), _cores(session))
    return min(_buckets(size, _cores(session)), most)


def _buckets(size: int, cores: int) -> int:
    """In how many parts to check the keys of this much input: as many for each core, so that none waits for a last."""
    return cores * -(-size // (cores * BUCKET_BYTES))


def _cores(session: SparkSession) -> int:
    return max(1, int(session.sparkContext.defaultParallelism))
