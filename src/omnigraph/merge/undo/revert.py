"""Revert and cherry-pick: what one commit changed, taken back or brought to another branch, as a three-way merge.

A revert is a merge with the commit as base and its first parent as the other side; a cherry-pick one with the parent
as base and the commit as the other side. Either makes one commit with one parent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequest, HistoryGap
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.names import refuse_system_name
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.graph_choices import merge_granularity
from omnigraph.ledger.history.complete_log import known_history
from omnigraph.ledger.history.dag import is_ancestor
from omnigraph.ledger.manifest.publish import place
from omnigraph.ledger.values import MAIN, Snapshot, WriterKind
from omnigraph.merge.across_schemas import decide_across
from omnigraph.merge.decide.conflicts import Resolutions
from omnigraph.merge.decide.given_rows import checked_answers
from omnigraph.merge.decide.planned import PlannedChanges
from omnigraph.merge.decide.schema_merge import merged_schema
from omnigraph.merge.merge import Decision, Outcome, decide_between, intent_across, refusal
from omnigraph.merge.placement import IN_PROCESS, Placement
from omnigraph.merge.stage.stage import stage
from omnigraph.merge.undo.restore import put_back
from omnigraph.merge.undo.spans import Span, span_of
from omnigraph.merge.undo.undo_result import UndoOutcome, UndoResult
from omnigraph.storage.lance_errors import TableNotFound

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("undo.decided", "What a revert or a cherry-pick does to each table is decided; nothing is staged")
declare("undo.staged", "The rows of a revert or a cherry-pick are staged; the commit window is not entered")


def revert(
    store: GraphStore,
    commit: str,
    branch: str = MAIN,
    *,
    strategy: str | None = None,
    resolutions: Mapping[Any, Any] | None = None,
    granularity: str | None = None,
    dry_run: bool = False,
    actor: str | None = None,
    placement: Placement = IN_PROCESS,
    before_schema: Callable[[], object] | None = None,
) -> UndoResult:
    """Take back on a branch what a commit, or each of a range `a..b`, changed. Rows that changed again since conflict.

    `strategy` ours keeps the branch's row there, theirs puts the older one back; the rest is as for `merge`.
    `before_schema` is asked before another schema comes back.
    """
    span = span_of(store, commit, branch, "revert")
    head = store.snapshot(branch=branch, operation="revert")
    graph = known_history(store, store.manifest.read(head.branch))
    if not is_ancestor(graph, span.after.head.graph_commit_id, head.head.graph_commit_id):
        raise BadRequest(
            f"revert: commit {span.after.head.graph_commit_id} is not in the history of `{branch}`, so there is "
            "nothing of it to take back"
        )
    work = _Work("revert", WriterKind.REVERT, span.about, span.after, span.before, branch, before_schema)
    answers = Resolutions.of(strategy, resolutions, granularity or merge_granularity(store))
    if head.schema_digest != span.before.schema_digest and _is_still(head, span):
        # Only the schema commit itself lies between: its tables go back as they were, columns and all.
        if before_schema is not None:
            before_schema()
        return put_back(store, "revert", WriterKind.REVERT, span.before, span.about, branch, dry_run, actor, placement)
    return _bring(store, work, answers, dry_run, actor, placement)


def cherry_pick(
    store: GraphStore,
    commit: str,
    into: str = MAIN,
    *,
    strategy: str | None = None,
    resolutions: Mapping[Any, Any] | None = None,
    granularity: str | None = None,
    dry_run: bool = False,
    actor: str | None = None,
    placement: Placement = IN_PROCESS,
    before_schema: Callable[[], object] | None = None,
) -> UndoResult:
    """Bring what a commit, or each of a range `a..b`, changed to a branch. The rest is as for `merge`."""
    span = span_of(store, commit, into, "cherry-pick")
    work = _Work("cherry_pick", WriterKind.CHERRY_PICK, span.about, span.before, span.after, into, before_schema)
    answers = Resolutions.of(strategy, resolutions, granularity or merge_granularity(store))
    return _bring(store, work, answers, dry_run, actor, placement)


@dataclass(frozen=True, slots=True)
class _Work:
    """Everything that changed from `base` to `source` is brought to `branch`."""

    operation: str
    kind: WriterKind
    about: str
    base: Snapshot
    source: Snapshot
    branch: str
    before_schema: Callable[[], object] | None = None

    @property
    def called(self) -> str:
        return self.operation.replace("_", "-")


def _bring(
    store: GraphStore, work: _Work, answers: Resolutions, dry_run: bool, actor: str | None, placement: Placement
) -> UndoResult:
    refuse_system_name(work.branch, work.called)
    if dry_run:
        decision = _decide(store, work, store.snapshot(branch=work.branch, operation=work.called), answers, placement)
        outcome = UndoOutcome.DONE if _does_something(decision) else UndoOutcome.NOTHING_TO_DO
        return UndoResult(
            work.operation,
            work.about,
            work.branch,
            UndoOutcome.CONFLICTS if decision.conflicts else outcome,
            None,
            decision.counts,
            decision.conflicts,
            dry_run=True,
            engine=placement.engine,
            changes=PlannedChanges(
                decision.schema.store if decision.schema else store, tuple(decision.tables.values())
            ),
        )
    store.refuse_if_read_only(work.called)
    made: list[Decision] = []

    def prepare(target: Snapshot, session: WriteSession) -> WriteIntent | None:
        decision = _decide(store, work, target, answers, placement)
        made[:] = [decision]
        if decision.conflicts:
            what = f"the {work.called} of {work.about} on `{work.branch}` is refused"
            advice = f"apply to `{work.branch}` the schema that it shall have, or restore an older state as a whole"
            raise refusal(what, decision.conflicts, advice)
        if not _does_something(decision):
            return None
        failpoint("undo.decided")
        if decision.schema is not None:
            if work.before_schema is not None and decision.schema.digest != target.schema_digest:
                work.before_schema()
            intent = intent_across(store, session, work.kind, decision, decision.schema, placement)
            failpoint("undo.staged")
            return replace(intent, about=work.about)
        staged = stage(store, session, decision.bases, target, tuple(decision.tables.values()), placement)
        failpoint("undo.staged")
        intent = session.intent(work.kind, target, staged.writes, reads=decision.reads)
        return replace(intent, repinned=staged.repinned, about=work.about)

    commit = run_write(store, work.branch, prepare, actor=actor, retry=RetryPolicy.PREPARE_AGAIN, operation=work.called)
    outcome = UndoOutcome.NOTHING_TO_DO if commit is None else UndoOutcome.DONE
    counts = made[0].counts if made else ()
    return UndoResult(work.operation, work.about, work.branch, outcome, commit, counts, engine=placement.engine)


def _decide(store: GraphStore, work: _Work, target: Snapshot, answers: Resolutions, placement: Placement) -> Decision:
    try:
        schema = merged_schema(store, [work.base], work.source, target)
        checked = checked_answers(schema.catalog if schema else store.catalog(target.schema_digest), answers)
        if schema is None:
            return decide_between(store, [work.base], work.source, target, checked, placement)
        across = decide_across(store, schema, checked, placement, forward=False)
        reads = frozenset(target.tables)
        return Decision(Outcome.MERGED, (work.base,), across.tables, across.conflicts, reads, schema=across.schema)
    except TableNotFound as missing:
        raise HistoryGap(
            f"{work.called}: the rows of {work.about} have been reclaimed, by cleanup or with their branch",
            about=work.about,
        ) from missing


def _does_something(decision: Decision) -> bool:
    schema = decision.schema
    return bool(decision.tables) or (schema is not None and schema.digest != schema.raw_target.schema_digest)


def _is_still(head: Snapshot, span: Span) -> bool:
    """Whether the branch shows just what the span ended with."""
    return head.schema_digest == span.after.schema_digest and {
        pin.type_id: place(pin) for pin in head.tables.values()
    } == {pin.type_id: place(pin) for pin in span.after.tables.values()}
