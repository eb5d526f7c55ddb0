"""Three-way merge of one branch into another: one commit with two parents, or every conflict and no effect.

Both heads are pinned when the merge starts. If the target moves before the commit, the merge is prepared again on the
new target with the same source; the source is never swapped for a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequest, MergeConflicts, NotFound, OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.branches import delete_branch
from omnigraph.ledger.branches.names import refuse_system_name
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.graph_choices import merge_granularity
from omnigraph.ledger.history.complete_log import known_history
from omnigraph.ledger.history.dag import is_ancestor
from omnigraph.ledger.values import MAIN, GraphCommit, Snapshot, WriterKind
from omnigraph.merge.across_schemas import decide_across
from omnigraph.merge.changes import EntityChange, TypeCount
from omnigraph.merge.decide.bases import base_snapshots
from omnigraph.merge.decide.conflicts import ConflictKind, MergeConflict, Resolutions, described
from omnigraph.merge.decide.given_rows import checked_answers
from omnigraph.merge.decide.graph_conflicts import graph_conflicts
from omnigraph.merge.decide.planned import PlannedChanges
from omnigraph.merge.decide.schema_merge import SchemaMerge, merged_schema
from omnigraph.merge.decide.three_way import TableMerge, merge_table
from omnigraph.merge.placement import IN_PROCESS, Placement
from omnigraph.merge.stage.stage import row_changes, stage
from omnigraph.merge.stage.stage_schema import stage_schema
from omnigraph.merge.undo.taken_back import TakenBack, taken_back
from omnigraph.notebook import counted, html_table
from omnigraph.storage.lance_errors import TableNotFound

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("merge.decided", "What the merge does to each table is decided; nothing is staged")
declare("merge.staged", "The merged rows are staged on the target's lines; the commit window is not entered")
declare("merge.before_delete_source", "The merge is published; its source branch is not deleted yet")


class Outcome(StrEnum):
    """How a merge ended."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"
    CONFLICTS = "conflicts"
    """Only of a dry run: rows collide, and the merge would be refused."""


