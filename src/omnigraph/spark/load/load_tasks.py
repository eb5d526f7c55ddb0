"""The first step of a load, inside tasks: decode, check each row, write fragments, send on the keys.

Adding (append, overwrite): rows are final, so fragments are written at once. Merging: which records belong to one row
is only known when they are together, so rows are sent on by their identity, and merged and written there by the
in-process engine's own code.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.values import TablePin
from omnigraph.schema.catalog import Cardinality, Catalog, EdgeType, GraphType
from omnigraph.scratch import scratch_folder
from omnigraph.spark.load.key_shelf import KeyFile
from omnigraph.spark.load.known.known_ends import KnownEnds
from omnigraph.spark.load.load_messages import Kind, LoadContext, Message, by_bucket, keys_to_bytes, report, to_bytes
from omnigraph.spark.load.load_splits import Split, SplitOutcome, decode_split
from omnigraph.spark.session.worker_daemon import settle_worker
from omnigraph.spark.spread import placed
from omnigraph.spark.task_vectors import task_vectors
from omnigraph.spark.worker_tables import worker_tables
from omnigraph.storage.reading.blobs import with_blobs_as_written
from omnigraph.storage.staging.distributed import write_fragments
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from omnigraph.write.load.load_keys import keys_of
from omnigraph.write.load.load_merge import MergingLoad, matched_by_tuple
from omnigraph.write.rows.fill_vectors import check_and_fill, check_partial
from omnigraph.write.rows.overlay import fill_defaults
from omnigraph.write.rows.row_ids import with_ids
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.key_changes import RECORD, SOURCE, TableChange
from omnigraph.write.validate.zeros import one_zero

declare("spark.load.before_write", "in a task of a load, before it writes what it has decoded")
declare("spark.load.written", "in a task of a load, after it has written fragments and before it reports them")
declare("spark.load.written.first", "the same place, in the first attempt at a task only")
declare("spark.load.written.first_task", "the same place, in the first attempt at the first task only")

KEYS_TOGETHER = 500_000
"""Keys that one task keeps before it sends them on."""

BUFFERED_BYTES = 128 << 20
"""Rows that one task keeps before it writes them: the size of a fragment, and a bound on memory."""


@dataclass
class TaskReport:
    """What one task did. `fragments` and the rest are per table key."""

    violations: ViolationCollector = field(default_factory=ViolationCollector)
    outcomes: list[SplitOutcome] = field(default_factory=list)
    fragments: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    updated: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, list[pa.Array]] = field(default_factory=dict)
    id_in_two_buckets: bool = False
    """Whether an edge that is matched by a tuple was given one id in two buckets, which must be merged as one row."""
    reads: frozenset[str] = frozenset()
    refused: bool = False
    """Whether it is known already that the load breaks a rule, so that nothing has to be written."""

    met_a_large_row: bool = False
    """Whether the task ended before its time, at a row that was not handed over."""

    @property
    def is_to_be_written(self) -> bool:
        """Whether rows are worth writing: nothing is wrong so far."""
        return not self.violations and not self.refused


class FragmentWriter:
    """Collects rows per table and writes them as fragments; removes what it wrote if the task fails."""

    def __init__(self, context: LoadContext, done: TaskReport) -> None:
        self._context = context
        self._done = done
        self._tables = worker_tables(context.uri, context.snapshot.branch.incarnation)
        self._waiting: dict[str, list[pa.Table]] = {}
        self._bytes = 0

    def put(self, table_key: str, rows: pa.Table) -> None:
        """Take rows of a table."""
        self._waiting.setdefault(table_key, []).append(rows)
        self._bytes += rows.nbytes
        if self._bytes > BUFFERED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write everything that waits."""
        for table_key, parts in self._waiting.items():
            line = self._context.lines[table_key]
            schema = self._tables.schema(line)
            rows = with_blobs_as_written(pa.concat_tables(parts), schema)
            written = write_fragments(self._tables.write_target(line), rows, schema)
            self._done.fragments.setdefault(table_key, []).extend(written)
        self._waiting, self._bytes = {}, 0

    def remove(self) -> None:
        """Take back what this task has written."""
        for table_key, fragments in self._done.fragments.items():
            with suppress(Exception):
                self._tables.abandon(self._tables.stage_fragments(self._context.lines[table_key], fragments))


