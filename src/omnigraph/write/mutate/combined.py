"""Combined commits: mutations that wait for one branch are committed together, by the one whose turn it is.

Each runs in order over the pending state of those before it and is validated on its own; one that fails drops out with
its own error. What the others did is staged once per table and published as one commit that lists them all. A crash
leaves the state before or after the whole commit, and no caller has been told of its success before.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from ulid import ULID

from omnigraph.config import settings
from omnigraph.embed.text_vectors import vectors_on_write
from omnigraph.errors import OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.commit.queue import Footprint, Turn
from omnigraph.ledger.history.complete_log import known_history
from omnigraph.ledger.values import MAIN, CommitOperation, GraphCommit, Snapshot, WriterKind
from omnigraph.write.committed import CommittedRows
from omnigraph.write.mutate.carried_rows import CarriedRows
from omnigraph.write.mutate.mutate import Affected, ReadAt, compiled_mutation, likely_footprint, mutate, run_mutation
from omnigraph.write.mutate.pending import PendingTable
from omnigraph.write.results import MutationResult
from omnigraph.write.stage_tables import storable
from omnigraph.write.validate.key_changes import one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

TOUCHED_IDS = 16
"""Ids that an operation lists in its commit; of what it touched beyond them the diff of the commit tells."""

declare("combine.member", "One more mutation of a combined commit was run; nothing is staged")


@dataclass(eq=False, slots=True)
class Rider:
    """One mutation on its way into a combined commit, and what became of it."""

    source: str
    name: str | None
    params: Mapping[str, Any]
    actor: str | None
    now: datetime.datetime
    operation_id: str = field(default_factory=lambda: str(ULID()))
    operation: CommitOperation | None = None
    inserted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    changed: bool = False
    error: Exception | None = None
    commit: GraphCommit | None = None

    def result(self, branch: str) -> MutationResult:
        """What its caller gets: the result, or the error that this mutation met."""
        if self.error is not None:
            raise self.error
        done = self.operation
        assert done is not None
        return MutationResult(
            branch,
            done.query_name,
            done.affected_nodes,
            done.affected_edges,
            self.commit if self.changed else None,
            self.actor,
            self.inserted,
            self.operation_id,
        )


def mutate_combined(
    store: GraphStore,
    source: str,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    branch: str = MAIN,
    actor: str | None = None,
    read: ReadAt | None = None,
) -> MutationResult:
    """Run one mutation of a query text on a branch, in one commit with others that wait, if there are any.

    One that starts with a `match` has a commit of its own: what it matches is read from a published state, and those
    before it in a combined commit are not published yet. `read` runs its `match`.
    """
    store.refuse_if_read_only("mutate")
    if _stands_alone(store, branch, source, name):
        return mutate(store, source, name, params, branch=branch, actor=actor, read=read)
    rider = Rider(source, name, params or {}, actor, datetime.datetime.now(datetime.UTC))
    footprint = likely_footprint(store, branch, source, name)
    with store.queue.turn_or_ride(branch, footprint, rider) as turn:
        if turn is not None:
            _carry(store, branch, turn, rider)
    return rider.result(branch)


def _stands_alone(store: GraphStore, branch: str, source: str, name: str | None) -> bool:
    """Whether a mutation has a `match`, or does not compile, which it says best by itself."""
    try:
        return compiled_mutation(store, source, name, store.last_schema(branch)).match is not None
    except OmniGraphError:
        return True


def _carry(store: GraphStore, branch: str, turn: Turn, first: Rider) -> None:
    """Run the mutation whose turn it is and those that wait behind it."""
    riders = [first]
    tried: list[str] = []

    def along() -> list[Rider]:
        """Take those along that wait by now, and tell who they are."""
        left = settings().combined_writes - len(riders)
        found = [rider for rider in turn.along(left) if isinstance(rider, Rider)] if left > 0 else []
        riders.extend(found)
        return found

    def prepare(snapshot: Snapshot, session: WriteSession) -> WriteIntent | None:
        store.note_schema(branch, snapshot.schema_digest)
        tried.append(session.graph_commit_id)
        return prepare_combined(store, snapshot, session, riders, along)

    try:
        commit = run_write(
            store,
            branch,
            prepare,
            retry=RetryPolicy.PREPARE_AGAIN,
            operation="mutate",
            has_turn=True,
            footprint=Footprint(frozenset()),
        )
    except Exception as error:
        for rider in riders:
            rider.error = rider.error or error
        return
    except BaseException:
        # Interrupted: either everything is done, or the others go on without this one.
        done = _published(store, branch, tried)
        if done is None:
            turn.put_back()
        for rider in riders:
            rider.commit = done
        raise
    for rider in riders:
        rider.commit = commit


def _published(store: GraphStore, branch: str, tried: list[str]) -> GraphCommit | None:
    if not tried:
        return None
    return known_history(store, store.manifest.read(store.branch(branch))).get(tried[-1])


def prepare_combined(
    store: GraphStore,
    snapshot: Snapshot,
    session: WriteSession,
    riders: Sequence[Rider],
    along: Callable[[], list[Rider]] = list,
) -> WriteIntent | None:
    """Run the mutations in order on one snapshot and stage what they did together; None when that is nothing.

    `along` gives those that have come meanwhile. Whoever was in the commit before is on its way here while this one is
    being prepared: asked once, at the start, every commit would have half of the writers in it.
    """
    catalog = store.catalog(snapshot.schema_digest)
    committed = CommittedRows(store, snapshot)
    carried = CarriedRows(committed, catalog)
    vectors = partial(vectors_on_write, store.embedding)
    operations: list[CommitOperation] = []
    for rider in chain(tuple(riders), chain.from_iterable(iter(along, []))):
        rider.error, rider.changed = None, False
        try:
            query = compiled_mutation(store, rider.source, rider.name, snapshot.schema_digest)
            staging, changes = run_mutation(catalog, carried, query, rider.params, rider.now, vectors)
        except Exception as error:  # whatever it is, it is this one's alone
            rider.error = error
            continue
        carried.fold(changes)
        failpoint("combine.member")
        affected = Affected.by(staging, changes)
        rider.inserted = affected.inserted
        rider.operation = _operation(rider, query.name, affected, changes)
        rider.changed = bool(changes)
        if changes:
            operations.append(rider.operation)
    writes = [write for key in carried if (write := _stage(store, session, snapshot, carried, key)) is not None]
    if not operations:
        return None
    actors = {operation.actor_id for operation in operations}
    # Where one undid what another did nothing is left to write; that they were there is told all the same.
    intent = session.intent(
        WriterKind.MUTATION, snapshot, writes, reads=frozenset(committed.reads), changes_data=bool(writes)
    )
    return replace(intent, actor_id=actors.pop() if len(actors) == 1 else None, operations=tuple(operations))


def _operation(
    rider: Rider, query_name: str, affected: Affected, changes: Mapping[str, PendingTable]
) -> CommitOperation:
    left, more = TOUCHED_IDS, False
    touched: list[tuple[str, tuple[str, ...]]] = []
    for table_key, pending in changes.items():
        ids = [*one_array(pending.rows["id"]).to_pylist(), *pending.deleted.to_pylist()]
        more |= len(ids) > left
        if ids[:left]:
            touched.append((table_key, tuple(ids[:left])))
        left = max(0, left - len(ids))
    return CommitOperation(
        rider.operation_id, rider.actor, query_name, affected.nodes, affected.edges, tuple(touched), more
    )


def _stage(
    store: GraphStore, session: WriteSession, snapshot: Snapshot, carried: CarriedRows, table_key: str
) -> TableWrite | None:
    """Stage what all mutations together did to one table; None when it is as it was."""
    table, pin = carried.table(table_key), snapshot.pin(table_key)
    there = carried.places(table_key)
    known = one_array(there["id"])
    gone = pa.array(sorted(table.gone.intersection(known.to_pylist())), pa.string())
    if not table.rows.num_rows and not len(gone):
        return None
    line = session.line(pin)
    rows = storable(store, line, table.rows.combine_chunks())
    if not len(gone) and not pc.any(pc.is_in(table.rows["id"], value_set=known)).as_py():
        return session.table_write(pin, store.tables.stage_append(line, rows))
    staged = store.tables.stage_change(line, rows if rows.num_rows else None, gone, there=there)
    return session.table_write(pin, staged)
