"""`df.write.format("omnigraph")`: the same checks and the same four phases as every other load.

Spark gives a data source no second stage, so tasks check rows and write fragments, and hand the key columns to the
commit, which checks across rows in one process. For frames whose keys do not fit one process, use `graph.load(df, …)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from omnigraph.errors import BadRequest, Conflict
from omnigraph.ledger.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.intents import WriteIntent
from omnigraph.ledger.protocol import prepare_line
from omnigraph.ledger.snapshots import find_type, table_of
from omnigraph.ledger.staging_marks import put_mark, remove_mark
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import Snapshot, WriterKind
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.spark.load_input import as_stored
from omnigraph.spark.load_messages import LoadContext, from_bytes, to_bytes
from omnigraph.spark.load_tasks import FragmentWriter, TaskReport
from omnigraph.storage.objects import open_objects
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion
from omnigraph.write.committed import CommittedRows
from omnigraph.write.decode.frames import decode_frames
from omnigraph.write.decode.inputs import InputOptions, column_mapping
from omnigraph.write.identity import with_ids
from omnigraph.write.load_keys import key_schema, keys_of
from omnigraph.write.overlay import fill_defaults
from omnigraph.write.validate.changes import TableChange
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.graph import check_change, check_duplicate_ids, check_existing_ids
from omnigraph.write.validate.values import check_values


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]
    """What one task wrote, with the keys of its rows."""

    done: TaskReport = field(default_factory=TaskReport)
    keys: list[bytes] = field(default_factory=list)
    own_ids: bool = False


class Writer(DataSourceArrowWriter):  # type: ignore[misc]
    """Appends a frame's rows to one type, or replaces all of its rows. Made on the driver, before the tasks run."""

    def __init__(self, uri: str, options: Mapping[str, str], columns: Sequence[str], overwrite: bool) -> None:
        given = {name.lower(): value for name, value in options.items()}
        if not given.get("type"):
            raise BadRequest('Say which type: .option("type", "Person").')
        self.uri = uri
        self.branch = given.get("branch", "main")
        self.actor = given.get("actor")
        self.mode = "overwrite" if overwrite else "append"
        with open_store(uri, read_only=True) as store:
            snapshot = store.snapshot(branch=self.branch)
            self.catalog: Catalog = store.catalog(snapshot.schema_digest)
            self.type: GraphType = find_type(self.catalog, given["type"])
            self.pin = snapshot.pin(self.type.table_key)
            self.snapshot = Snapshot(
                snapshot.branch, snapshot.manifest_version, snapshot.head, snapshot.schema_digest, dict(snapshot.tables)
            )
        as_told = InputOptions(None, given.get("src"), given.get("dst"), _mapped(given.get("map", "")))
        self.mapping = column_mapping(self.catalog, self.type, as_told)
        self.mapping.resolve(list(columns))
        self.mark = put_mark(open_objects(parse_root(uri)), f"frame write to {self.type.table_key}")
        self.line = self._own_line()

    def _own_line(self) -> TableVersion:
        """Where tasks write: the branch's own line of the table, or a fork made now, which the commit publishes."""
        if self.pin.owner == self.snapshot.branch.incarnation:
            return table_of(self.pin)
        with open_store(self.uri) as store:
            return prepare_line(store, self.snapshot.branch, self.pin)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """In a task: check rows, write fragments, keep the keys."""
        message = Written()
        done = message.done
        context = LoadContext(
            self.uri, self.catalog, self.snapshot, {self.type.table_key: self.line}, self.mode, buckets=1
        )
        writer = FragmentWriter(context, done)
        source = f"<frame, partition {TaskContext.get().partitionId()}>"
        try:
            pieces = decode_frames(self.mapping, (as_stored(batch) for batch in iterator), source, done.violations)
            for piece in pieces:
                own_ids = bool(self.type.key) or piece.table["id"].null_count < piece.count
                message.own_ids |= own_ids
                rows = with_ids(self.type, fill_defaults(self.type, piece), done.violations)
                check_values(self.type, rows, done.violations)
                message.keys.append(to_bytes(keys_of(self.type, rows, with_ids=own_ids)))
                if not done.violations and rows.count:
                    writer.put(rows.table_key, rows.table)
            if not done.violations:
                writer.flush()
        except BaseException:
            writer.remove()
            raise
        return message

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
                remove_mark(store.objects, self.mark)

    def abort(self, messages: list[Written | None]) -> None:
        """A task failed for good: remove what the others wrote."""
        self._remove([message for message in messages if message is not None])
        remove_mark(open_objects(parse_root(self.uri)), self.mark)

    def _prepare(
        self, store: GraphStore, snapshot: Snapshot, session: WriteSession, written: list[Written]
    ) -> WriteIntent | None:
        if snapshot.schema_digest != self.snapshot.schema_digest:
            raise BadRequest("The schema has changed since the frame was written; write it again.")
        pin = snapshot.pin(self.type.table_key)
        if (pin.location, pin.lance_branch) != (self.pin.location, self.pin.lance_branch):
            raise Conflict(f"{self.type.name} has moved to another line since the frame was written; write it again.")
        violations = ViolationCollector()
        for message in written:
            violations.merge(message.done.violations)
        committed = CommittedRows(store, snapshot)
        self._check(written, committed, violations)
        violations.raise_if_any("the load")
        fragments = [text for message in written for text in message.done.fragments.get(self.type.table_key, [])]
        if not fragments and self.mode == "append":
            return None
        overwrite = self.mode == "overwrite"
        staged = store.tables.stage_fragments(self.line.at(pin.version), fragments, overwrite=overwrite)
        # Handed over only when it is committed: another attempt needs the same files.
        write = WriteSession(store, snapshot.branch, self.actor).table_write(pin, staged)
        return session.intent(WriterKind.LOAD, snapshot, [write], reads=frozenset(committed.reads))

    def _check(self, written: list[Written], committed: CommittedRows, violations: ViolationCollector) -> None:
        parts = [from_bytes(data) for message in written for data in message.keys]
        keys = pa.concat_tables(parts).unify_dictionaries() if parts else key_schema(self.type).empty_table()
        change = TableChange(keys, replaces_all=self.mode == "overwrite", known_new=True)
        if any(message.own_ids for message in written):
            check_duplicate_ids(self.type, change, violations)
            if not change.replaces_all:
                check_existing_ids(self.type, change, committed, violations)
        check_change(self.catalog, {self.type.table_key: change}, committed, violations)

    def _remove(self, written: list[Written]) -> None:
        tables = TableStore(parse_root(self.uri))
        for message in written:
            for fragments in message.done.fragments.values():
                tables.abandon(tables.stage_fragments(self.line, fragments))
        if self.line.branch is not None and self.line.branch != self.pin.lance_branch:
            tables.delete_fork(self.line.location, self.line.branch)


def _mapped(text: str) -> dict[str, str]:
    """`column=property,other=property`."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return {column.strip(): name.strip() for column, _, name in pairs}
