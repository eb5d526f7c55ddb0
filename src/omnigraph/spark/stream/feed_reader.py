"""`spark.readStream.format("omnigraph")`: the change feed of a branch, as rows.

An offset is a cursor of the feed, so a stream goes on where it was, in order and without gaps. What a micro-batch reads
lies between two commits and is the same whenever it is read. History that `cleanup` has removed cannot be told: that
ends the stream with an error which names the commit, or, if so told, the stream starts over with the whole state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from omnigraph.errors import HistoryGap
from omnigraph.ledger.snapshots import find_type, get_commit, of_commit, table_of
from omnigraph.ledger.store import open_store
from omnigraph.ledger.values import BranchRef, GraphCommit
from omnigraph.merge.diff import DiffFilter, is_there
from omnigraph.merge.feed import commits_since, cursor_after, readable
from omnigraph.spark.source.plain_errors import plain_errors, plain_errors_of_rows
from omnigraph.spark.stream.feed_options import BASELINE, feed_options
from omnigraph.spark.stream.feed_rows import FeedRows, feed_schema
from omnigraph.storage.lance_errors import TableNotFound

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

Offset = dict[str, Any]
"""`cursor` and the `commit` that it is after; `baseline` where the whole state at that commit is read."""

MOST_PARTITIONS = 64
"""Tasks of a micro-batch; commits that follow each other are read by one task."""


@dataclass
class CommitsPartition(InputPartition):  # type: ignore[misc]  # PySpark has no types here
    """Commits whose changes one task reads."""

    commits: tuple[str, ...]
    only: DiffFilter


@dataclass
class StatePartition(InputPartition):  # type: ignore[misc]  # PySpark has no types here
    """A table whose rows at a commit one task reads; without a table, the row that says that the state follows."""

    commit: str
    table_key: str | None


def feed_columns(uri: str, options: Mapping[str, str]) -> tuple[StructType, str]:
    """The columns of a stream, and the digest of the schema that they are named by."""
    return feed_schema(uri, feed_options(options))


# mypy does not see: PySpark has no types here.
class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """The feed as Spark reads it. Lives as long as the query, in a process of its own."""

    def __init__(self, uri: str, options: Mapping[str, str], columns: StructType, digest: str | None) -> None:
        self.uri = uri
        self.options = feed_options(options)
        self.columns: pa.Schema = to_arrow_schema(columns, timezone="UTC")
        self._digest = digest
        self._opened: GraphStore | None = None
        self._last: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None}

    @property
    def _store(self) -> GraphStore:
        if self._opened is None:
            self._opened = open_store(self.uri, read_only=True)
        return self._opened

    @property
    def _branch(self) -> BranchRef:
        return self._store.branch(self.options.branch, "changes")

    @plain_errors
    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where a query with a new checkpoint starts."""
        if self.options.since == BASELINE:
            return {"cursor": None, "commit": None}
        after, _ = commits_since(self._store, self._branch, self.options.since, self.options.only)
        return self._offset(after)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Commits per trigger. Spark knows no commits; files are what it calls the parts that a source has."""
        return ReadMaxFiles(self.options.commits_per_trigger)

    @plain_errors
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Where the next micro-batch ends."""
        if start["cursor"] is None:
            return self._baseline()
        _, commits = commits_since(self._store, self._branch, start["cursor"], self.options.only)
        if self._last is not None:
            known = [commit.graph_commit_id for commit in commits]
            commits = commits[: known.index(self._last) + 1] if self._last in known else []
        if not isinstance(limit, ReadAllAvailable):
            commits = commits[: self.options.commits_per_trigger]
        if not commits:
            return start
        try:
            self._readable(commits)
        except HistoryGap as gap:
            if not self.options.baseline_on_gap:
                raise _with_way_out(gap) from gap
            return self._baseline()
        return self._offset(commits[-1].graph_commit_id)

    @plain_errors
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Go no further than to what is there now."""
        self._last = self._store.manifest.read(self._branch).head.graph_commit_id

    @plain_errors
    def reportLatestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """How far the branch is, for the progress of the query."""
        return self._offset(self._store.manifest.read(self._branch).head.graph_commit_id)

    @plain_errors
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """What the tasks of a micro-batch read."""
        if start == end:
            return []
        last = get_commit(self._store, end["commit"])
        if end.get(BASELINE):
            if not self._is_there(last) and not self.options.baseline_on_gap:
                raise _state_is_gone(last.graph_commit_id)
            return self._state_if_there(last)
        _, commits = commits_since(self._store, self._branch, start["cursor"], self.options.only)
        known = [commit.graph_commit_id for commit in commits]
        commits = commits[: known.index(last.graph_commit_id) + 1]
        try:
            only = self._readable(commits)
        except HistoryGap as gap:
            if not self.options.baseline_on_gap:
                raise _with_way_out(gap) from gap
            return self._state_if_there(last)
        each = -(-len(commits) // MOST_PARTITIONS)
        parts = [commits[at : at + each] for at in range(0, len(commits), each)]
        return [CommitsPartition(tuple(one.graph_commit_id for one in part), only) for part in parts]

    @plain_errors_of_rows
    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """In a task: the rows."""
        try:
            yield from self._rows(partition)
        except HistoryGap as gap:
            raise _with_way_out(gap) from gap
        except TableNotFound as gone:
            if not isinstance(partition, StatePartition):
                raise
            raise _state_is_gone(partition.commit) from gone

    def _rows(self, partition: Any) -> Iterator[pa.RecordBatch]:
        with open_store(self.uri, read_only=True) as store:
            digest = self._digest or store.snapshot(branch=self.options.branch).schema_digest
            rows = FeedRows(store, self.options.type, self.columns, digest)
            if isinstance(partition, CommitsPartition):
                for commit_id in partition.commits:
                    yield from rows.of_commit(get_commit(store, commit_id), partition.only)
                return
            commit = get_commit(store, partition.commit)
            if partition.table_key is None:
                yield from rows.beginning_of(commit)
            else:
                yield from rows.state_of(commit, partition.table_key)

    def stop(self) -> None:
        """The query is over."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _readable(self, commits: list[GraphCommit]) -> DiffFilter:
        """Whoever wants the state instead of an error needs to know of every gap before the tasks meet it."""
        branch, only = self._branch, self.options.only
        return readable(self._store, branch, commits, only, all_of_them=self.options.baseline_on_gap)

    def _offset(self, after: str | None) -> Offset:
        return {"cursor": cursor_after(self._store, self._branch, after, self.options.only), "commit": after}

    def _baseline(self) -> Offset:
        head = self._store.manifest.read(self._branch).head.graph_commit_id
        return self._offset(self._last or head) | {BASELINE: True}

    def _state(self, commit: GraphCommit) -> list[InputPartition]:
        only = self.options.only
        snapshot = of_commit(self._store, commit)
        catalog = self._store.catalog(snapshot.schema_digest)
        types = [find_type(catalog, key) for key in snapshot.tables]
        if only.kinds:
            types = [type_ for type_ in types if type_.kind in only.kinds]
        if only.types:
            wanted = {find_type(catalog, name).table_key for name in only.types}
            types = [type_ for type_ in types if type_.table_key in wanted]
        keys = [type_.table_key for type_ in types if not only.ops or "insert" in only.ops]
        return [StatePartition(commit.graph_commit_id, key) for key in (None, *keys)]

    def _state_if_there(self, commit: GraphCommit) -> list[InputPartition]:
        """Planned before cleanup came. A state that is gone too is told by the next batch, which meets the gap."""
        return self._state(commit) if self._is_there(commit) else []

    def _is_there(self, commit: GraphCommit) -> bool:
        try:
            pins = of_commit(self._store, commit).tables.values()
        except HistoryGap:
            return False
        return all(is_there(self._store, table_of(pin)) for pin in pins)


def _with_way_out(gap: HistoryGap) -> HistoryGap:
    """A stream can take the fresh copy by itself, and with no commit between it and what follows."""
    told = gap.message.partition(". ")[0]
    hint = (
        'Start again with option("onGap", "baseline"): the whole state comes first, behind a row with the op baseline.'
    )
    return HistoryGap(f"{told}. {hint}", **gap.details)


def _state_is_gone(commit_id: str) -> HistoryGap:
    return _with_way_out(HistoryGap(f"the state of commit {commit_id} has been removed by cleanup"))