def adding_messages(
    context: LoadContext, pieces: Iterable[Rows | SplitOutcome], done: TaskReport, position: int
) -> Iterator[Message]:
    """Check rows, write them, and send on their keys; the report comes last."""
    writer = FragmentWriter(context, done)
    waiting = WaitingKeys(context, position, done)
    try:
        for piece in pieces:
            if isinstance(piece, SplitOutcome):
                done.outcomes.append(piece)
                continue
            type_ = _type(context, piece.table_key)
            own_ids = bool(type_.key) or piece.table["id"].null_count < piece.count
            rows = with_ids(type_, fill_defaults(type_, piece), done.violations)
            rows = check_and_fill(type_, rows, partial(task_vectors, context.embedding), done.violations)
            done.rows[rows.table_key] = done.rows.get(rows.table_key, 0) + rows.count
            # Ids that were made here are the longest column by far, and name rows that nobody has seen.
            keys = keys_of(type_, rows, with_ids=own_ids)
            yield from waiting.put(type_, keys, own_ids=own_ids)
            if done.is_to_be_written and rows.count:
                writer.put(rows.table_key, rows.table)
        yield from waiting.flush()
        failpoint("spark.load.before_write")
        if done.is_to_be_written:
            writer.flush()
        _written()
        yield from seen_messages(context, done.rows, position)
        yield report(done, position)
    except BaseException:
        writer.remove()
        raise


class WaitingKeys:
    """Collects keys until they are worth a round of messages: each is cut into buckets, whatever its size.

    Ends of edges are not sent on but looked up here, where nothing but the committed nodes has to be known for it.
    """

    def __init__(self, context: LoadContext, position: int, done: TaskReport) -> None:
        self._context = context
        self._position = position
        self._done = done
        self._waiting: dict[tuple[str, bool], list[pa.Table]] = {}
        self._rows = 0
        store = TaskStore(worker_tables(context.uri, context.snapshot.branch.incarnation), context.catalog)
        self._ends = KnownEnds(store, context)

    def put(self, type_: GraphType, keys: pa.Table, *, own_ids: bool) -> Iterator[Message]:
        """Take keys of a table, and send on what has come together."""
        self._waiting.setdefault((type_.table_key, own_ids), []).append(keys)
        self._rows += keys.num_rows
        if self._rows >= KEYS_TOGETHER:
            yield from self.flush()

    def flush(self) -> Iterator[Message]:
        """Send on everything that waits."""
        for (table_key, own_ids), parts in self._waiting.items():
            type_ = _type(self._context, table_key)
            keys = pa.concat_tables(parts).unify_dictionaries()
            known = self._ends.check(keys, self._done.violations)
            self._done.reads |= self._ends.reads
            yield from key_messages(
                self._context, type_, keys, own_ids=own_ids, position=self._position, ends=not known
            )
        self._waiting, self._rows = {}, 0


def _written() -> None:
    from pyspark import TaskContext

    failpoint("spark.load.written")
    task = TaskContext.get()
    if task is not None and task.attemptNumber() == 0:
        failpoint("spark.load.written.first")
        if task.partitionId() == 0:
            failpoint("spark.load.written.first_task")


def key_messages(
    context: LoadContext, type_: GraphType, keys: pa.Table, *, own_ids: bool, position: int, ends: bool = True
) -> Iterator[Message]:
    """The key columns of rows, each where its rule is checked. `ends`: those of edges have not been looked up yet."""
    key = type_.table_key
    if own_ids:
        yield from _sent(context, Kind.IDS, f"{key}/own", keys, "id", ["id"], position)
    for number, unique in enumerate(type_.uniques):
        complete = keys
        for name in unique:
            complete = complete.filter(pc.is_valid(complete[name])) if complete[name].null_count else complete
        yield from _sent(context, Kind.UNIQUE, f"{key}/{number}", complete, unique[0], ["id", *unique], position)
    if isinstance(type_, EdgeType) and ends:
        yield from _end_messages(context, type_, keys, position)


def _end_messages(context: LoadContext, type_: EdgeType, keys: pa.Table, position: int) -> Iterator[Message]:
    for end in ("src", "dst"):
        yield from _sent(context, Kind.END, f"{type_.table_key}/{end}", keys, end, ["id", end], position)


