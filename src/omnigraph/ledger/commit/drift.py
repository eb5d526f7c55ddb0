"""Drift: a table whose newest version is above the published one, found when a write enters its window.

A sidecar may explain it: then recovery has to come first. If nothing explains it and no content changed (somebody
compacted the table, or died while doing so), it is published as it stands. What a writer landed after its write was
taken back (see `late_commits`) is put back. Anything else is for `repair`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ulid import ULID

from omnigraph.errors import RecoveryRequired, StorageError, StorageKind
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.commit.window import Window
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.publish import CommitDraft, Publication, check_expected, publish
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.evidence import commits_above, line_of
from omnigraph.ledger.recovery.late_commits import taken_back_before
from omnigraph.ledger.recovery.sidecars import Sidecar, UnreadableSidecar
from omnigraph.ledger.values import RECOVERY_ACTOR, BranchRef, TablePin, WriterKind

declare("drift.put_back", "Just before a table is put back that a writer moved after its write was taken back")
declare("drift.publish", "Just before drift that changes no content is published")

_logger = logging.getLogger("omnigraph.ledger")


@dataclass(frozen=True, slots=True)
class Drift:
    """One line whose newest version is above its pin."""

    pin: TablePin
    head: int


def drift_of(store: GraphParts, branch: BranchRef, pin: TablePin) -> Drift | None:
    """The drift of one table of a branch, None when its newest version is the published one.

    Only a line that the branch owns can drift: a version on anybody else's line is pinned, whatever comes after it.
    """
    if pin.owner != branch.incarnation:
        return None
    return _drift(branch, pin, store.tables.head(pin.location, pin.lance_branch).version)


def _drift(branch: BranchRef, pin: TablePin, head: int) -> Drift | None:
    if head < pin.version:
        raise published_is_missing(branch, pin, head)
    return Drift(pin, head) if head > pin.version else None


def published_is_missing(branch: BranchRef, pin: TablePin, head: int) -> StorageError:
    """The error of a line that ends below its published version: the store has lost the file of that version."""
    file = line_of(pin).manifest_file
    return StorageError(
        f"{pin.table_key} on branch `{branch.name}` is published at version {pin.version} and its newest version is "
        f"{head}: published data is missing, the file {file} first of all. Nothing was written. Put it back from a "
        "copy; `omnigraph verify` names all that is missing, and `omnigraph salvage` takes out what can be read.",
        StorageKind.PERMANENT,
        table_key=pin.table_key,
        branch=branch.name,
        path=file,
    )


def preserves_content(store: GraphParts, drift: Drift) -> bool:
    """Whether every commit between the pin and HEAD changed layout only. What cannot be read counts as a change."""
    return all(commit.preserves_content for commit in commits_above(store, line_of(drift.pin), drift.head))


def own_lines(intent: WriteIntent) -> list[TablePin]:
    """The published versions of the branch's own lines that are about to move."""
    pins = [write.pin for write in intent.writes if write.moves and write.pin is not None]
    return [pin for pin in pins if pin.owner == intent.branch.incarnation]


def check_heads(
    store: GraphParts, window: Window, intent: WriteIntent, current: ManifestState, heads: Mapping[TablePin, int]
) -> None:
    """Make sure that every line that is about to move stands at its pin. `heads` are the newest versions.

    Drift without content is published here and `TableMoved` makes the caller prepare again on top of it; any other
    drift is an error that says what to do.
    """
    found = [drift for pin, head in heads.items() if (drift := _drift(intent.branch, pin, head)) is not None]
    if not found:
        return
    _refuse_covered(store, intent.branch, found)
    settled = [_settled(store, window, intent.branch, drift) for drift in found]
    publish_drift(store, window, intent.branch, settled, current)
    published = store.manifest.read(intent.branch)
    check_expected(store, intent.branch, published, intent.expected, intent.base.head.graph_commit_id)


def publish_drift(
    store: GraphParts, window: Window, branch: BranchRef, found: Sequence[Drift], current: ManifestState
) -> None:
    """Publish the newest versions of lines whose drift changes no content, as one commit that changes no data."""
    failpoint("drift.publish")
    window.check()
    updates = tuple(replace(drift.pin, version=drift.head) for drift in found)
    draft = CommitDraft(
        graph_commit_id=str(ULID()),
        parent_commit_id=current.head.graph_commit_id,
        merged_parent_commit_id=None,
        actor_id=RECOVERY_ACTOR,
        created_at=time.time_ns() // 1000,
        kind=WriterKind.RECOVERY,
        changes_data=False,
    )
    expected = {drift.pin.table_key: drift.pin for drift in found}
    publish(store, branch, Publication(updates=updates, commit=draft), expected=expected)


