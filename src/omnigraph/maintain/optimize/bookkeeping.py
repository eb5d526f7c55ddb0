"""Compaction of the graph's own tables: the commit log, the recovery audit, and a branch's line of the manifest.

They keep themselves small (last fragments are rewritten, the manifest has one row per table), so this is for graphs of
many commits or many types. Nothing is published: a version of the manifest with another layout repeats its commit.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.errors import Conflict
from omnigraph.ledger.history.log_rows import LOG
from omnigraph.ledger.layout import RECOVERIES
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.values import BranchRef
from omnigraph.storage.layout.compaction import run_compaction_task, staged_compaction

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

FRAGMENTS_LEFT_ALONE = 32
"""Fewer fragments cost a reader nothing that could be measured."""

_logger = logging.getLogger("omnigraph.maintain")


@dataclass(frozen=True, slots=True)
class CompactedInternal:
    """One of the graph's own tables that was compacted."""

    location: str
    fragments_removed: int
    fragments_added: int


def compact_internal(store: GraphStore, branch: BranchRef) -> list[CompactedInternal]:
    """Compact what has many fragments. A writer that is quicker wins: the next optimize gets to it."""
    found = [_compact(store, location, None) for location in (LOG, RECOVERIES)]
    if _many(store, MANIFEST, branch.manifest_branch):
        with store.windows.enter(branch, ()):
            found.append(_compact(store, MANIFEST, branch.manifest_branch))
    return [one for one in found if one is not None]


def _many(store: GraphStore, location: str, line: str | None) -> bool:
    return (
        store.tables.exists(location)
        and len(store.tables.fragments(store.tables.head(location, line))) > FRAGMENTS_LEFT_ALONE
    )


def _compact(store: GraphStore, location: str, line: str | None) -> CompactedInternal | None:
    if not _many(store, location, line):
        return None
    head = store.tables.head(location, line)
    work = store.tables.plan_compaction(head)
    if not work:
        return None
    staged = staged_compaction(head, [run_compaction_task(task) for task in work])
    try:
        store.tables.commit_compaction(staged)
    except Conflict as error:
        _logger.info("the compaction of %s lost to a writer: %s", location, error)
        return None
    return CompactedInternal(location, staged.fragments_removed, staged.fragments_added)