def _sent(
    context: LoadContext, kind: Kind, subject: str, keys: pa.Table, column: str, names: list[str], position: int
) -> Iterator[Message]:
    chosen = keys.select(list(dict.fromkeys([*names, SOURCE, RECORD])))
    file = KeyFile(context.shelf) if context.shelf is not None else None
    for bucket, part in by_bucket(chosen, column, context.buckets):
        yield Message(bucket, kind, subject, position, keys_to_bytes(part, file))


def seen_messages(context: LoadContext, table_keys: Iterable[str], position: int) -> Iterator[Message]:
    """Every bucket hears of every table of the load, also of those that send it no rows."""
    for table_key in table_keys:
        for bucket in range(context.buckets):
            yield Message(bucket, Kind.SEEN, table_key, position, b"")


# --- merging -----------------------------------------------------------------------------------------------------


def merging_messages(
    context: LoadContext, pieces: Iterable[Rows | SplitOutcome], done: TaskReport, position: int
) -> Iterator[Message]:
    """Check rows by themselves and send them on by identity. Nothing here is made up, so a task can run again."""
    for number, piece in enumerate(pieces):
        if isinstance(piece, SplitOutcome):
            done.outcomes.append(piece)
            continue
        type_ = _type(context, piece.table_key)
        rows = with_ids(type_, piece, done.violations) if type_.key else piece
        check_partial(type_, rows, partial(task_vectors, context.embedding), done.violations)
        if isinstance(type_, EdgeType) and not done.is_to_be_written:
            # The load is refused. Edges without an end have been reported, and could not be written where they go;
            # what is left to say of them is whether the other end is there.
            whole = _has_ends(rows.table)
            yield from _other_ends(context, type_, _where(rows, pc.invert(whole)), position)
            rows = _where(rows, whole)
        for bucket, part in _by_identity(context, type_, rows, position):
            yield Message(bucket, Kind.ROWS, rows.table_key, (position << 32) + number, pickle.dumps(part))
    yield report(done, position)


def _has_ends(edges: pa.Table) -> pa.ChunkedArray:
    return pc.and_(pc.is_valid(edges["src"]), pc.is_valid(edges["dst"]))


def _where(rows: Rows, mask: pa.ChunkedArray) -> Rows:
    return rows.take(pc.indices_nonzero(mask).cast(pa.int64()))


def _other_ends(context: LoadContext, type_: EdgeType, rows: Rows, position: int) -> Iterator[Message]:
    """The ends of edges that lack one, for the checks: they are on their way past the merge."""
    if rows.count:
        yield from _end_messages(context, type_, keys_of(type_, rows), position)
        yield from seen_messages(context, [type_.table_key], position)


def _by_identity(context: LoadContext, type_: GraphType, rows: Rows, position: int) -> Iterator[tuple[int, Rows]]:
    column = type_.uniques[0][0] if matched_by_tuple(type_) else "id"
    indices = pa.array(range(rows.count), pa.int64())
    numbered = pa.table({"row": indices, "value": one_zero(rows.table[column]).cast(pa.string())})
    for bucket, part in by_bucket(numbered, "value", context.buckets):
        yield bucket, rows if part.num_rows == rows.count else rows.take(part["row"].combine_chunks())
    without = pc.indices_nonzero(pc.is_null(numbered["value"]))
    if len(without):
        # Rows without an identity are new; any bucket will do, as long as it is the same each time.
        yield position % context.buckets, rows.take(without.cast(pa.int64()))


