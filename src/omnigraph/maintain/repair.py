"""Repair: explicit, by a person, for drift that no unfinished write covers and for sidecars that recovery refused.

Without `confirm` it only reports. With it, verified drift is published and late drift put back; with `force` the rest
is published too, or put back to what is published (`restore`). It never rewrites data: a table put back has one more
version, with the content of the published one. A sidecar that recovery can handle is left to recovery.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ulid import ULID

from omnigraph.errors import BadRequest, OmniGraphError, RecoveryRequired
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.live_branches import for_live_branches
from omnigraph.ledger.branches.schema_lock import refuse_while_schema_is_applied
from omnigraph.ledger.commit.window import Window
from omnigraph.ledger.history.rebuild_log import RebuiltLog, ensure_log
from omnigraph.ledger.manifest.publish import CommitDraft, Publication, publish
from omnigraph.ledger.recovery.audit import RecoveryKind, RecoveryRecord
from omnigraph.ledger.recovery.evidence import line_of
from omnigraph.ledger.recovery.sidecars import RecoveredTable
from omnigraph.ledger.values import BranchRef, GraphCommit, TablePin, WriterKind
from omnigraph.maintain import lost_heads
from omnigraph.maintain.lost_heads import MendedHead
from omnigraph.maintain.pending_writes import (
    REFUSED,
    REPORTED,
    RESOLVED,
    SET_ASIDE,
    PendingWrite,
    read_all,
    resolve_readable,
    resolve_unreadable,
)
from omnigraph.maintain.recovered import refuse_old_layout
from omnigraph.maintain.survey.unexplained_drift import (
    CoveredLine,
    FoundDrift,
    Verdict,
    covered_by_sidecars,
    drift_of_branch,
    seen_drift_of_branches,
)

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("repair.before_publish", "Drift is judged, tables are put back where that was asked for; nothing is published")

PUBLISHED, RESTORED = "published", "restored"


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """One drifted table and what became of it."""

    drift: FoundDrift
    action: str
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**self.drift.to_json(), "action": self.action, "error": self.error}


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was found and done. `commits` are those that were made, one for each branch and each resolved sidecar;
    `heads` are branches that show less than was acknowledged; `log` says how the commit log was rebuilt, if it was."""

    confirmed: bool
    tables: tuple[RepairedTable, ...]
    pending: tuple[PendingWrite, ...]
    commits: tuple[GraphCommit, ...] = ()
    heads: tuple[MendedHead, ...] = ()
    log: RebuiltLog | None = None

    @property
    def exit_code(self) -> int:
        """0 for a report, and when all that was found is mended; 1 when anything was refused or failed."""
        if not self.confirmed:
            return 0
        over = (RESOLVED, SET_ASIDE)
        stuck = REFUSED in [*(table.action for table in self.tables), *(head.action for head in self.heads)]
        return 1 if stuck or any(one.action not in over for one in self.pending) else 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        return {
            "confirmed": self.confirmed,
            "tables": [table.to_json() for table in self.tables],
            "pending": [one.to_json() for one in self.pending],
            "commits": [commit.to_json() for commit in self.commits],
            "heads": [head.to_json() for head in self.heads],
            "log": self.log.to_json() if self.log else None,
        }


def repair(
    store: GraphStore,
    *,
    confirm: bool = False,
    force: bool = False,
    restore: bool = False,
    set_aside: bool = False,
    actor: str | None = None,
) -> RepairReport:
    """Report drift and pending sidecars; with `confirm` mend what is safe, with `force` too everything else.

    `set_aside` takes sidecars that recovery refuses out of its way and leaves their tables as they are: what they moved
    is drift then.
    """
    if (force or restore or set_aside) and not confirm:
        raise BadRequest("repair: force, restore and set aside change the graph; confirm them as well")
    if restore and not force:
        raise BadRequest("repair: restore puts unexplained commits out of sight; force it as well")
    refuse_old_layout(store, "repair")
    commits: list[GraphCommit] = []
    rebuilt = None
    if confirm:
        store.refuse_if_read_only("repair")
        refuse_while_schema_is_applied(store, "repair")
        rebuilt = ensure_log(store, deep=True)
        # A commit of `main` that nobody had logged yet, and whose manifest is lost, is known to branches made from it.
        store.complete_log()
    heads = [
        lost_heads.mend(store, one, restore=restore, actor=actor, commits=commits)
        if force
        else MendedHead(one, REFUSED if confirm else REPORTED, str(one))
        for one in lost_heads.find(store)
    ]
    found = read_all(store)
    pending = [
        resolve_readable(store, one, force=force, restore=restore, set_aside=set_aside, actor=actor, commits=commits)
        for one in found.sidecars
    ]
    tables: list[RepairedTable] = []
    if confirm:
        covered = covered_by_sidecars(store)
        mend = partial(_mend, store, covered, force, restore, actor, commits)
        tables = [table for _, mended in for_live_branches(store, mend) for table in mended]
    else:
        tables = [RepairedTable(drift, REPORTED) for drift in seen_drift_of_branches(store)]
    for damage in found.unreadable.values():
        own = [table for table in tables if damage.operation_id in table.drift.operation_ids]
        mended = force and all(table.action in (PUBLISHED, RESTORED) for table in own)
        pending.append(
            resolve_unreadable(store, damage, [table.drift for table in own], mended=mended, set_aside=set_aside)
        )
    return RepairReport(confirm, tuple(tables), tuple(pending), tuple(commits), tuple(heads), rebuilt)