def check_not_blocked(store: GraphParts, branch: BranchRef, table_keys: frozenset[str]) -> None:
    """Fail if a sidecar that waits for the next open, or for a person, is over one of these tables."""
    for deferred in store.sidecars.deferred:
        sidecar = deferred.sidecar
        shared = sorted(sidecar.table_keys & table_keys)
        if shared and sidecar.incarnation == branch.incarnation:
            raise blocked(sidecar, shared[0], refused=deferred.refused)


def blocked(sidecar: Sidecar, table_key: str, *, refused: str | None) -> RecoveryRequired:
    """The error of a write that has to wait for the recovery of another one."""
    who = f"{sidecar.kind.value} {sidecar.operation_id}" + (f" by {sidecar.actor_id}" if sidecar.actor_id else "")
    if refused is not None:
        what_next = f"Recovery refused it: {refused}. Run `omnigraph repair` to look at it and to resolve it."
    else:
        what_next = "Reopen the graph for writing: that recovers it. Then write again."
    return RecoveryRequired(
        f"an unfinished write ({who}) moved {table_key} on branch `{sidecar.branch}` and must be recovered first; "
        f"nothing was written. {what_next}",
        sidecar.operation_id,
        table_key=table_key,
        branch=sidecar.branch,
    )


def _refuse_covered(store: GraphParts, branch: BranchRef, found: Sequence[Drift]) -> None:
    keys = ", ".join(drift.pin.table_key for drift in found)
    pending: list[Sidecar] = []
    unreadable: dict[str, UnreadableSidecar] = {}
    try:
        for operation_id in store.sidecars.list():
            try:
                stored = store.sidecars.get(operation_id)
                pending += [stored.sidecar] if stored is not None else []
            except UnreadableSidecar as damage:
                unreadable[operation_id] = damage
    except StorageError as error:
        raise RecoveryRequired(
            f"{keys} on branch `{branch.name}` moved without being published, and the list of unfinished writes could "
            f"not be read ({error.message}). Either an unfinished write has to be recovered (reopen the graph for "
            "writing), or something outside this program changed the table (run `omnigraph repair`): make the store "
            "readable again and retry to find out which. Nothing was written.",
            branch=branch.name,
        ) from error
    for drift in found:
        for sidecar in pending:
            if sidecar.incarnation == branch.incarnation and sidecar.covers(
                drift.pin.table_key, drift.pin.lance_branch
            ):
                raise blocked(sidecar, drift.pin.table_key, refused=None)
        if unreadable:
            for landed in commits_above(store, line_of(drift.pin), drift.head):
                if landed.operation_id in unreadable:
                    raise _blocked_by_unreadable(unreadable[landed.operation_id], branch, drift)


def _blocked_by_unreadable(damage: UnreadableSidecar, branch: BranchRef, drift: Drift) -> RecoveryRequired:
    """What an unreadable sidecar moved is told by the commits that carry its operation id."""
    return RecoveryRequired(
        f"an unfinished write ({damage.operation_id}) moved {drift.pin.table_key} on branch `{branch.name}`, and "
        f"{damage.message}. Nothing was written.",
        damage.operation_id,
        table_key=drift.pin.table_key,
        branch=branch.name,
        path=damage.details["path"],
    )


def _settled(store: GraphParts, window: Window, branch: BranchRef, drift: Drift) -> Drift:
    """The drift as it can be published: as it is when no data changed, put back when it came too late."""
    landed = commits_above(store, line_of(drift.pin), drift.head)
    if all(commit.preserves_content for commit in landed):
        return drift
    late = taken_back_before(store, landed)
    if late is None:
        raise RecoveryRequired(
            f"{drift.pin.table_key} on branch `{branch.name}` is at version {drift.head} and version "
            f"{drift.pin.version} is published; no unfinished write explains the difference, and it changes data. "
            "Nothing was written. Run `omnigraph repair` to see what happened and to publish or undo it.",
            table_key=drift.pin.table_key,
            branch=branch.name,
        )
    failpoint("drift.put_back")
    window.check()
    # With the id of the late operation: whoever dies before the publish leaves what is recognised as late again.
    restored = store.tables.restore(line_of(drift.pin), drift.head, late)
    _logger.warning(
        "%s on branch `%s` was put back: %s was paused, taken back, and wrote to it afterwards",
        drift.pin.table_key,
        branch.name,
        late,
    )
    return Drift(drift.pin, restored.version)
