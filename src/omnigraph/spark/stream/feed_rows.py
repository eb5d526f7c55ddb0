"""Changes of a graph as rows of Spark: the feed of all types with JSON, or that of one type with its columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.ledger.snapshots import find_type, of_commit, table_of
from omnigraph.ledger.values import GraphCommit
from omnigraph.merge.changes import EntityChange, Op
from omnigraph.merge.diff import DiffFilter
from omnigraph.merge.feed import commit_changes
from omnigraph.merge.plain import plain_row
from omnigraph.merge.shown_row import shown_row
from omnigraph.schema.catalog import OWN_COLUMNS, Catalog, GraphType
from omnigraph.schema.entities import hidden_properties
from omnigraph.schema.types import is_blob
from omnigraph.spark.stream.feed_options import BASELINE, FeedOptions
from omnigraph.spark.stream.schema_rows import SCHEMA, returned_tables, schema_texts
from omnigraph.spark.types import spark_schema, travelling_schema
from omnigraph.times import aware

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

_BATCH_ROWS = 4096
_BATCH_LETTERS = 16 << 20
"""Letters of texts and items of lists in a batch, beyond which there are no more rows in it."""
_TIME = pa.timestamp("us", "UTC")

CHANGES = pa.schema(
    [
        ("commit", pa.string()),
        ("version", pa.int64()),
        ("actor", pa.string()),
        ("time", _TIME),
        ("kind", pa.string()),
        ("type", pa.string()),
        ("id", pa.string()),
        ("op", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
    ]
)
"""The feed of all types. `version` grows along the branch, so rows of several commits can be put in order by it."""

OF_A_COMMIT = [
    ("_commit", pa.string()),
    ("_version", pa.int64()),
    ("_actor", pa.string()),
    ("_time", _TIME),
    ("_op", pa.string()),
]
"""What stands in front of the columns of one type; a property may be called `commit` too."""

Row = dict[str, Any]


def feed_schema(uri: str, options: FeedOptions) -> tuple[Any, str]:
    """The columns of a stream, as Spark knows them, and the digest of the schema that they are named by."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from omnigraph.ledger.store import open_store

    with open_store(uri, read_only=True) as store:
        snapshot = store.snapshot(branch=options.branch)
        if options.type is None:
            return from_arrow_schema(CHANGES), snapshot.schema_digest
        type_ = find_type(store.catalog(snapshot.schema_digest), options.type)
        if options.only.kinds and type_.kind not in options.only.kinds:
            kinds = ", ".join(sorted(options.only.kinds))
            raise BadRequest(f"{type_.name} is of the kind {type_.kind}, and the stream takes kinds={kinds} only")
        table = store.tables.schema(table_of(snapshot.pin(type_.table_key)))
        columns = typed_schema(type_, table)
        return spark_schema(columns, columns.names), snapshot.schema_digest


def typed_schema(type_: GraphType, table: pa.Schema) -> pa.Schema:
    """The columns of a feed of one type. Blobs are not in a feed."""
    blobs = {p.column for p in type_.properties if is_blob(p.type)}
    columns = [name for name in table.names if name not in blobs]
    # A row that is gone has no values, also where the table has one for every row.
    maybe = [field.with_nullable(True) for field in travelling_schema(table, columns)]
    return pa.schema([*(pa.field(*field) for field in OF_A_COMMIT), *maybe])


