"""Cleanup: remove what no branch, tag, retained commit, merge base or live writer needs. It destroys history.

Everything is chosen first, from one consistent look; if what some branch needs cannot be told, nothing is removed.
Forks go first, with every branch held still and the choice made afresh; then old versions, by exact list; then files
that nothing refers to. A failure stays with its table, and a rerun converges.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.config import settings
from omnigraph.errors import OmniGraphError, RecoveryRequired
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.schema_lock import refuse_while_schema_is_applied
from omnigraph.ledger.commit.staging_marks import remove_dead_marks
from omnigraph.ledger.history.held_history import history_held
from omnigraph.ledger.store import open_store
from omnigraph.maintain.recovered import refuse_pending_recovery, refuse_visible_trouble
from omnigraph.maintain.survey import inventory, leftovers, orphan_forks
from omnigraph.maintain.survey.inventory import INTERNAL, TableInventory
from omnigraph.maintain.survey.must_stay import Needs, collect, read_heads
from omnigraph.maintain.survey.retention import Retention
from omnigraph.maintain.survey.unexplained_drift import FoundDrift, Verdict, drift_of_branches, seen_drift_of_branches
from omnigraph.storage.objects.objects import DEAD_TEMPORARY_SECONDS
from omnigraph.write.embedding.shelf import remove_old_shelves

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("cleanup.chosen", "Everything is chosen, nothing is removed")
declare("cleanup.before_versions", "Orphaned forks are gone; no old version is removed")
declare("cleanup.between_tables", "The old versions of one more table are removed")

_logger = logging.getLogger("omnigraph.maintain")

KEPT_INTERNAL_VERSIONS = 8
"""Versions of the commit log and of the audit that stay, for those who are reading one right now."""


@dataclass(frozen=True, slots=True)
class CleanedTable:
    """What was removed of one table, or would be. `error` says what stays because of a failure."""

    table_key: str
    bytes_removed: int | None
    old_versions_removed: int
    forks_removed: int = 0
    files_removed: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """What a cleanup did, or with `preview` would do. Bytes of old versions are known only when they are gone."""

    preview: bool
    commits_kept: int
    tables: tuple[CleanedTable, ...]

    @property
    def failed(self) -> bool:
        """Whether something could not be removed; run it again."""
        return any(table.error for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        return {
            "preview": self.preview,
            "commits_kept": self.commits_kept,
            "tables": [table.to_json() for table in self.tables],
        }


@dataclass
class _Work:
    """One table: what is there, what goes, and what has gone."""

    table: TableInventory
    key: str
    orphans: list[str] = field(default_factory=list)
    half_made: list[str] = field(default_factory=list)
    versions: dict[str | None, list[int]] = field(default_factory=dict)
    whole: bool = False
    bytes: int = 0
    versions_gone: int = 0
    forks_gone: int = 0
    files_gone: int = 0
    errors: list[str] = field(default_factory=list)


def cleanup(
    store: GraphStore,
    *,
    keep_versions: int | None = None,
    older_than: float | None = None,
    confirm: bool = False,
    force: bool = False,
    actor: str | None = None,
) -> CleanupResult:
    """Remove old history; without `confirm` only tell what would go, and change not one byte.

    `keep_versions` commits of each branch stay, and those younger than `older_than` seconds; with both, a commit goes
    only if it is past both.
    """
    retention = Retention(keep_versions, older_than).checked(force=force)
    if not confirm:
        with open_store(store.uri, read_only=True) as seen:
            return _preview(seen, retention)
    refuse_pending_recovery(store, "cleanup")
    refuse_while_schema_is_applied(store, "cleanup")
    store.complete_log()
    _refuse_suspicious(drift_of_branches(store))
    with history_held(store, "cleanup"):
        works, needs = _choose(store, retention)
        failpoint("cleanup.chosen")
        _remove(store, works, retention)
    result = _result(works, needs, confirmed=True)
    _log_what_went(result, actor)
    return result


def _preview(store: GraphStore, retention: Retention) -> CleanupResult:
    """What would go, from a handle that cannot write: commits that are missing in the log are only taken note of."""
    refuse_visible_trouble(store, "cleanup")
    refuse_while_schema_is_applied(store, "cleanup")
    store.complete_log()
    _refuse_suspicious(seen_drift_of_branches(store))
    works, needs = _choose(store, retention)
    cutoff = oldest_protected(needs, time.time())
    _each(works, lambda work: _count_leftovers(store, work, cutoff))
    return _result(works, needs, confirmed=False)


def _result(works: list[_Work], needs: Needs, *, confirmed: bool) -> CleanupResult:
    rows = sorted((_report(work, confirmed) for work in works), key=lambda row: row.table_key)
    return CleanupResult(not confirmed, len(needs.commits), tuple(rows))


def _log_what_went(result: CleanupResult, actor: str | None) -> None:
    """History that is gone should leave a trace somewhere, and so should what could not be removed."""
    by = f" for {actor}" if actor else ""
    for table in result.tables:
        if table.forks_removed or table.old_versions_removed or table.files_removed:
            _logger.info(
                "cleanup%s: %s: %d forks, %d old versions and %d files removed, %d bytes",
                by,
                table.table_key,
                table.forks_removed,
                table.old_versions_removed,
                table.files_removed,
                table.bytes_removed or 0,
            )
        if table.error:
            _logger.warning("cleanup%s: %s: something stays: %s", by, table.table_key, table.error)


def _choose(store: GraphStore, retention: Retention) -> tuple[list[_Work], Needs]:
    """What is there, what is needed, and so what goes."""
    now = time.time()
    before = read_heads(store)
    found = [inventory.take(store, location, files) for location, files in inventory.locations(store).items()]
    needs = collect(store, before, retention, now)
    cutoff = oldest_protected(needs, now)
    return [_work(table, needs, cutoff) for table in found], needs


def oldest_protected(needs: Needs, now: float) -> float:
    """Whatever was made after this moment may be about to be published."""
    grace = now - settings().cleanup_grace
    return grace if needs.working_since is None else min(grace, needs.working_since)


def _work(table: TableInventory, needs: Needs, cutoff: float) -> _Work:
    work = _Work(table, needs.table_keys.get(table.location, table.location))
    if table.location in INTERNAL:
        work.versions = {line: list(versions[:-KEPT_INTERNAL_VERSIONS]) for line, versions in table.versions.items()}
        return work
    if leftovers.is_abandoned(table, needs, cutoff):
        work.whole = True
        return work
    if table.is_table and needs.needs_table(table.location):
        work.orphans = orphan_forks.orphans(table, needs, cutoff)
        work.half_made = orphan_forks.half_made(table, needs, cutoff)
        work.versions = unneeded_versions(table, needs, work.orphans)
    return work


def unneeded_versions(table: TableInventory, needs: Needs, orphans: Sequence[str]) -> dict[str | None, list[int]]:
    """The versions of each line that go.

    Besides what is needed there stay: the newest one, everything above the newest needed one (it may be about to be
    published), where a fork starts and the fork's own first version (differences start there), and all of a line that
    is no longer named and not yet old enough to go.
    """
    starts: dict[str | None, set[int]] = {}
    for name, fork in table.forks.items():
        if name not in orphans:
            starts.setdefault(fork.parent_branch or None, set()).add(fork.parent_version)
            starts.setdefault(name, set()).add(fork.parent_version)
    unneeded: dict[str | None, list[int]] = {}
    for line, versions in table.versions.items():
        needed = needs.versions.get((table.location, line), frozenset()) | starts.get(line, set())
        if line in orphans or (line is not None and not needs.needs_line(table.location, line)):
            continue
        below = max(needed, default=0)
        gone = [version for version in versions[:-1] if version < below and version not in needed]
        if gone:
            unneeded[line] = gone
    return unneeded


def _remove(store: GraphStore, works: list[_Work], retention: Retention) -> None:
    _remove_forks(store, works, retention)
    failpoint("cleanup.before_versions")
    _each(works, lambda work: _remove_versions(store, work))
    store.manifest.forget()
    now = time.time()
    needs = collect(store, read_heads(store), retention, now)
    _each(works, lambda work: _remove_leftovers(store, work, needs, oldest_protected(needs, now)))
    store.objects.remove_temporaries(max(settings().cleanup_grace, DEAD_TEMPORARY_SECONDS))
    store.refs.sweep(settings().cleanup_grace)
    remove_dead_marks(store.objects)
    remove_old_shelves(store.objects, settings().cleanup_grace)
    store.leases.sweep()


def _remove_forks(store: GraphStore, works: list[_Work], retention: Retention) -> None:
    """With every branch held still: choose again from what is there now, and remove what both choices agree on."""
    chosen = [work for work in works if work.orphans or work.half_made]
    if not chosen:
        return
    try:
        with orphan_forks.branches_held(store):
            now = time.time()
            needs = collect(store, read_heads(store), retention, now)
            cutoff = oldest_protected(needs, now)
            orphan_forks.announce()
            for work in chosen:
                orphans = [name for name in orphan_forks.orphans(work.table, needs, cutoff) if name in work.orphans]
                half_made = [
                    name for name in orphan_forks.half_made(work.table, needs, cutoff) if name in work.half_made
                ]
                gone, freed, error = orphan_forks.remove(store, work.table, orphans, half_made)
                if gone:
                    _logger.info("cleanup: %s: reclaimed %d forks of %s", work.key, gone, [*orphans, *half_made])
                work.forks_gone, work.bytes = gone, work.bytes + freed
                work.errors += [error] if error else []
    except OmniGraphError as doubt:
        for work in chosen:
            work.errors.append(f"orphaned forks were left alone: {doubt.message}")


def _remove_versions(store: GraphStore, work: _Work) -> None:
    for line, versions in work.versions.items():
        if not versions:
            continue
        try:
            work.bytes += store.tables.remove_versions(work.table.location, line, versions)
            work.versions_gone += len(versions)
        except (OmniGraphError, OSError) as error:
            work.errors.append(str(error))
    failpoint("cleanup.between_tables")


def _remove_leftovers(store: GraphStore, work: _Work, needs: Needs, cutoff: float) -> None:
    """Files that nothing refers to."""
    try:
        table = work.table
        if work.whole and leftovers.is_abandoned(table, needs, cutoff):
            files = list(table.files)
        elif table.is_table and not work.whole:
            files = leftovers.unreferenced_files(store, table, cutoff)
        else:
            return
        removed, freed, error = leftovers.remove_files(store, files)
        work.files_gone, work.bytes = removed, work.bytes + freed
        work.errors += [error] if error else []
    except (OmniGraphError, OSError) as error:
        work.errors.append(str(error))


def _count_leftovers(store: GraphStore, work: _Work, cutoff: float) -> None:
    """For a preview: the files that would go, not counting those that only old versions use."""
    if work.whole:
        work.files_gone = len(work.table.files)
    elif work.table.is_table:
        work.files_gone = len(leftovers.unreferenced_files(store, work.table, cutoff))


def _each(works: list[_Work], action: Callable[[_Work], None]) -> None:
    with ThreadPoolExecutor(max(1, settings().maintenance_concurrency), "omnigraph-cleanup") as pool:
        list(pool.map(action, works))


def _refuse_suspicious(found: Sequence[FoundDrift]) -> None:
    """Somebody changed data outside the ledger: which versions matter is for a person to say first."""
    for drift in found:
        if drift.verdict is not Verdict.VERIFIED:
            raise RecoveryRequired(
                f"cleanup: {drift.table_key} on branch `{drift.branch}` is at version {drift.head} and version "
                f"{drift.pinned} is published; nothing was removed. Run `omnigraph repair` first.",
                table_key=drift.table_key,
                branch=drift.branch,
            )


def _report(work: _Work, confirmed: bool) -> CleanedTable:
    if confirmed:
        return CleanedTable(
            work.key,
            work.bytes,
            work.versions_gone,
            work.forks_gone,
            work.files_gone,
            "; ".join(work.errors) or None,
        )
    return CleanedTable(
        work.key,
        None,
        sum(len(versions) for versions in work.versions.values()),
        len(work.orphans) + len(work.half_made),
        work.files_gone,
    )


__all__ = ["CleanedTable", "CleanupResult", "cleanup", "unneeded_versions"]
