"""Run a mutation: statements in order over one snapshot, one commit at the end, or nothing at all."""

from __future__ import annotations

import datetime
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.embed.text_vectors import vectors_on_write
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.commit.queue import EVERYTHING, Footprint
from omnigraph.ledger.values import MAIN, Snapshot, WriterKind
from omnigraph.query import ir
from omnigraph.query.bind import bind_parameters
from omnigraph.query.lower.compile import compile_query
from omnigraph.schema.catalog import Catalog, EdgeType
from omnigraph.write.bindings import ONE, Bindings, read_match
from omnigraph.write.committed import CommittedRows
from omnigraph.write.mutate.blob_uris import with_blob_bytes
from omnigraph.write.mutate.pending import MutationStaging, PendingTable
from omnigraph.write.results import MutationResult
from omnigraph.write.rows.fill_vectors import VectorSource, Wanting, rows_wanting, with_stand_ins, with_vectors
from omnigraph.write.stage_tables import stage_pending
from omnigraph.write.statements import Statements
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.graph_rules import check_change
from omnigraph.write.validate.value_rules import check_values

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


MOST_INSERTED_IDS = 1_000
"""So many ids of new rows are told."""

ReadAt = Callable[..., pa.Table]
"""Runs a read: `(store, snapshot, query, params, now=…)`. Reads are above writes, so they are handed down."""


def mutate(
    store: GraphStore,
    source: str,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    branch: str = MAIN,
    actor: str | None = None,
    if_commit: str | None = None,
    read: ReadAt | None = None,
) -> MutationResult:
    """Run one mutation of a query text on a branch. `read` runs its `match`, if it has one.

    It waits for its turn among the writers of this process, and is prepared again when one of another process came
    first. `if_commit`: only if no data changed on the branch since that commit; then a conflict is reported.
    """
    now = datetime.datetime.now(datetime.UTC)
    outcome: list[tuple[str, Affected]] = []

    def prepare(snapshot: Snapshot, session: WriteSession) -> WriteIntent | None:
        store.note_schema(branch, snapshot.schema_digest)
        query = compiled_mutation(store, source, name, snapshot.schema_digest)
        intent, affected = prepare_mutation(store, snapshot, session, query, params or {}, now, read)
        outcome[:] = [(query.name, affected)]
        return intent

    commit = run_write(
        store,
        branch,
        prepare,
        actor=actor,
        retry=RetryPolicy.PREPARE_AGAIN,
        if_commit=if_commit,
        operation="mutate",
        footprint=likely_footprint(store, branch, source, name),
        # A match may take long, and is worth nothing on another state.
        ahead=_is_plain(store, branch, source, name),
    )
    query_name, affected = outcome[0]
    return MutationResult(branch, query_name, affected.nodes, affected.edges, commit, actor, affected.inserted)


def _is_plain(store: GraphStore, branch: str, source: str, name: str | None) -> bool:
    """Whether a mutation compiles, by the schema that was last seen, and has no `match`."""
    try:
        return compiled_mutation(store, source, name, store.last_schema(branch)).match is None
    except OmniGraphError:
        return False


def likely_footprint(store: GraphStore, branch: str, source: str, name: str | None) -> Footprint:
    """The tables that a mutation can touch, by the schema that the branch had when this process last looked.

    It orders the queue and nothing else: a mutation that does not fit that schema says so when it is prepared.
    """
    try:
        query = compiled_mutation(store, source, name, store.last_schema(branch))
    except OmniGraphError:
        return EVERYTHING
    return Footprint(frozenset(query.writes), frozenset(query.reads))


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
    read: ReadAt | None = None,
) -> tuple[WriteIntent | None, Affected]:
    """Read, validate and stage one mutation on a snapshot; with it what it changes."""
    catalog = store.catalog(snapshot.schema_digest)
    committed = CommittedRows(store, snapshot)
    bindings = read_match(query, params, None if read is None else partial(read, store, snapshot, now=now))
    if query.match is not None:
        # Whoever changes what the match read must not come between.
        committed.reads.update(key for key in query.reads if key in snapshot.tables)
    vectors = partial(vectors_on_write, store.embedding)
    staging, changes = run_mutation(catalog, committed, query, params, now, vectors, bindings)
    outcome = Affected.by(staging, changes)
    if not changes:
        return None, outcome
    writes = [
        stage_pending(store, session, snapshot.pin(key), staging, key, pending) for key, pending in changes.items()
    ]
    return session.intent(WriterKind.MUTATION, snapshot, writes, reads=frozenset(committed.reads)), outcome


def run_mutation(
    catalog: Catalog,
    committed: CommittedRows,
    query: ir.MutationQuery,
    params: Mapping[str, Any],
    now: datetime.datetime,
    vectors: VectorSource,
    bindings: Bindings = ONE,
) -> tuple[MutationStaging, dict[str, PendingTable]]:
    """Run the statements of one mutation and validate what they did, which is what comes back; nothing is staged.

    Rows whose text is set, and not its vector, get it from `vectors` when nothing is wrong with them.
    """
    bound = with_blob_bytes(bind_parameters(query.parameters, params), query.parameters)
    staging = MutationStaging(catalog, committed)
    violations = ViolationCollector()
    Statements(staging, bindings, bound, now, violations).run(query.statements)
    changes = staging.changes()
    wanting = {key: found for key, pending in changes.items() if (found := _wanting(staging, key, pending))}
    source = vectors() if wanting else None
    if source is None:
        _validate(staging, changes, violations)
        violations.raise_if_any(f"mutation `{query.name}`")
        return staging, changes
    real = {key: changes[key].rows for key in wanting}
    for key in wanting:
        changes[key].rows = with_stand_ins(staging.type(key), real[key], wanting[key])
    _validate(staging, changes, violations)
    violations.raise_if_any(f"mutation `{query.name}`")
    for key in wanting:
        type_ = staging.type(key)
        changes[key].rows = with_vectors(type_, real[key], wanting[key], source)
        changes[key].touched |= {type_.by_name[name].column for name in wanting[key]}
    return staging, changes


def _wanting(staging: MutationStaging, table_key: str, pending: PendingTable) -> Wanting:
    """The rows that want a vector, among those that are new or whose text or vector differs from what is committed."""
    return rows_wanting(
        staging.type(table_key), pending.rows, lambda column: staging.differs(table_key, pending.rows, column)
    )


def _validate(staging: MutationStaging, changes: Mapping[str, PendingTable], violations: ViolationCollector) -> None:
    for table_key, pending in changes.items():
        check_values(staging.type(table_key), staging.rows_to_check(table_key, pending), violations)
    change = {table_key: staging.change(table_key, pending) for table_key, pending in changes.items()}
    check_change(staging.catalog, change, staging.committed, violations)


@dataclass(frozen=True, slots=True)
class Affected:
    """What a mutation changed: how many nodes and edges, and the first ids of rows that are new, by table."""

    nodes: int
    edges: int
    inserted: Mapping[str, tuple[str, ...]]

    @classmethod
    def by(cls, staging: MutationStaging, changes: Mapping[str, PendingTable]) -> Affected:
        """What these changes are."""
        counts = {True: 0, False: 0}
        inserted: dict[str, tuple[str, ...]] = {}
        left = MOST_INSERTED_IDS
        for table_key, pending in changes.items():
            counts[isinstance(staging.type(table_key), EdgeType)] += pending.rows.num_rows + len(pending.deleted)
            new = tuple(staging.new_ids(table_key, pending)[:left])
            if new:
                inserted[table_key] = new
            left -= len(new)
        return cls(counts[False], counts[True], inserted)
