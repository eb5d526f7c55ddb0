"""`df.write.format("omnigraph")`: the same checks and the same four phases as every other load.

Spark gives a data source no second stage, so tasks check rows and write fragments, and hand the key columns to the
commit, which checks across rows in its own process. Keys go through the store of the graph, not through the driver, in
the buckets that the tasks of `graph.load(df, …)` would check.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from omnigraph.embed.text_vectors import vectors_on_write
from omnigraph.errors import BadRequest, Conflict
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.commit.phases import prepare_line
from omnigraph.ledger.commit.staging_marks import put_mark, remove_mark
from omnigraph.ledger.snapshots import find_type, table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import Snapshot, TablePin, WriterKind
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.spark.load.load_input import refuse_no_columns, stored_batches
from omnigraph.spark.load.load_messages import LoadContext, plain_snapshot
from omnigraph.spark.load.load_tasks import FragmentWriter, TaskReport
from omnigraph.spark.load.lost_files import CLOCK_SKEW, sweep_lost_files
from omnigraph.spark.source.column_map import column_map
from omnigraph.spark.source.frame_options import FrameOptions
from omnigraph.spark.source.keys.key_check import check_keys
from omnigraph.spark.source.keys.staged_keys import KeysOfTask, StagedKeys, clear_keys
from omnigraph.spark.source.plain_errors import plain_errors
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion
from omnigraph.write.decode.frames import decode_frames
from omnigraph.write.decode.inputs import InputOptions, column_mapping
from omnigraph.write.load.load_keys import keys_of
from omnigraph.write.rows.fill_vectors import check_and_fill
from omnigraph.write.rows.overlay import fill_defaults
from omnigraph.write.rows.row_ids import with_ids
from omnigraph.write.validate.collector import ViolationCollector

declare("frame.written", "A task of a frame write has written its fragments; it has not reported them")
declare("frame.written.first", "The same, in the first attempt at the task only")

KILL_SECONDS = 3.0
"""How long the worker of a killed task lives on: two seconds unless the session says otherwise, and one more."""


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]  # PySpark has no types here
    """What one task wrote, with the keys of its rows. `attempt`: how many attempts at it came before."""

    done: TaskReport = field(default_factory=TaskReport)
    keys: KeysOfTask = field(default_factory=KeysOfTask)
    attempt: int = 0


class Writer(DataSourceArrowWriter):  # type: ignore[misc]  # PySpark has no types here
    """Appends a frame's rows to one type, or replaces all of its rows. Made on the driver, before the tasks run."""

    def __init__(self, told: FrameOptions, columns: Sequence[str], overwrite: bool) -> None:
        uri = told.uri
        self.uri = uri
        self.branch = told.branch
        self.actor = told.get("actor")
        self.mode = "overwrite" if overwrite else "append"
        self.if_rows = _if_rows(told, overwrite)
        _refuse_snapshot(told)
        with open_store(uri, read_only=True) as store:
            snapshot = store.snapshot(branch=self.branch)
            self.catalog: Catalog = store.catalog(snapshot.schema_digest)
            self.type: GraphType = find_type(self.catalog, told.type_written)
            self.pin = snapshot.pin(self.type.table_key)
            self.is_needless = self._finds_rows(self.pin)
            self.snapshot = plain_snapshot(snapshot)
        as_told = InputOptions(None, told.get("src"), told.get("dst"), column_map(told.get("map") or ""))
        self.mapping = column_mapping(self.catalog, self.type, as_told)
        refuse_no_columns(columns)
        self.mapping.resolve(list(columns))
        self.mark = put_mark(open_objects(parse_root(uri)), f"frame write to {self.type.table_key}")
        self.line = self._own_line()
        self.started = datetime.now(UTC) - CLOCK_SKEW

    def _finds_rows(self, pin: TablePin) -> bool:
        """Whether there are rows already and the caller wants none beside them; an error if that is to be one."""
        if self.if_rows == "append" or not pin.row_count:
            return False
        if self.if_rows == "error":
            raise BadRequest(
                f"{self.type.name} has {pin.row_count:,} rows on {self.branch}, and the frame was to be written only "
                "if it had none (ifRows=error). Nothing was written."
            )
        return True

    def _own_line(self) -> TableVersion:
        """Where tasks write: the branch's own line of the table, or a fork made now, which the commit publishes."""
        if self.pin.owner == self.snapshot.branch.incarnation:
            return table_of(self.pin)
        with open_store(self.uri) as store:
            return prepare_line(store, self.snapshot.branch, self.pin)

    @plain_errors
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """In a task: check rows, write fragments, keep the keys."""
        message = Written()
        if self.is_needless:
            return message
        done = message.done
        context = self._context(self.snapshot)
        writer = FragmentWriter(context, done)
        task = TaskContext.get()
        message.attempt = task.attemptNumber()
        source = f"<frame, partition {task.partitionId()}>"
        keys = StagedKeys(context, self.type, self.mark, task.partitionId(), task.taskAttemptId())
        try:
            pieces = decode_frames(self.mapping, stored_batches(iterator), source, done.violations)
            for piece in pieces:
                own_ids = bool(self.type.key) or piece.table["id"].null_count < piece.count
                rows = with_ids(self.type, fill_defaults(self.type, piece), done.violations)
                rows = check_and_fill(self.type, rows, partial(vectors_on_write, None), done.violations)
                keys.put(keys_of(self.type, rows, with_ids=own_ids), own_ids=own_ids)
                if not done.violations and rows.count:
                    writer.put(rows.table_key, rows.table)
            if not done.violations:
                writer.flush()
            message.keys = keys.finish()
            failpoint("frame.written")
            if message.attempt == 0:
                failpoint("frame.written.first")
        except BaseException:
            writer.remove()
            raise
        return message

    @plain_errors
    def commit(self, messages: list[Written | None]) -> None:
        """On the driver: check across rows and publish."""
        written = [message for message in messages if message is not None]
        with open_store(self.uri) as store:
            try:
                run_write(
                    store,
                    self.branch,
                    lambda snapshot, session: self._prepare(store, snapshot, session, written),
                    actor=self.actor,
                    retry=RetryPolicy.SURFACE if self.mode == "overwrite" else RetryPolicy.PREPARE_AGAIN,
                    operation="load",
                )
            except BaseException:
                self._remove(written)
                raise
            finally:
                self._leave(store)
            if any(message.attempt for message in written):
                self._sweep(store, written)

    @plain_errors
    def abort(self, messages: list[Written | None]) -> None:
        """A task failed for good: remove what the others wrote, and what its attempts left."""
        if messages.count(None) > 1:
            # Tasks that Spark is about to kill write on until their workers are gone.
            time.sleep(KILL_SECONDS)
        self._remove([message for message in messages if message is not None])
        with open_store(self.uri) as store:
            self._leave(store)
            if not self._has_made_a_fork:
                self._sweep(store, [])

    def _leave(self, store: GraphStore) -> None:
        clear_keys(store.objects, self.mark)
        remove_mark(store.objects, self.mark)

    def _sweep(self, store: GraphStore, written: list[Written]) -> None:
        """Remove what attempts left that were followed by another one."""
        reported = (text for message in written for part in message.done.fragments.values() for text in part)
        sweep_lost_files(store, {self.type.table_key: self.line}, self.started, reported, own_leases=0)

    @property
    def _has_made_a_fork(self) -> bool:
        return self.line.branch is not None and self.line.branch != self.pin.lance_branch

    def _prepare(
        self, store: GraphStore, snapshot: Snapshot, session: WriteSession, written: list[Written]
    ) -> WriteIntent | None:
        if snapshot.schema_digest != self.snapshot.schema_digest:
            raise BadRequest("The schema has changed since the frame was written; write it again.")
        pin = snapshot.pin(self.type.table_key)
        if (pin.location, pin.lance_branch) != (self.pin.location, self.pin.lance_branch):
            raise Conflict(f"{self.type.name} has moved to another line since the frame was written; write it again.")
        if self._finds_rows(pin):
            self._remove(written)
            return None
        told = [message.keys for message in written]
        reports = check_keys(store.objects, self._context(snapshot), self.type, told)
        violations = ViolationCollector()
        for done in [*(message.done for message in written), *reports]:
            violations.merge(done.violations)
        violations.raise_if_any("the load")
        fragments = [text for message in written for text in message.done.fragments.get(self.type.table_key, [])]
        if not fragments and self.mode == "append":
            self._remove(written)
            return None
        overwrite = self.mode == "overwrite"
        staged = store.tables.stage_fragments(self.line.at(pin.version), fragments, overwrite=overwrite)
        # Handed over only when it is committed: another attempt needs the same files.
        write = WriteSession(store, snapshot.branch, self.actor).table_write(pin, staged)
        return session.intent(
            WriterKind.LOAD, snapshot, [write], reads=frozenset().union(*(report.reads for report in reports))
        )

    def _context(self, snapshot: Snapshot) -> LoadContext:
        """What tasks and checks know of this write, on the state that it is checked against."""
        lines = {self.type.table_key: self.line}
        return LoadContext(self.uri, self.catalog, plain_snapshot(snapshot), lines, self.mode, buckets=1)

    def _remove(self, written: list[Written]) -> None:
        tables = TableStore(parse_root(self.uri))
        try:
            for message in written:
                for fragments in message.done.fragments.values():
                    tables.abandon(tables.stage_fragments(self.line, fragments))
            if self.line.branch is not None and self._has_made_a_fork:
                tables.delete_fork(self.line.location, self.line.branch)
        except TableNotFound:
            # A refused commit has removed its fork, and Spark has it aborted all the same. What fails then hides why.
            if not self._has_made_a_fork:
                raise


def _if_rows(told: FrameOptions, overwrite: bool) -> str:
    """What to do when the type has rows. Spark's own modes for that do not reach a Python source."""
    chosen = told.choice("ifRows", ("append", "ignore", "error"))
    if overwrite and chosen != "append":
        raise BadRequest('`ifRows` goes with .mode("append"): .mode("overwrite") replaces the rows that are there.')
    return chosen


def _refuse_snapshot(told: FrameOptions) -> None:
    """A view of an earlier state can be read; what is inserted into it would go elsewhere than it shows."""
    if told.target is not None:
        raise BadRequest(
            "A snapshot cannot be written to: rows go to the newest state of a branch. Leave out `snapshot` and "
            "`version`; a view to insert into is made without them."
        )
