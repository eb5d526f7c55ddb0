"""Carrying out the decision on one sidecar, inside the window of its branch.

Used by recovery for the sidecars of dead writers and by a writer that failed and is still alive for its own. Every step
can be cut off by a crash and is safe to be done again: the plan (how, and under which commit id) is written into the
sidecar before anything is published, a publish is known by its commit id, a restore carries the operation id, and the
audit row is keyed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ulid import ULID

from omnigraph.errors import Conflict, StorageError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.window import Window
from omnigraph.ledger.history.complete_log import known_history
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.publish import CommitDraft, Publication, place, publish
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.audit import RecoveryKind, RecoveryRecord
from omnigraph.ledger.recovery.classify import TableState, classify
from omnigraph.ledger.recovery.decide import Action, Decision, decide
from omnigraph.ledger.recovery.evidence import gather_evidence
from omnigraph.ledger.recovery.sidecars import (
    CONTENT_PRESERVING_KINDS,
    RecoveredTable,
    Resolution,
    Sidecar,
    SidecarTable,
    StoredSidecar,
)
from omnigraph.ledger.values import MAIN, RECOVERY_ACTOR, BranchRef, GraphCommit, TablePin, WriterKind
from omnigraph.storage.values import TableVersion

_logger = logging.getLogger("omnigraph.ledger")

declare("recovery.planned", "The plan is in the sidecar; nothing was restored or published")
declare("recovery.restored", "One table was restored to its pin (hit once per table)")
declare("recovery.before_publish", "Every table is as it will be published; the publish has not begun")
declare("recovery.published", "Recovery has published; no audit row, the sidecar is still there")
declare("recovery.retired", "The sidecar is gone; the window is still held")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a sidecar.

    `commit` is the write's own commit when it stands. `refused` says why a person has to look. `deferred` is true when
    it needs a restore and the caller allowed none.
    """

    action: Action
    states: tuple[TableState, ...]
    commit: GraphCommit | None = None
    refused: str | None = None
    deferred: bool = False


class _Slipped(Exception):
    """Somebody's commit came under a restore. The restore was taken back."""


def look(store: GraphParts, branch: BranchRef, sidecar: Sidecar) -> tuple[Decision, ManifestState]:
    """Classify the tables of a sidecar and decide, changing nothing."""
    current = store.manifest.read(branch)
    preserves_content = sidecar.kind in CONTENT_PRESERVING_KINDS
    states = [
        classify(evidence, sidecar.operation_id, preserves_content=preserves_content)
        for evidence in gather_evidence(store, sidecar, current)
    ]
    decision = decide(
        sidecar.kind,
        states,
        branch_exists=True,
        commit_published=known_history(store, current).get(sidecar.graph_commit_id) is not None,
        base_holds=_base_holds(sidecar, current),
    )
    return decision, current


def resolve(store: GraphParts, window: Window, stored: StoredSidecar, *, restore: bool) -> Outcome:
    """Resolve a sidecar that is ours, whose branch exists and whose window is held."""
    sidecar = stored.sidecar
    decision, current = look(store, window.branch, sidecar)
    planned = _finished_plan(store, sidecar, current)
    if planned is not None:
        retire(store, sidecar, planned)
        return Outcome(decision.action, decision.states)
    if decision.blocks:
        return Outcome(decision.action, decision.states, refused=why_refused(decision))
    if decision.restores and not restore:
        return Outcome(decision.action, decision.states, deferred=True)
    if decision.action is Action.COMPLETE:
        return _complete(store, sidecar, decision, current)
    if decision.action is Action.NOTHING_LANDED:
        return _nothing_landed(store, sidecar, decision, current)
    if decision.action in (Action.ROLL_FORWARD, Action.PUBLISH_LANDED):
        return _roll_forward(store, window, stored, decision, current)
    try:
        return _roll_back(store, window, stored, decision, current)
    except _Slipped as slipped:
        return Outcome(Action.REFUSE, decision.states, refused=str(slipped))


def refresh_schema_text(store: GraphParts, sidecar: Sidecar) -> None:
    """Write `_schema.pg` again after a schema apply on main."""
    if sidecar.schema_digest is not None and sidecar.branch == MAIN:
        source, _ = store.schemas.get(store.manifest.read(store.branch(MAIN)).schema_digest)
        store.schemas.write_current(source)


