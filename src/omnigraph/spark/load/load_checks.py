"""The second step of a load, inside tasks: the rules across rows, on the keys of one bucket.

The rules are the in-process engine's own functions. A bucket has all keys with which its values can collide, so what
the buckets find together is what one process would have found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from omnigraph.schema.catalog import Cardinality, EdgeType
from omnigraph.spark.load.known.committed_ids import BucketOfCommitted
from omnigraph.spark.load.known.known_ids import KnownIds, are_distinct
from omnigraph.spark.load.load_messages import (
    Kind,
    LoadContext,
    Message,
    bucket_of,
    from_bytes,
    keys_from_bytes,
    report,
)
from omnigraph.spark.load.load_tasks import TaskReport, TaskStore
from omnigraph.spark.worker_tables import worker_tables
from omnigraph.write.load.load_keys import key_schema
from omnigraph.write.validate.duplicates import has_repeats
from omnigraph.write.validate.graph_rules import (
    check_cardinality,
    check_dangling,
    check_duplicate_ids,
    check_end,
    check_existing_ids,
    check_unique,
)
from omnigraph.write.validate.key_changes import TableChange, no_ids, one_array


def check_bucket(context: LoadContext, bucket: int, messages: Iterable[Message]) -> Iterator[Message]:
    """Run every rule over one bucket; the only messages that come out are reports."""
    found: dict[tuple[Kind, str], list[tuple[int, bytes]]] = {}
    for message in messages:
        if message.kind is Kind.REPORT:
            yield message
        else:
            found.setdefault((message.kind, message.subject), []).append((message.position, message.payload))
    if not found:
        return
    done = TaskReport()
    _Check(context, bucket, found, done).run()
    yield report(done)


class _Check:
    """The check of one bucket."""

    def __init__(
        self,
        context: LoadContext,
        bucket: int,
        found: Mapping[tuple[Kind, str], list[tuple[int, bytes]]],
        done: TaskReport,
    ) -> None:
        self._context = context
        self._bucket = bucket
        self._found = found
        self._done = done
        self._replaces = context.mode == "overwrite"
        self._loaded: dict[str, KnownIds] = {}
        store = TaskStore(worker_tables(context.uri, context.snapshot.branch.incarnation), context.catalog)
        self._committed = BucketOfCommitted(store, context.snapshot, buckets=context.buckets, bucket=bucket)

    def run(self) -> None:
        """Every rule that the tables of this load have."""
        seen = sorted({subject for kind, subject in self._found if kind is Kind.SEEN})
        change = {key: self._change(key, Kind.IDS, f"{key}/own", ["id"]) for key in seen}
        for table_key in seen:
            type_ = self._context.catalog.table(table_key)
            assert type_ is not None
            if self._context.mode != "merge":
                if not are_distinct(change[table_key].ids):
                    check_duplicate_ids(type_, change[table_key], self._done.violations)
                if not self._replaces:
                    check_existing_ids(type_, change[table_key], self._committed, self._done.violations)
            for number, unique in enumerate(type_.uniques):
                table = self._change(table_key, Kind.UNIQUE, f"{table_key}/{number}", ["id", *unique])
                if table.keys.num_rows:
                    check_unique(type_, unique, table, self._committed, self._done.violations)
            if isinstance(type_, EdgeType):
                self._check_ends(type_, change)
        self._done.id_in_two_buckets = any(has_repeats(ids) for ids in self._given())
        check_dangling(self._context.catalog, change, self._committed, self._done.violations)
        self._done.reads = frozenset(self._committed.reads)

    def _given(self) -> Iterator[pa.ChunkedArray]:
        """The ids that were given to edges which are matched by a tuple, of each table."""
        for (kind, _), parts in self._found.items():
            if kind is Kind.GIVEN:
                yield pa.concat_tables([from_bytes(payload) for _, payload in parts])["id"]

    def _check_ends(self, type_: EdgeType, change: Mapping[str, TableChange]) -> None:
        for end in ("src", "dst"):
            table = self._change(type_.table_key, Kind.END, f"{type_.table_key}/{end}", ["id", end], leaving=end)
            if table.keys.num_rows and not self._come_along(type_, end, table, change):
                check_end(type_, end, table, change, self._committed, self._done.violations)
            if end == "src" and type_.card != Cardinality():
                check_cardinality(type_, table, self._committed, self._done.violations)

    def _come_along(self, type_: EdgeType, end: str, table: TableChange, change: Mapping[str, TableChange]) -> bool:
        """Whether all nodes at this end are in the load themselves, as in a first load of everything."""
        node = f"node:{type_.source if end == 'src' else type_.target}"
        if node not in change or not change[node].keys.num_rows:
            return False
        if node not in self._loaded:
            self._loaded[node] = KnownIds(change[node].ids)
        return not len(self._loaded[node].missing(table.keys[end]))

    def _change(
        self, table_key: str, kind: Kind, subject: str, columns: Sequence[str], leaving: str | None = None
    ) -> TableChange:
        """The change of a table as far as one rule looks at it. Old states of updated rows count as gone."""
        parts = sorted(self._found.get((kind, subject), []), key=lambda part: part[0])
        schema = self._columns(table_key, columns)
        tables = [keys_from_bytes(payload, schema) for _, payload in parts]
        keys = pa.concat_tables(tables).unify_dictionaries() if tables else schema.empty_table()
        gone = self._updated(table_key, leaving) if kind is not Kind.IDS else no_ids()
        return TableChange(keys, deleted=gone, replaces_all=self._replaces, known_new=True)

    def _columns(self, table_key: str, columns: Sequence[str]) -> pa.Schema:
        type_ = self._context.catalog.table(table_key)
        assert type_ is not None
        return pa.schema([field for field in key_schema(type_) if field.name in columns or field.name.startswith("__")])

    def _updated(self, table_key: str, leaving: str | None) -> pa.Array:
        parts = self._found.get((Kind.UPDATED, table_key))
        if not parts:
            return no_ids()
        ids = one_array(pa.concat_tables([from_bytes(payload) for _, payload in parts])["id"])
        if leaving is None or self._context.buckets == 1:
            return ids
        # Of rows that move from one source to another, those that leave a source of this bucket.
        rows = self._committed.rows_with(table_key, "id", ids, ["id", leaving])
        here = bucket_of(rows[leaving], self._context.buckets) == self._bucket
        return one_array(rows["id"]).filter(pa.array(here))
