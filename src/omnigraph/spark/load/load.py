"""Loads on Spark: tasks decode, check and write fragments, buckets of keys are checked, the driver commits once.

One Spark job does all of it, so that whatever is committed was reported by attempts that won. The commit is the same
four phases as that of every other write.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.values import MAIN, Snapshot, StreamBatch, WriterKind
from omnigraph.spark.load.key_shelf import key_shelf
from omnigraph.spark.load.load_input import LoadInput, open_load_input
from omnigraph.spark.load.load_messages import Kind, LoadContext, Message, plain_snapshot
from omnigraph.spark.load.load_tasks import TaskReport
from omnigraph.spark.load.lost_files import CLOCK_SKEW, sweep_lost_files
from omnigraph.spark.load.message_flow import payloads_of, per_bucket
from omnigraph.spark.session.connect import refuse_connect
from omnigraph.spark.session.job_end import end_job
from omnigraph.spark.session.job_metrics import metrics_of
from omnigraph.spark.session.progress import Job, run_job
from omnigraph.spark.spread import spread, told_in_our_words
from omnigraph.spark.task_vectors import vectors_for_tasks
from omnigraph.storage.staging.distributed import WriteTarget, delete_rows
from omnigraph.storage.values import StagedWrite, TableVersion
from omnigraph.write.committed import CommittedRows
from omnigraph.write.decode.inputs import InputOptions
from omnigraph.write.load.load import LoadBranch, LoadMode, commit_load, load_mode, overwritten_type
from omnigraph.write.load.load_keys import key_schema
from omnigraph.write.progress import ProgressCallback
from omnigraph.write.results import LoadResult
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.graph_rules import check_change
from omnigraph.write.validate.key_changes import TableChange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.ledger.store import GraphStore

FEW_ADDRESSES = 200_000
"""Rows to be marked as deleted beyond this number are marked by tasks."""


def load(
    session: SparkSession,
    store: GraphStore,
    data: Any,
    *,
    mode: str,
    type: str | None = None,
    src: str | None = None,
    dst: str | None = None,
    columns: Mapping[str, str] | None = None,
    branch: str = MAIN,
    from_: str | None = None,
    actor: str | None = None,
    if_commit: str | None = None,
    progress: ProgressCallback | bool | None = None,
    batch: StreamBatch | None = None,
) -> LoadResult:
    """Load `data` into a branch on Spark, as one commit.

    `data` is all that the in-process load takes, and also a Spark DataFrame and files on an object store. Everything
    else means the same as there.
    """
    refuse_connect(session)
    chosen = load_mode(mode)
    store.refuse_if_read_only("load")
    options = InputOptions(type, src, dst, columns)
    with LoadBranch(store, branch, from_, actor) as target, ExitStack() as stack:
        given = open_load_input(session, data, options, stack)
        with run_job(session, "load", progress, place=f"{branch} of {store.uri}") as job:

            def prepare(snapshot: Snapshot, write: WriteSession, counts: dict[str, int]) -> WriteIntent | None:
                with key_shelf(session) as shelf:
                    return _Load(session, store, given, chosen, options, job, snapshot, write, shelf).prepare(counts)

            result = commit_load(store, target, chosen, prepare, if_commit=if_commit, engine="spark", batch=batch)
            return replace(result, metrics=metrics_of(job))


class _Load:
    """One attempt at a load on one snapshot."""

    def __init__(
        self,
        session: SparkSession,
        store: GraphStore,
        given: LoadInput,
        mode: LoadMode,
        options: InputOptions,
        job: Job,
        snapshot: Snapshot,
        write: WriteSession,
        shelf: str | None,
    ) -> None:
        self._session = session
        self._store = store
        self._given = given
        self._mode = mode
        self._options = options
        self._job = job
        self._snapshot = snapshot
        self._write = write
        self._shelf = shelf
        self._catalog = store.catalog(snapshot.schema_digest)
        self._started = datetime.now(UTC) - CLOCK_SKEW

    def prepare(self, counts: dict[str, int]) -> WriteIntent | None:
        """Run the job and stage what it wrote; None when it changes nothing."""
        lines = {pin.table_key: self._write.line(pin) for pin in self._pins()}
        try:
            reports = self._run_until_whole(lines)
        except BaseException:
            end_job(self._job, were_running=True)
            self._sweep(lines, [])
            raise
        try:
            violations = self._located(reports)
            if not violations:
                self._replace_by_nothing(reports, violations)
            for report in reports:
                for table_key, rows in report.rows.items():
                    counts[table_key] = counts.get(table_key, 0) + rows
            violations.raise_if_any("the load")
            writes = self._staged(lines, reports)
        except BaseException:
            end_job(self._job, were_running=False)
            self._forget(lines, reports)
            self._sweep(lines, [])
            raise
        if self._tasks_were_lost():
            self._sweep(lines, reports)
        self._job.step("committing")
        if not writes:
            return None
        reads = frozenset().union(*(report.reads for report in reports))
        return self._write.intent(WriterKind.LOAD, self._snapshot, writes, reads=reads)

    def _pins(self) -> list[Any]:
        """The tables that may get rows: that of the named type, or all."""
        type_ = self._given.graph_type(self._catalog)
        if type_ is not None:
            return [self._snapshot.pin(type_.table_key)]
        return [self._snapshot.tables[key] for key in sorted(self._snapshot.tables)]

    def _run_until_whole(self, lines: Mapping[str, TableVersion]) -> list[TaskReport]:
        """Run the job; again, with a coarser cut, when the cut of the input or of the rows turns out to be wrong, and
        with rows that are weighed when one turns out to be large."""
        whole: frozenset[str] = frozenset()
        buckets = self._given.buckets
        while True:
            context = LoadContext(
                self._store.uri,
                self._catalog,
                plain_snapshot(self._snapshot),
                lines,
                self._mode.value,
                buckets,
                self._options,
                vectors_for_tasks(self._session, self._store, self._catalog),
                self._shelf,
            )
            reports = self._run(context, whole)
            cut = self._given.cut_files(outcome for report in reports for outcome in report.outcomes)
            split_ids = any(report.id_in_two_buckets for report in reports)
            large_rows = any(report.met_a_large_row for report in reports)
            if not cut - whole and not split_ids and not large_rows:
                return reports
            if large_rows:
                self._given.weigh_rows()
            self._forget(lines, reports)
            self._job.count_anew()
            whole |= cut
            buckets = 1 if split_ids else buckets

    def _run(self, context: LoadContext, whole: frozenset[str]) -> list[TaskReport]:
        self._job.step("decoding, checking and writing")
        with told_in_our_words(self._job.current_step), self._given.handing_over(self._session, context):
            flow = self._given.messages(self._session, context, whole, self._job)
            if self._mode is LoadMode.MERGE:
                flow = per_bucket(flow, context.buckets, partial(_bucket_messages, context, "merge"))
            flow = per_bucket(flow, context.buckets, partial(_bucket_messages, context, "check"))
            return [pickle.loads(payload) for payload in payloads_of(flow)]

    def _replace_by_nothing(self, reports: list[TaskReport], violations: ViolationCollector) -> None:
        """An overwrite of a named type that no row came for: no task has seen it, so it is checked here."""
        if self._mode is not LoadMode.OVERWRITE:
            return
        seen = {key for report in reports for key in report.rows}
        type_ = overwritten_type(self._catalog, self._options, seen)
        if type_ is not None and type_.table_key not in seen:
            committed = CommittedRows(self._store, self._snapshot)
            change = TableChange(key_schema(type_).empty_table(), replaces_all=True)
            check_change(self._catalog, {type_.table_key: change}, committed, violations)
            reports.append(TaskReport(rows={type_.table_key: 0}, reads=frozenset(committed.reads)))

    def _staged(self, lines: Mapping[str, TableVersion], reports: list[TaskReport]) -> list[TableWrite]:
        self._job.step("staging")
        writes = []
        emptied = {key for report in reports for key in report.rows} if self._mode is LoadMode.OVERWRITE else set()
        for table_key in sorted({key for report in reports for key in report.fragments} | emptied):
            fragments = [text for report in reports for text in report.fragments.get(table_key, [])]
            if not fragments and not (table_key in emptied and self._snapshot.pin(table_key).row_count):
                continue
            addresses = [part for report in reports for part in report.replaced.get(table_key, [])]
            updated = sum(report.updated.get(table_key, 0) for report in reports)
            staged = self._stage(lines[table_key], fragments, addresses, updated)
            writes.append(self._write.table_write(self._snapshot.pin(table_key), staged))
        return writes

    def _stage(self, line: TableVersion, fragments: list[str], addresses: list[pa.Array], updated: int) -> StagedWrite:
        tables = self._store.tables
        thinner: list[str] = []
        emptied: list[int] = []
        if addresses:
            thinner, emptied = self._mark_deleted(tables.write_target(line), pa.concat_arrays(addresses))
        return tables.stage_fragments(
            line,
            fragments,
            updated_fragments=thinner,
            removed_fragment_ids=emptied,
            rows_updated=updated,
            overwrite=self._mode is LoadMode.OVERWRITE,
        )

    def _mark_deleted(self, target: WriteTarget, addresses: pa.Array) -> tuple[list[str], list[int]]:
        if len(addresses) <= FEW_ADDRESSES:
            return delete_rows(target, addresses)
        found = spread(self._session, lambda part: delete_rows(target, part), _by_fragment(addresses))
        return [text for part, _ in found for text in part], [number for _, part in found for number in part]

    def _located(self, reports: list[TaskReport]) -> ViolationCollector:
        """All violations, each with the file it is in and the number of its record there."""
        together = ViolationCollector()
        for report in reports:
            together.merge(report.violations)
        together.merge(self._given.violations)
        outcomes = [outcome for report in reports for outcome in report.outcomes]
        return together.relocated(self._given.places(outcomes))

    def _forget(self, lines: Mapping[str, TableVersion], reports: list[TaskReport]) -> None:
        """Remove what a run wrote that will not be used."""
        for report in reports:
            for table_key, fragments in report.fragments.items():
                tables = self._store.tables
                tables.abandon(tables.stage_fragments(lines[table_key], fragments))

    def _tasks_were_lost(self) -> bool:
        """Whether some task was run more than once: another attempt may have left files that nobody reported."""
        if self._session.conf.get("spark.speculation", "false") == "true":
            return True
        tracker = self._session.sparkContext.statusTracker()
        for job_id in tracker.getJobIdsForGroup(self._job.group):
            info = tracker.getJobInfo(job_id)
            for stage_id in info.stageIds if info else ():
                stage = tracker.getStageInfo(stage_id)
                if stage is not None and stage.numFailedTasks:
                    return True
        return False

    def _sweep(self, lines: Mapping[str, TableVersion], reports: list[TaskReport]) -> None:
        """Remove files that attempts of this load left and nobody reported."""
        reported = (text for report in reports for part in report.fragments.values() for text in part)
        sweep_lost_files(self._store, lines, self._started, reported, own_leases=1)


def _bucket_messages(context: LoadContext, step: str, messages: Iterator[Message]) -> Iterator[Message]:
    from omnigraph.spark.load.load_checks import check_bucket
    from omnigraph.spark.load.load_tasks import merged_messages

    together: dict[int, list[Message]] = {}
    for message in messages:
        if message.kind is Kind.REPORT:
            yield message
        else:
            together.setdefault(message.bucket, []).append(message)
    work = merged_messages if step == "merge" else check_bucket
    for bucket in sorted(together):
        yield from work(context, bucket, together.pop(bucket))


def _by_fragment(addresses: pa.Array) -> list[pa.Array]:
    """Row addresses in parts that share no fragment."""
    import numpy as np

    numbers = np.sort(addresses.to_numpy())
    fragments = numbers >> np.uint64(32)
    starts = np.flatnonzero(np.r_[True, fragments[1:] != fragments[:-1]])
    return [pa.array(part) for part in np.split(numbers, starts[1:])]