def draft_of_recovery(graph_commit_id: str, current: ManifestState) -> CommitDraft:
    """A commit of recovery's own, on top of what is published: no row is another than before."""
    return CommitDraft(
        graph_commit_id=graph_commit_id,
        parent_commit_id=current.head.graph_commit_id,
        merged_parent_commit_id=None,
        actor_id=RECOVERY_ACTOR,
        created_at=now(),
        kind=WriterKind.RECOVERY,
        changes_data=False,
    )


def now() -> int:
    """The time of a commit or an audit row: microseconds since the epoch."""
    return time.time_ns() // 1000


def _base_holds(sidecar: Sidecar, current: ManifestState) -> bool:
    if current.schema_digest != sidecar.base_schema_digest:
        return False
    return all(place(current.tables.get(key)) == place(pin) for key, pin in sidecar.reads)


def _finished_plan(store: GraphParts, sidecar: Sidecar, current: ManifestState) -> Resolution | None:
    """The plan of an earlier recoverer that had published and died before its traces were gone."""
    plan = sidecar.resolution
    if plan is None or known_history(store, current).get(plan.graph_commit_id) is None:
        return None
    return plan


def _complete(store: GraphParts, sidecar: Sidecar, decision: Decision, current: ManifestState) -> Outcome:
    commit = known_history(store, current).get(sidecar.graph_commit_id)
    refresh_schema_text(store, sidecar)
    stands_at = commit.graph_commit_id if commit else current.head.graph_commit_id
    retire(store, sidecar, Resolution(RecoveryKind.COMPLETED, stands_at, _as_found(decision.states)))
    return Outcome(decision.action, decision.states, commit=commit)


def _nothing_landed(store: GraphParts, sidecar: Sidecar, decision: Decision, current: ManifestState) -> Outcome:
    _drop_forks(store, decision.states)
    head = current.head.graph_commit_id
    retire(store, sidecar, Resolution(RecoveryKind.ROLLED_BACK, head, _as_found(decision.states)))
    return Outcome(decision.action, decision.states)


def _roll_forward(
    store: GraphParts, window: Window, stored: StoredSidecar, decision: Decision, current: ManifestState
) -> Outcome:
    """Publish what landed under the write's own commit id."""
    tables = tuple(RecoveredTable(s.table.table_key, s.head, s.head) for s in decision.publish)
    stored = _plan(store, stored, Resolution(RecoveryKind.ROLLED_FORWARD, stored.sidecar.graph_commit_id, tables))
    sidecar = stored.sidecar
    pins = {state.table.table_key: _reached(state, sidecar.incarnation) for state in decision.publish}
    new = {state.table.table_key for state in decision.publish if state.pin is None}
    draft = CommitDraft(
        graph_commit_id=sidecar.graph_commit_id,
        parent_commit_id=current.head.graph_commit_id,
        merged_parent_commit_id=sidecar.merged_parent_commit_id,
        actor_id=RECOVERY_ACTOR,
        created_at=now(),
        kind=sidecar.kind,
        changes_data=sidecar.changes_data,
        operations=sidecar.operations,
        about=sidecar.about,
        batches=sidecar.batches,
    )
    publication = Publication(
        commit=draft,
        updates=(*(pin for key, pin in pins.items() if key not in new), *sidecar.repinned),
        registered=(*(pin for key, pin in pins.items() if key in new), *sidecar.registered),
        tombstones=sidecar.tombstones,
        renamed=sidecar.renamed,
        schema_digest=sidecar.schema_digest,
    )
    commit = _publish(store, window, stored, publication, current)
    refresh_schema_text(store, sidecar)
    _finish(store, stored)
    return Outcome(decision.action, decision.states, commit=commit)


def _roll_back(
    store: GraphParts, window: Window, stored: StoredSidecar, decision: Decision, current: ManifestState
) -> Outcome:
    """Restore what moved to its pin and publish the restored heads, so that pin = HEAD in this direction too."""
    if not decision.publish:
        # Only forks of its own had moved: nobody sees them, so there is nothing to publish.
        return _nothing_landed(store, stored.sidecar, decision, current)
    tables = tuple(RecoveredTable(s.table.table_key, s.head, s.pin.version if s.pin else None) for s in decision.states)
    stored = _plan(store, stored, Resolution(RecoveryKind.ROLLED_BACK, str(ULID()), tables))
    for state in sorted(decision.restores, key=lambda state: state.table.table_key):
        _restore(store, window, stored, state)
        failpoint("recovery.restored")
    updates = []
    for state in decision.publish:
        assert state.pin is not None
        head = store.tables.head(state.pin.location, state.pin.lance_branch)
        updates.append(replace(state.pin, version=head.version))
    resolution = stored.sidecar.resolution
    assert resolution is not None
    draft = draft_of_recovery(resolution.graph_commit_id, current)
    _publish(store, window, stored, Publication(commit=draft, updates=tuple(updates)), current)
    _drop_forks(store, decision.states)
    _finish(store, stored)
    return Outcome(decision.action, decision.states)