class FeedRows:
    """Makes rows of the changes of commits.

    `columns` are those of the stream. Those of one type are named by the schema of `digest`, with which it began.
    """

    def __init__(self, store: GraphStore, type_name: str | None, columns: pa.Schema, digest: str) -> None:
        self._store = store
        self._schema = columns
        self._type = find_type(store.catalog(digest), type_name) if type_name is not None else None
        self._names = cache(self._names_at)

    def of_commit(self, commit: GraphCommit, only: DiffFilter) -> Iterator[pa.RecordBatch]:
        """What a commit changed; of another schema first, where rows are told by the names of their properties."""
        texts = schema_texts(self._store, commit) if self._type is None and not only.ops else None
        if texts is not None:
            yield from self._batches([self._about(commit, SCHEMA) | {"before": texts[0], "after": texts[1]}])
        yield from self._batches(self._row(commit, change) for change in commit_changes(self._store, commit, only))
        for table_key in self._returned(commit, only):
            yield from self.state_of(commit, table_key, Op.UPDATE)

    def beginning_of(self, commit: GraphCommit) -> Iterator[pa.RecordBatch]:
        """The row that says: what comes is the whole state, forget what you have."""
        return self._batches([self._about(commit, BASELINE)])

    def state_of(self, commit: GraphCommit, table_key: str, op: Op = Op.INSERT) -> Iterator[pa.RecordBatch]:
        """Every row of a table as it was at a commit, as an insert or as an update."""
        snapshot = of_commit(self._store, commit)
        type_ = find_type(self._store.catalog(snapshot.schema_digest), table_key)
        blobs = {p.column for p in type_.properties if is_blob(p.type)}
        table = table_of(snapshot.pin(table_key))
        columns = [name for name in self._store.tables.schema(table).names if name not in blobs]
        batches = self._store.tables.scan(table, columns=columns, batch_size=_BATCH_ROWS)
        for batch in batches:
            changes = (_whole(type_, row, op) for row in batch.to_pylist())
            yield from self._batches(self._row(commit, change) for change in changes)

    def _returned(self, commit: GraphCommit, only: DiffFilter) -> Iterator[str]:
        """Tables whose rows an undo gave values back that no change tells of, as far as the stream wants them."""
        if only.ops and Op.UPDATE not in only.ops:
            return
        for table_key in returned_tables(self._store, commit):
            type_ = find_type(self._store.catalog(commit.schema_digest), table_key)
            if only.kinds and type_.kind not in only.kinds:
                continue
            if only.type_ids is None or type_.id in only.type_ids:
                yield table_key

    def _row(self, commit: GraphCommit, change: EntityChange) -> Row:
        if self._type is None:
            return self._about(commit, change.op.value) | {
                "kind": change.kind,
                "type": change.type,
                "id": change.id,
                "before": _text(change.old, change.hidden),
                "after": _text(change.new, change.hidden),
            }
        row = change.new if change.new is not None else change.old
        assert row is not None
        names = self._names(commit.graph_commit_id, change.op is Op.DELETE)
        return self._about(commit, change.op.value) | {column: row.get(name) for column, name in names.items()}

    def _about(self, commit: GraphCommit, op: str) -> Row:
        mark = "_" if self._type is not None else ""
        return {
            f"{mark}commit": commit.graph_commit_id,
            f"{mark}version": commit.manifest_version,
            f"{mark}actor": commit.actor_id,
            f"{mark}time": aware(commit.created_at),
            f"{mark}op": op,
        }

    def _names_at(self, commit_id: str, before: bool) -> Mapping[str, str]:
        """What the columns of the stream are called in rows of a commit: a property may have had another name then."""
        assert self._type is not None
        commit = self._store.commits.get(commit_id)
        if before and commit is not None:
            commit = self._store.commits.get(commit.parent_commit_id or "")
        names = {column: f"@{column}" for column in OWN_COLUMNS}
        then = _type_of(self._store.catalog(commit.schema_digest), self._type.id) if commit is not None else None
        called = {p.id: p.name for p in then.properties} if then is not None else {}
        return names | {p.column: called.get(p.id, p.name) for p in self._type.properties}

    def _batches(self, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        for chunk in _chunks(rows):
            columns = [pa.array([row.get(field.name) for row in chunk], field.type) for field in self._schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str | list))
        if len(chunk) == _BATCH_ROWS or size >= _BATCH_LETTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _whole(type_: GraphType, row: Mapping[str, Any], op: Op) -> EntityChange:
    shown = shown_row(type_, row)
    return EntityChange(type_.kind, type_.name, row["id"], op, None, shown, hidden=hidden_properties(type_))


def _type_of(catalog: Catalog, type_id: str) -> GraphType | None:
    return next((type_ for type_ in catalog.types() if type_.id == type_id), None)


def _text(row: Mapping[str, Any] | None, hidden: Collection[str]) -> str | None:
    """An entity as it is shown, with its vectors: a copy needs them. Of a blob there is no more than a digest."""
    if row is None:
        return None
    told = {name: value for name, value in row.items() if name not in hidden or isinstance(value, list)}
    return orjson.dumps(plain_row(told)).decode()