def merged_messages(context: LoadContext, bucket: int, messages: Iterable[Message]) -> Iterator[Message]:
    """Merge the rows of one bucket into the committed ones, write them, and send on the keys of those that change."""
    done = TaskReport()
    store = TaskStore(worker_tables(context.uri, context.snapshot.branch.incarnation), context.catalog)
    with scratch_folder("load") as directory:
        work = MergingLoad(
            store,  # type: ignore[arg-type]  # as much of it as is used
            context.snapshot,
            TaskSession(context.lines),  # type: ignore[arg-type]  # as much of it as is used
            done.violations,
            directory,
            vectors=partial(task_vectors, context.embedding),
        )
        try:
            for message in sorted(messages, key=lambda one: one.position):
                if message.kind is Kind.ROWS:
                    work.add_checked(pickle.loads(message.payload))
                else:
                    yield message
            given = work.given_ids()
            changes, done.rows = work.merge_tables()
        except BaseException:
            _take_back(store.tables, context, work)
            raise
    for table_key, written in work.written.items():
        done.fragments[table_key] = list(written.fragments)
        done.updated[table_key] = written.updated
        done.replaced[table_key] = list(written.replaced)
    done.reads = work.reads
    _written()
    for table_key, change in changes.items():
        type_ = _type(context, table_key)
        yield from key_messages(context, type_, change.keys, own_ids=True, position=bucket)
        yield from _updated(context, type_, change, bucket)
    yield from _given(context, given, bucket)
    yield from seen_messages(context, changes, bucket)
    yield report(done, bucket)


def _updated(context: LoadContext, type_: GraphType, change: TableChange, position: int) -> Iterator[Message]:
    """Ids whose committed rows change: a rule about tuples or numbers of edges must not count their old state."""
    counted = isinstance(type_, EdgeType) and type_.card != Cardinality()
    if change.known_new or not change.keys.num_rows or not (type_.uniques or counted):
        return
    data = to_bytes(change.keys.select(["id"]))
    for bucket in range(context.buckets):
        yield Message(bucket, Kind.UPDATED, type_.table_key, position, data)


def _given(context: LoadContext, given: Mapping[str, pa.Array], position: int) -> Iterator[Message]:
    """Edges that are matched by a tuple can also be given an id: one id in two buckets is seen where its own is."""
    for table_key, ids in given.items():
        if context.buckets > 1 and matched_by_tuple(_type(context, table_key)):
            for bucket, part in by_bucket(pa.table({"id": ids}), "id", context.buckets):
                yield Message(bucket, Kind.GIVEN, table_key, position, to_bytes(part))


def _take_back(tables: TableStore, context: LoadContext, work: MergingLoad) -> None:
    for table_key, written in work.written.items():
        with suppress(Exception):
            tables.abandon(tables.stage_fragments(context.lines[table_key], written.fragments))


@dataclass(frozen=True, slots=True)
class TaskStore:
    """As much of an open graph as the checks and the merge of a load look at."""

    tables: TableStore
    the_catalog: Catalog

    def catalog(self, digest: str) -> Catalog:
        """The catalog of the load's snapshot."""
        return self.the_catalog


@dataclass(frozen=True, slots=True)
class TaskSession:
    """The lines that the driver has prepared."""

    lines: Mapping[str, TableVersion]

    def line(self, pin: TablePin) -> TableVersion:
        """Where to write rows of this table."""
        return self.lines[pin.table_key]


# --- the functions that Spark runs ---------------------------------------------------------------------------------


Count = Callable[[int], None]


def split_messages(context: LoadContext, group: Sequence[tuple[Split, str]], count: Count) -> Iterator[Message]:
    """Everything that comes of some splits, each with its source. `count` is told how many records were decoded."""
    settle_worker()
    done = TaskReport()
    yield from stage_messages(context, _decoded(context, group, done), done, group[0][0].number, count)


def _decoded(
    context: LoadContext, group: Sequence[tuple[Split, str]], done: TaskReport
) -> Iterator[Rows | SplitOutcome]:
    for split, source in group:
        with placed(str(split)):
            yield from decode_split(split, source, context.catalog, context.options, done.violations)


def stage_messages(
    context: LoadContext, pieces: Iterable[Rows | SplitOutcome], done: TaskReport, position: int, count: Count
) -> Iterator[Message]:
    """Everything that comes of some decoded rows."""
    messages = merging_messages if context.mode == "merge" else adding_messages
    yield from messages(context, _counted(pieces, count), done, position)


def _counted(pieces: Iterable[Rows | SplitOutcome], count: Count) -> Iterator[Rows | SplitOutcome]:
    for piece in pieces:
        if isinstance(piece, Rows):
            count(piece.count)
        yield piece


def _type(context: LoadContext, table_key: str) -> GraphType:
    found = context.catalog.table(table_key)
    assert found is not None
    return found
