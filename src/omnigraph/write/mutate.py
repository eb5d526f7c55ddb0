"""Run a mutation: statements in order over one snapshot, one commit at the end, or nothing at all."""

from __future__ import annotations

import datetime
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest, KeyConflict
from omnigraph.ledger.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.intents import WriteIntent
from omnigraph.ledger.values import MAIN, Snapshot, WriterKind
from omnigraph.query import ir
from omnigraph.query.bind import bind_parameters
from omnigraph.query.evaluate import evaluate
from omnigraph.query.lower.compile import compile_query
from omnigraph.query.text import syntax
from omnigraph.query.text.parse import parse_queries
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType
from omnigraph.write.blob_uris import read_blob_uri, with_blob_bytes
from omnigraph.write.columns import working_schema
from omnigraph.write.committed import CommittedRows
from omnigraph.write.identity import with_ids
from omnigraph.write.results import MutationResult
from omnigraph.write.rows import Rows
from omnigraph.write.stage_tables import stage_pending
from omnigraph.write.staging import MutationStaging, PendingTable
from omnigraph.write.validate.changes import one_array
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.graph import check_change
from omnigraph.write.validate.values import check_values

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


def mutate(
    store: GraphStore,
    source: str,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    branch: str = MAIN,
    actor: str | None = None,
    if_commit: str | None = None,
) -> MutationResult:
    """Run one mutation of a query text on a branch.

    A mutation of inserts alone is prepared again when another writer came first; updates and deletes report the
    conflict. `if_commit`: only if no data changed on the branch since that commit.
    """
    now = datetime.datetime.now(datetime.UTC)
    outcome: list[tuple[str, int, int]] = []

    def prepare(snapshot: Snapshot, session: WriteSession) -> WriteIntent | None:
        query = compiled_mutation(store, source, name, snapshot.schema_digest)
        intent, affected = prepare_mutation(store, snapshot, session, query, params or {}, now)
        outcome[:] = [(query.name, *affected)]
        return intent

    commit = run_write(
        store,
        branch,
        prepare,
        actor=actor,
        retry=retry_policy(source, name),
        if_commit=if_commit,
        operation="mutate",
    )
    query_name, nodes, edges = outcome[0]
    return MutationResult(branch, query_name, nodes, edges, commit, actor)


@lru_cache(maxsize=256)
def retry_policy(source: str, name: str | None) -> RetryPolicy:
    """Whether a conflict is prepared again: for inserts alone. The text says so, whatever the schema is."""
    chosen = [query for query in parse_queries(source).queries if name is None or query.name.text == name]
    statements = [s for query in chosen if isinstance(query.body, syntax.Mutation) for s in query.body.statements]
    only_inserts = all(isinstance(statement, syntax.Insert) for statement in statements)
    return RetryPolicy.PREPARE_AGAIN if only_inserts else RetryPolicy.SURFACE


_COMPILED: OrderedDict[tuple[str, str | None, str], ir.MutationQuery] = OrderedDict()
_COMPILED_KEPT = 256
_compiled_lock = threading.Lock()


def compiled_mutation(store: GraphStore, source: str, name: str | None, digest: str) -> ir.MutationQuery:
    """The mutation of a text, compiled for the schema of that digest; the last few hundred are kept."""
    key = (source, name, digest)
    with _compiled_lock:
        if key in _COMPILED:
            _COMPILED.move_to_end(key)
            return _COMPILED[key]
    query = compile_query(source, store.catalog(digest), name)
    if not isinstance(query, ir.MutationQuery):
        raise BadRequest(f"`{query.name}` is a read; run it with `query`")
    with _compiled_lock:
        _COMPILED[key] = query
        while len(_COMPILED) > _COMPILED_KEPT:
            _COMPILED.popitem(last=False)
    return query


def prepare_mutation(
    store: GraphStore,
    snapshot: Snapshot,
    session: WriteSession,
    query: ir.MutationQuery,
    params: Mapping[str, Any],
    now: datetime.datetime,
) -> tuple[WriteIntent | None, tuple[int, int]]:
    """Read, validate and stage one mutation on a snapshot; with it the numbers of affected nodes and edges."""
    catalog = store.catalog(snapshot.schema_digest)
    committed = CommittedRows(store, snapshot)
    bound = with_blob_bytes(bind_parameters(query.parameters, params), query.parameters)
    staging = MutationStaging(catalog, committed)
    violations = ViolationCollector()
    run = _Run(staging, bound, now, violations)
    run.statements(query.statements)
    changes = staging.changes()
    _validate(staging, changes, violations)
    violations.raise_if_any(f"mutation `{query.name}`")
    affected = _affected(catalog, changes)
    if not changes:
        return None, affected
    writes = [
        stage_pending(store, session, snapshot.pin(key), staging, key, pending) for key, pending in changes.items()
    ]
    return session.intent(WriterKind.MUTATION, snapshot, writes, reads=frozenset(committed.reads)), affected


def _validate(staging: MutationStaging, changes: Mapping[str, PendingTable], violations: ViolationCollector) -> None:
    for table_key, pending in changes.items():
        check_values(staging.type(table_key), Rows(table_key, pending.rows), violations)
    change = {table_key: staging.change(table_key, pending) for table_key, pending in changes.items()}
    check_change(staging.catalog, change, staging.committed, violations)


