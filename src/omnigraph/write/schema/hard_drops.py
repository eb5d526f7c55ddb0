"""Hard drops: after the publish the old versions of a dropped type or property are removed at once.

A tag is a promise that a commit stays readable, so a hard drop that a tagged commit still needs is refused. So is one
of a type that another branch has: it reads the same table.
"""

from __future__ import annotations

import logging

from omnigraph.errors import Conflict, OmniGraphError
from omnigraph.ledger.store import GraphStore
from omnigraph.ledger.values import GraphCommit, Snapshot
from omnigraph.schema.migration.migrate import MigrationPlan
from omnigraph.schema.migration.migration_steps import DropProperty, DropType

_logger = logging.getLogger("omnigraph.write")


def hard_dropped(planned: MigrationPlan) -> dict[str, bool]:
    """Type ids whose history goes: True when the whole type goes, False when only properties do."""
    found: dict[str, bool] = {}
    for step in planned.steps:
        if isinstance(step, DropProperty) and step.hard:
            found.setdefault(step.type_id, False)
        elif isinstance(step, DropType) and step.hard:
            found[step.type_id] = True
    return found


def refuse_tagged(store: GraphStore, base: Snapshot, planned: MigrationPlan) -> None:
    """`Conflict` when a tag names a commit that has one of the tables whose history would go."""
    dropped = hard_dropped(planned)
    if not dropped:
        return
    for tag in store.refs.tags():
        pins = store.commits.pins(tag.graph_commit_id) or base.tables
        held = sorted(pin.table_key for pin in pins.values() if pin.type_id in dropped)
        if held:
            raise Conflict(
                f"schema apply: tag `{tag.name}` still needs the history of {', '.join(held)}; delete the tag, or make "
                "the drop soft by leaving out the permission to lose data",
                tag=tag.name,
                tables=held,
            )


def refuse_shared(store: GraphStore, base: Snapshot, planned: MigrationPlan) -> None:
    """`Conflict` when another branch has one of the tables whose history would go."""
    dropped = hard_dropped(planned)
    if not dropped:
        return
    for ref in store.refs.list():
        if ref.incarnation == base.branch.incarnation:
            continue
        held = sorted(pin.table_key for pin in store.manifest.read(ref).tables.values() if pin.type_id in dropped)
        if held:
            raise Conflict(
                f"schema apply: branch `{ref.name}` has {', '.join(held)} too and reads the same history; merge or "
                "delete that branch first, or make the drop soft by leaving out the permission to lose data",
                branch=ref.name,
                tables=held,
            )


def remove_hard_dropped(store: GraphStore, dropped: dict[str, bool], commit: GraphCommit) -> None:
    """Remove the history of what was dropped. The schema is published by now: what fails here is left for cleanup."""
    if not dropped:
        return
    before = store.commits.pins(commit.parent_commit_id or "") or {}
    after = store.commits.pins(commit.graph_commit_id) or {}
    kept = {pin.type_id: pin for pin in after.values()}
    for pin in before.values():
        if pin.type_id not in dropped:
            continue
        try:
            if dropped[pin.type_id]:
                store.objects.delete_prefix(pin.location)
            else:
                # On a branch this is a fork: what its parent line has from before goes with a cleanup.
                line, newest = kept[pin.type_id].lance_branch, kept[pin.type_id].version
                old = [v.version for v in store.tables.versions(pin.location, line) if v.version < newest]
                store.tables.remove_versions(pin.location, line, old)
        except OmniGraphError as error:
            _logger.warning("old versions of %s stay until cleanup: %s", pin.table_key, error)