def _restore(store: GraphParts, window: Window, stored: StoredSidecar, state: TableState) -> None:
    """Put one table back to its pin, as exactly the version after the HEAD that was classified."""
    assert state.pin is not None
    assert state.head is not None
    window.covers(state.table.table_key)
    window.check()
    store.sidecars.check_ours(stored)
    operation_id = stored.sidecar.operation_id
    pinned = TableVersion(state.pin.location, state.pin.lance_branch, state.pin.version)
    try:
        store.tables.restore(pinned, state.head, operation_id)
    except Conflict as conflict:
        landed = conflict.details.get("landed_version")
        if landed is not None:
            store.tables.restore(pinned.at(landed - 1), landed, operation_id)
        raise _Slipped(
            f"somebody committed to {state.table.table_key} while it was being restored to version "
            f"{pinned.version}; that commit was kept and the table was not restored"
        ) from conflict


def _publish(
    store: GraphParts, window: Window, stored: StoredSidecar, publication: Publication, current: ManifestState
) -> GraphCommit:
    failpoint("recovery.before_publish")
    window.check()
    store.sidecars.check_ours(stored)
    touched = {pin.table_key for pin in (*publication.updates, *publication.registered)}
    touched |= {key for pair in publication.renamed for key in pair} | set(publication.tombstones)
    expected = {key: current.tables.get(key) for key in touched}
    commit = publish(store, window.branch, publication, expected=expected, told_by_sidecar=True)
    failpoint("recovery.published")
    return commit


def _plan(store: GraphParts, stored: StoredSidecar, resolution: Resolution) -> StoredSidecar:
    """Write the plan down. A plan of the same kind that is there already goes on: it has the HEADs first found."""
    earlier = stored.sidecar.resolution
    if earlier is None or earlier.kind != resolution.kind:
        stored = store.sidecars.plan(stored, resolution)
    failpoint("recovery.planned")
    return stored


def _finish(store: GraphParts, stored: StoredSidecar) -> None:
    assert stored.sidecar.resolution is not None
    retire(store, stored.sidecar, stored.sidecar.resolution)


def retire(store: GraphParts, sidecar: Sidecar, resolution: Resolution) -> None:
    """Write the audit row and remove the sidecar: the end of every resolution."""
    store.audit.record(
        RecoveryRecord(
            operation_id=sidecar.operation_id,
            kind=RecoveryKind(resolution.kind),
            graph_commit_id=resolution.graph_commit_id,
            writer_kind=sidecar.kind,
            recovery_for_actor=sidecar.actors,
            branch=sidecar.branch,
            tables=resolution.tables,
            created_at=now(),
        )
    )
    store.sidecars.delete(sidecar.operation_id)
    failpoint("recovery.retired")


def _as_found(states: Sequence[TableState]) -> tuple[RecoveredTable, ...]:
    return tuple(RecoveredTable(s.table.table_key, s.head, s.pin.version if s.pin else None) for s in states)


def _reached(state: TableState, incarnation: str) -> TablePin:
    table: SidecarTable = state.table
    assert state.head is not None
    return TablePin(
        table.table_key, table.type_id, table.location, table.lance_branch, state.head, table.row_count, incarnation
    )


def _drop_forks(store: GraphParts, states: Sequence[TableState]) -> None:
    """Remove forks that the write had made for itself. They are orphans: what fails here is left to `cleanup`."""
    for state in states:
        table = state.table
        named = state.pin is not None and state.pin.lance_branch == table.lance_branch
        if table.lance_branch is None or named or state.head is None:
            continue
        try:
            store.tables.delete_fork(table.location, table.lance_branch)
        except StorageError as error:
            _logger.info("the orphaned fork %s of %s stays for cleanup: %s", table.lance_branch, table.location, error)


def why_refused(decision: Decision) -> str:
    """What a person has to know about a sidecar that recovery leaves alone."""
    found = ", ".join(
        f"{state.table.table_key} is {state.table_class.value} (published {state.pin.version if state.pin else None}, "
        f"newest {state.head})"
        for state in decision.states
    )
    if decision.action is Action.INVARIANT_BROKEN:
        return f"published data is missing: {found}"
    return f"a commit that belongs to nobody known lies above a published version: {found}"