def _mend(
    store: GraphStore,
    covered: set[CoveredLine],
    force: bool,
    restore: bool,
    actor: str | None,
    commits: list[GraphCommit],
    branch: BranchRef,
) -> list[RepairedTable]:
    """Judge and mend the drift of one branch, with its window held from the look to the publish."""
    if not drift_of_branch(store, branch):
        return []
    with store.windows.enter(branch, store.manifest.read(branch).tables) as window:
        found = [drift for drift in drift_of_branch(store, branch) if not drift.is_covered(covered)]
        mended = [drift for drift in found if force or drift.verdict in (Verdict.VERIFIED, Verdict.LATE)]
        refused = [RepairedTable(drift, REFUSED, _why(drift)) for drift in found if drift not in mended]
        if not mended:
            return refused
        try:
            done, commit = _publish(store, window, branch, mended, restore, actor)
        except RecoveryRequired:
            raise
        except OmniGraphError as error:
            return refused + [RepairedTable(drift, REFUSED, error.message) for drift in mended]
        commits.append(commit)
        return refused + done


def _why(drift: FoundDrift) -> str:
    if drift.verdict is Verdict.UNVERIFIABLE:
        return "what changed cannot be told; force publishes it as it stands, or restores the published version"
    return "data changed outside this program; force publishes it as it stands, or restores the published version"


def _publish(
    store: GraphStore,
    window: Window,
    branch: BranchRef,
    mended: Sequence[FoundDrift],
    restore: bool,
    actor: str | None,
) -> tuple[list[RepairedTable], GraphCommit]:
    operation_id = str(ULID())
    done: list[RepairedTable] = []
    pins: list[TablePin] = []
    for drift in mended:
        window.check()
        # Verified drift is the same rows: nothing to put back. What came late was taken back already.
        back = drift.verdict is Verdict.LATE or (restore and drift.verdict is not Verdict.VERIFIED)
        pinned = line_of(drift.pin)
        if back:
            version = store.tables.restore(pinned, drift.head, drift.late_of or operation_id).version
            pins.append(replace(drift.pin, version=version))
        else:
            rows = store.tables.count(pinned.at(drift.head))
            pins.append(replace(drift.pin, version=drift.head, row_count=rows))
        done.append(RepairedTable(drift, RESTORED if back else PUBLISHED))
    failpoint("repair.before_publish")
    window.check()
    draft = CommitDraft(
        graph_commit_id=str(ULID()),
        parent_commit_id=store.manifest.read(branch).head.graph_commit_id,
        merged_parent_commit_id=None,
        actor_id=actor,
        created_at=time.time_ns() // 1000,
        kind=WriterKind.REPAIR,
        changes_data=any(one.action == PUBLISHED and one.drift.verdict is not Verdict.VERIFIED for one in done),
    )
    expected = {drift.table_key: drift.pin for drift in mended}
    commit = publish(store, branch, Publication(commit=draft, updates=tuple(pins)), expected=expected)
    _audit(store, operation_id, branch, done, pins, commit)
    return done, commit


def _audit(
    store: GraphStore,
    operation_id: str,
    branch: BranchRef,
    done: Sequence[RepairedTable],
    pins: Sequence[TablePin],
    commit: GraphCommit,
) -> None:
    # What a table stands at is told in published versions: one that was put back shows its pinned rows again, whatever
    # the number of the version that was written for it.
    tables = tuple(
        RecoveredTable(one.drift.table_key, one.drift.head, one.drift.pinned if one.action == RESTORED else pin.version)
        for one, pin in zip(done, pins, strict=True)
    )
    kind = RecoveryKind.ROLLED_BACK if any(o.action == RESTORED for o in done) else RecoveryKind.ROLLED_FORWARD
    store.audit.record(
        RecoveryRecord(
            operation_id=operation_id,
            kind=kind,
            graph_commit_id=commit.graph_commit_id,
            writer_kind=WriterKind.REPAIR,
            recovery_for_actor=commit.actor_id,
            branch=branch.name,
            tables=tables,
            created_at=commit.created_at,
        )
    )