def _affected(catalog: Catalog, changes: Mapping[str, PendingTable]) -> tuple[int, int]:
    nodes = edges = 0
    for table_key, pending in changes.items():
        count = pending.rows.num_rows + len(pending.deleted)
        if isinstance(catalog.table(table_key), EdgeType):
            edges += count
        else:
            nodes += count
    return nodes, edges


class _Run:
    """The statements of one mutation, each over what the earlier ones left."""

    def __init__(
        self,
        staging: MutationStaging,
        params: Mapping[str, Any],
        now: datetime.datetime,
        violations: ViolationCollector,
    ) -> None:
        self._staging = staging
        self._params = params
        self._now = now
        self._violations = violations

    def statements(self, statements: Sequence[ir.Statement]) -> None:
        # Neighbouring inserts into one table are one batch: one look-up for all of them.
        for _, group in groupby(
            statements, key=lambda s: (type(s), s.table_key if isinstance(s, ir.Insert) else id(s))
        ):
            batch = list(group)
            match batch[0]:
                case ir.Insert():
                    self._insert([statement for statement in batch if isinstance(statement, ir.Insert)])
                case ir.Update() as update:
                    self._update(update)
                case ir.Delete() as delete:
                    self._delete(delete)

    def _insert(self, inserts: Sequence[ir.Insert]) -> None:
        type_ = self._staging.type(inserts[0].table_key)
        rows = with_ids(type_, self._rows(type_, inserts), self._violations)
        if rows.table["id"].null_count:
            check_values(type_, rows, self._violations, partial=True)
            return
        if not type_.key:
            self._refuse_existing(type_, inserts, rows)
        self._staging.upsert(rows, known_new=not type_.key)

    def _rows(self, type_: GraphType, inserts: Sequence[ir.Insert]) -> Rows:
        columns: dict[str, list[pa.Array]] = {name: [] for name in working_schema(type_).names}
        mentioned: dict[str, list[bool]] = {name: [] for name in type_.by_name}
        for insert in inserts:
            given: dict[str, ir.Expr | None] = {a.property: a.value for a in insert.assignments}
            for name in mentioned:
                mentioned[name].append(name in given)
            given |= {"id": insert.id, "src": insert.source, "dst": insert.target}
            for name, values in columns.items():
                values.append(self._value(given.get(name), working_schema(type_).field(name).type))
        arrays = [pa.concat_arrays(values) for values in columns.values()]
        return Rows(
            type_.table_key,
            pa.table(arrays, schema=working_schema(type_)),
            mentioned={name: pa.array(mask) for name, mask in mentioned.items() if not all(mask)},
        )

    def _value(self, expr: ir.Expr | None, type_: pa.DataType) -> pa.Array:
        if expr is None:
            return pa.nulls(1, type_)
        if isinstance(expr, ir.Literal) and isinstance(expr.value, str) and pa.types.is_large_binary(type_):
            return pa.array([read_blob_uri(expr.value)], type_)
        value = evaluate(expr, {}, self._params, self._now, 1)
        return value if value.type == type_ else value.cast(type_)

    def _refuse_existing(self, type_: GraphType, inserts: Sequence[ir.Insert], rows: Rows) -> None:
        """An insert of a type without a key is always a new row: an id that is given must be free."""
        given = pa.array([insert.id is not None for insert in inserts])
        ids = one_array(rows.table["id"]).filter(given)
        if not len(ids):
            return
        taken = self._staging.rows_by_id(type_.table_key, ids)["id"].to_pylist()
        counts = pc.value_counts(ids)
        taken += [entry["values"].as_py() for entry in counts if entry["counts"].as_py() > 1]
        if taken:
            raise KeyConflict(
                f"{type_.name} with the id {taken[0]!r} exists already; leave the id out, or update the row",
                table_key=type_.table_key,
                row_id=taken[0],
            )

    def _update(self, update: ir.Update) -> None:
        type_ = self._staging.type(update.table_key)
        assigned = {assignment.property for assignment in update.assignments}
        fixed = sorted(assigned & {*type_.key, "id", "src", "dst"})
        if fixed:
            raise KeyConflict(
                f"`{fixed[0]}` is part of what makes a {type_.name} itself and cannot be updated; delete the row and "
                "insert a new one",
                table_key=type_.table_key,
            )
        rows = self._staging.matching(update.table_key, update.predicate, self._params, self._now)
        if not rows.num_rows:
            return
        for assignment in update.assignments:
            position = rows.schema.get_field_index(assignment.property)
            field = rows.schema.field(position)
            value = self._value(assignment.value, field.type)
            rows = rows.set_column(position, field, value.take(pa.array([0] * rows.num_rows, pa.int64())))
        self._staging.replace(update.table_key, rows, assigned)

    def _delete(self, delete: ir.Delete) -> None:
        staging = self._staging
        found = staging.matching_ids(delete.table_key, delete.predicate, self._params, self._now)
        ids = staging.delete(delete.table_key, found)
        type_ = staging.type(delete.table_key)
        if len(ids) and isinstance(type_, NodeType):
            self._cascade(type_, ids)

    def _cascade(self, type_: NodeType, ids: pa.Array) -> None:
        """Delete the edges that touch deleted nodes, on every edge type."""
        committed = self._staging.committed
        for edge in self._staging.catalog.edges_touching(type_.name):
            if not committed.count(edge.table_key):
                continue
            for end, node in (("src", edge.source), ("dst", edge.target)):
                if node == type_.name:
                    found = self._staging.rows_at(edge.table_key, end, ids)
                    if len(found):
                        self._staging.delete(edge.table_key, found)