@dataclass(frozen=True, repr=False)
class MergeResult:
    """What a merge did, or with `dry_run` what it would do. `commit` is None when nothing was published."""

    source: str
    target: str
    outcome: Outcome
    commit: GraphCommit | None
    tables: tuple[TypeCount, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    dry_run: bool = False
    source_deleted: bool = False
    source_kept_because: str | None = None
    engine: str = "local"
    reverted: tuple[TakenBack, ...] = ()
    """Commits of the source that the target has taken back: merging does not bring them again."""
    changes: Iterable[EntityChange] = ()
    """With `dry_run`: every change that the merge would make, streamed each time it is iterated."""

    def __repr__(self) -> str:
        parts = [self.outcome.value.replace("_", " ")]
        parts += [f"{counted(len(self.conflicts), 'conflict')}, nothing can be merged"] if self.conflicts else []
        rows = sum(count.total for count in self.tables)
        parts += [f"{counted(rows, 'row')} in {counted(len(self.tables), 'table')}"] if rows else []
        parts += [f"commit {self.commit.graph_commit_id}"] if self.commit else []
        parts += [f"{counted(len(self.reverted), 'commit')} stay reverted"] if self.reverted else []
        parts += ["dry run"] if self.dry_run else []
        return f"<MergeResult {self.source} into {self.target}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        rows = [(count.table_key, count.inserts, count.updates, count.deletes) for count in self.tables]
        return html_table(("table", "inserts", "updates", "deletes"), rows, repr(self).strip("<>"))

    def to_json(self) -> dict[str, Any]:
        """The response of `branch merge`."""
        return {
            "source": self.source,
            "target": self.target,
            "outcome": self.outcome.value,
            "dry_run": self.dry_run,
            "tables": [count.to_json() for count in self.tables],
            "merge_conflicts": [conflict.to_json() for conflict in self.conflicts],
            "commit": self.commit.to_json() if self.commit else None,
            "source_deleted": self.source_deleted,
            "source_kept_because": self.source_kept_because,
            "engine": self.engine,
            "reverted": [one.to_json() for one in self.reverted],
        }


@dataclass(frozen=True)
class Decision:
    """What a merge does to each table of the target, before anything is staged."""

    outcome: Outcome
    bases: tuple[Snapshot, ...]
    tables: dict[str, TableMerge]
    conflicts: tuple[MergeConflict, ...]
    reads: frozenset[str]
    reverted: tuple[TakenBack, ...] = ()
    schema: SchemaMerge | None = None

    @property
    def counts(self) -> tuple[TypeCount, ...]:
        """What is inserted, updated and deleted per table, nodes before edges."""
        return tuple(self.tables[key].counts for key in sorted(self.tables, key=lambda key: (key[:5] != "node:", key)))


def merge(
    store: GraphStore,
    source: str,
    into: str = MAIN,
    *,
    strategy: str | None = None,
    resolutions: Mapping[Any, Any] | None = None,
    dry_run: bool = False,
    delete_source: bool = False,
    granularity: str | None = None,
    actor: str | None = None,
    placement: Placement = IN_PROCESS,
) -> MergeResult:
    """Merge branch `source` into branch `into`. `MergeConflicts` with all of them when rows collide.

    `strategy` (ours, theirs) settles divergent rows, `resolutions` single ones: (table key, id) to ours, theirs, a row,
    or None to delete it. `granularity` (row, property; by default what the graph or the settings say) is how fine the
    changes are that can collide. `dry_run` writes nothing and returns conflicts instead of raising them. `placement`
    says where rows are compared and written.
    """
    if source == into:
        raise BadRequest(f"merge: `{source}` cannot be merged into itself")
    answers = Resolutions.of(strategy, resolutions, granularity or merge_granularity(store))
    refuse_system_name(into, "merge")
    pinned = store.snapshot(branch=store.branch(source, "merge").name)
    if dry_run:
        decision = decide(store, pinned, store.snapshot(branch=store.branch(into, "merge").name), answers, placement)
        return MergeResult(
            source,
            into,
            Outcome.CONFLICTS if decision.conflicts else decision.outcome,
            None,
            decision.counts,
            decision.conflicts,
            dry_run=True,
            engine=placement.engine,
            reverted=decision.reverted,
            changes=PlannedChanges(
                decision.schema.store if decision.schema else store, tuple(decision.tables.values())
            ),
        )
    store.refuse_if_read_only("merge")
    made: list[Decision] = []

    def prepare(target: Snapshot, session: WriteSession) -> WriteIntent | None:
        decision = decide(store, pinned, target, answers, placement)
        made[:] = [decision]
        if decision.conflicts:
            advice = "apply to one of the branches what both shall have, and merge again"
            raise refusal(f"`{source}` cannot be merged into `{into}`", decision.conflicts, advice)
        if decision.outcome is Outcome.ALREADY_UP_TO_DATE:
            return None
        failpoint("merge.decided")
        # What streams have brought to the source comes with it: the target has those batches from now on.
        brought = store.manifest.read(pinned.branch, pinned.manifest_version).batches
        if decision.schema is not None:
            merging = pinned.head.graph_commit_id
            across = intent_across(
                store, session, WriterKind.BRANCH_MERGE, decision, decision.schema, placement, merging
            )
            return replace(across, batches=brought)
        staged = stage(store, session, decision.bases, target, tuple(decision.tables.values()), placement)
        failpoint("merge.staged")
        intent = session.intent(
            WriterKind.BRANCH_MERGE,
            target,
            staged.writes,
            reads=decision.reads,
            changes_data=bool(staged.writes or staged.repinned),
            merged_parent_commit_id=pinned.head.graph_commit_id,
        )
        return replace(intent, repinned=staged.repinned, batches=brought)

    try:
        commit = run_write(
            store, into, prepare, actor=actor, retry=RetryPolicy.PREPARE_AGAIN, operation=f"merge of `{source}`"
        )
    except TableNotFound as missing:
        if store.refs.get(source) == pinned.branch:
            raise
        raise NotFound(
            f"merge: branch `{source}` was deleted while it was being merged; nothing was written", branch=source
        ) from missing
    result = MergeResult(
        source, into, made[0].outcome, commit, made[0].counts, engine=placement.engine, reverted=made[0].reverted
    )
    return _without_source(store, result) if delete_source else result


def intent_across(
    store: GraphStore,
    session: WriteSession,
    kind: WriterKind,
    decision: Decision,
    schema: SchemaMerge,
    placement: Placement = IN_PROCESS,
    merged_parent: str | None = None,
) -> WriteIntent:
    """Schema and data in one commit."""
    staged = stage_schema(store, session, schema, decision.tables, placement)
    failpoint("merge.staged")
    intent = session.intent(
        kind, schema.raw_target, staged.writes, reads=decision.reads, merged_parent_commit_id=merged_parent
    )
    return replace(
        intent,
        repinned=tuple(staged.repinned),
        registered=tuple(staged.registered),
        renamed=staged.renamed,
        tombstones=staged.tombstones,
        schema_digest=staged.schema_digest,
    )


def decide(
    store: GraphStore,
    source: Snapshot,
    target: Snapshot,
    resolutions: Resolutions,
    placement: Placement = IN_PROCESS,
) -> Decision:
    """Compare source and target with their common ancestor, row by row. Reads only."""
    ours, theirs = target.head.graph_commit_id, source.head.graph_commit_id
    for state in (source, target):
        known_history(store, store.manifest.read(state.branch))
    graph = store.commits.graph()
    if is_ancestor(graph, theirs, ours):
        checked_answers(store.catalog(target.schema_digest), resolutions)
        return Decision(Outcome.ALREADY_UP_TO_DATE, (), {}, (), frozenset(), taken_back(graph, theirs, ours))
    bases = base_snapshots(store, ours, theirs)
    schema = merged_schema(store, bases, source, target)
    answers = checked_answers(schema.catalog if schema else store.catalog(target.schema_digest), resolutions)
    # With rows that were answered the target does not take the state of the source as it is.
    forward = is_ancestor(graph, ours, theirs) and not answers.rows
    outcome = Outcome.FAST_FORWARD if forward else Outcome.MERGED
    if schema is None:
        decision = decide_between(store, bases, source, target, answers, placement, outcome)
    else:
        across = decide_across(store, schema, answers, placement, forward=forward)
        reads = frozenset(target.tables)
        decision = Decision(outcome, tuple(bases), across.tables, across.conflicts, reads, schema=across.schema)
    return replace(decision, reverted=taken_back(graph, theirs, ours))


def decide_between(
    store: GraphStore,
    bases: Sequence[Snapshot],
    source: Snapshot,
    target: Snapshot,
    answers: Resolutions,
    placement: Placement = IN_PROCESS,
    outcome: Outcome = Outcome.MERGED,
) -> Decision:
    """What the target gets when everything is brought to it that changed from the bases to the source. Reads only."""
    catalog = store.catalog(target.schema_digest)
    tables: dict[str, TableMerge] = {}
    conflicts: list[MergeConflict] = []
    reads: set[str] = set()
    for type_ in catalog.types():
        merged = merge_table(store, type_, bases, source, target, answers, placement)
        if merged is None:
            continue
        reads.add(type_.table_key)
        conflicts += merged.conflicts
        if not merged.is_empty:
            tables[type_.table_key] = merged
    if outcome is Outcome.FAST_FORWARD:
        # The result is the state of the source, which is valid, as long as nothing at all changes on the target.
        return Decision(outcome, tuple(bases), tables, tuple(conflicts), frozenset(target.tables))
    changes = {key: row_changes(store, merged) for key, merged in tables.items()}
    broken, looked_at = graph_conflicts(store, bases, source, target, changes)
    return Decision(outcome, tuple(bases), tables, (*conflicts, *broken), frozenset(reads | looked_at))


def refusal(what: str, conflicts: tuple[MergeConflict, ...], schema_advice: str) -> MergeConflicts:
    """The error with all conflicts. `what` says what cannot be done, `schema_advice` what helps with schemas."""
    about_schemas = any(conflict.kind is ConflictKind.SCHEMA_CONFLICT for conflict in conflicts)
    advice = "Settle divergent rows with a strategy (ours, theirs) or row by row, or change one of the branches."
    shown = described(conflicts[:10])
    more = f"\n  and {len(conflicts) - 10} more" if len(conflicts) > 10 else ""
    noun = "conflict" if len(conflicts) == 1 else "conflicts"
    return MergeConflicts(
        f"{what}, nothing was published: {len(conflicts)} {noun}\n{shown}{more}\n"
        + (f"Strategies and answers settle rows, not schemas: {schema_advice}." if about_schemas else advice),
        conflicts,
        merge_conflicts=[conflict.to_json() for conflict in conflicts],
    )


def _without_source(store: GraphStore, result: MergeResult) -> MergeResult:
    """Delete the source. The merge has landed: a refusal is reported and does not fail it."""
    failpoint("merge.before_delete_source")
    try:
        delete_branch(store, result.source)
    except OmniGraphError as error:
        return replace(result, source_kept_because=error.message)
    return replace(result, source_deleted=True)
