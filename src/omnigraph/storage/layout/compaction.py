"""Compaction: many small or thinned fragments become few full ones; no row changes.

Planned once, executed task by task (in this process, in another, on another machine: tasks and results are plain JSON),
and committed by Lance in two steps, first reserving fragment numbers and then rewriting. Lance gives these commits no
properties, so they carry no operation id; they are known by changing no rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lance.optimize import Compaction, CompactionTask, RewriteResult

from omnigraph.errors import Conflict
from omnigraph.failpoints import declare, failpoint
from omnigraph.storage.constants import ROWS_PER_FILE
from omnigraph.storage.handles.base_paths import open_line
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors, raise_ours
from omnigraph.storage.layout.indexes import all_segments
from omnigraph.storage.staging.committing import refuse_if_moved
from omnigraph.storage.values import TableVersion

declare("storage.compaction.before", "in commit_compaction, before Lance is asked to commit")
declare("storage.compaction.after", "in commit_compaction, after the table's HEAD has moved")

LANCE_COMPACTS_BLOBS: Final = True
"""Whether the Lance in use compacts tables with blobs right. A guard on the library fails when that changes."""


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """What counts as small (`target_rows`) and as thinned (`deleted_share`)."""

    target_rows: int = ROWS_PER_FILE
    deleted_share: float = 0.1
    batch_size: int | None = None


@dataclass(frozen=True, slots=True)
class CompactionWork:
    """One task, ready to be sent somewhere: everything that `run_compaction_task` needs."""

    uri: str
    branch: str | None
    version: int
    storage_options: dict[str, str] | None
    task: str


@dataclass(frozen=True, slots=True)
class StagedCompaction:
    """Rewritten fragments on disk that no version of the table refers to yet."""

    location: str
    branch: str | None
    base_version: int
    results: tuple[str, ...]
    fragments_removed: int
    fragments_added: int

    @property
    def base(self) -> TableVersion:
        """The version that was compacted."""
        return TableVersion(self.location, self.branch, self.base_version)


def plan_compaction(
    handles: Handles, table: TableVersion, options: CompactionOptions | None = None, *, spare_first: bool = False
) -> list[CompactionWork]:
    """The tasks that would compact this version; none when there is nothing to do.

    `spare_first`: all but the table's first fragment. Every commit of rows touches that one (see `committing`), so what
    spares it can still be committed after others have come between.
    """
    chosen = options or CompactionOptions()
    settings: dict[str, object] = {
        "target_rows_per_fragment": chosen.target_rows,
        "materialize_deletions_threshold": chosen.deleted_share,
    }
    if chosen.batch_size is not None:
        settings["batch_size"] = chosen.batch_size
    if spare_first:
        settings["excluded_fragment_ids"] = [min(handles.at(table).fragment_ids(), default=0)]
    with lance_errors("planning the compaction of", table):
        plan = Compaction.plan(handles.at(table), settings)
        tasks = [task.json() for task in plan.tasks]
    uri = handles.uri(table.location, table.branch)
    return [CompactionWork(uri, table.branch, table.version, handles.storage_options, task) for task in tasks]


def run_compaction_task(work: CompactionWork) -> str:
    """Rewrite the fragments of one task; the result, for `staged_compaction`. Moves nothing; runs in any process."""
    with lance_errors("compacting", work.uri):
        handle = open_line(work.uri, work.branch, work.version, work.storage_options)
        return str(CompactionTask.from_json(work.task).execute(handle).json())


def staged_compaction(table: TableVersion, results: Sequence[str]) -> StagedCompaction:
    """The results of tasks as one staged compaction."""
    metrics = [RewriteResult.from_json(result).metrics for result in results]
    return StagedCompaction(
        table.location,
        table.branch,
        table.version,
        tuple(results),
        sum(metric.fragments_removed for metric in metrics),
        sum(metric.fragments_added for metric in metrics),
    )


def stage_compaction(
    handles: Handles, table: TableVersion, options: CompactionOptions | None = None, *, spare_first: bool = False
) -> StagedCompaction | None:
    """Plan and run every task here; None when there is nothing to do."""
    work = plan_compaction(handles, table, options, spare_first=spare_first)
    return staged_compaction(table, [run_compaction_task(task) for task in work]) if work else None


def stage_again(handles: Handles, staged: StagedCompaction, table: TableVersion) -> StagedCompaction | None:
    """The same compaction for a later version of its line; None unless that still has every fragment that was
    rewritten, and every index, as it was then.

    Lance would compare the rewriting with each commit that has come between, and read all of them for it. That nothing
    of what was rewritten has changed is seen here, so the result is told to be of the later version.
    """
    if (staged.location, staged.branch) != (table.location, table.branch) or staged.base_version > table.version:
        return None
    if staged.base == table:
        return staged
    results = [json.loads(result) for result in staged.results]
    rewritten = {int(fragment["id"]) for result in results for fragment in result["original_fragments"]}
    with lance_errors("comparing the fragments of", table):
        before, now = handles.at(staged.base), handles.at(table)
        if not rewritten <= set(now.fragment_ids()) or all_segments(before) != all_segments(now):
            return None
        pairs = ((before.get_fragment(number), now.get_fragment(number)) for number in rewritten)
        if any(earlier.metadata != later.metadata for earlier, later in pairs):
            return None
    told = tuple(json.dumps({**result, "read_version": table.version}) for result in results)
    return replace(staged, base_version=table.version, results=told)


def commit_compaction(handles: Handles, staged: StagedCompaction) -> TableVersion:
    """Make the rewritten fragments the table's newest version: two versions on, or `Conflict`.

    When it loses a race, Lance may have moved HEAD by the reservation already, which changes no rows.
    """
    base = staged.base
    refuse_if_moved(handles, base)
    failpoint("storage.compaction.before")
    handles.called("commit", base.location)
    # A handle of its own: Lance moves the one it is given.
    with lance_errors("opening", base):
        uri = handles.uri(base.location, base.branch)
        handle = open_line(uri, base.branch, base.version, handles.storage_options, handles.sessions.of(base.location))
    try:
        Compaction.commit(handle, [RewriteResult.from_json(result) for result in staged.results])
    except Exception as error:
        if "conflict" in str(error).lower():
            raise Conflict(
                f"{base} was changed by another writer while it was compacted; nothing was rewritten. "
                "Run it again later"
            ) from error
        raise_ours("compacting", base, error)
    failpoint("storage.compaction.after")
    landed = base.at(int(handle.version))
    if landed.version != base.version + 2:
        raise Conflict(
            f"the compaction of {base} landed as version {landed.version}, on top of another writer's commit",
            expected=base.version,
            actual=landed.version - 2,
            landed_version=landed.version,
        )
    return landed
