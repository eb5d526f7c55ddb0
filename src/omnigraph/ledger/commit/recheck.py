"""What must still be true when a prepared write enters its commit window: nothing it leaned on has moved.

Without the check of tables that were only read, an edge could be added to a node that another writer just deleted,
though no table was written by both.
"""

from __future__ import annotations

from omnigraph.errors import BranchNotFound, Conflict, PreconditionFailed
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.history.acknowledged import refuse_lost_head
from omnigraph.ledger.history.complete_log import known_history
from omnigraph.ledger.history.dag import changed_data_since
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.publish import check_expected
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import BranchRef, WriterKind


class SchemaMoved(Conflict):
    """The branch got another schema while a write was being prepared: it has to be prepared again with the new one."""


def check_premises(store: GraphParts, intent: WriteIntent, ref: BranchRef | None, current: ManifestState) -> None:
    """Fail unless everything that `intent` was prepared on still holds; `ref` and `current` are as they are now."""
    check_branch(ref, intent.branch)
    refuse_lost_head(store, intent.branch, current)
    base = intent.base
    if current.head.graph_commit_id == base.head.graph_commit_id:
        return
    if intent.if_commit is not None:
        check_if_commit(store, intent.branch, current, intent.if_commit)
    if current.schema_digest != base.schema_digest:
        raise SchemaMoved(
            f"the schema of branch `{intent.branch.name}` was changed while this write was being prepared; nothing was "
            "written. Try again.",
            prepared_with=base.schema_digest,
            published=current.schema_digest,
        )
    check_expected(store, intent.branch, current, intent.expected, base.head.graph_commit_id)
    taken = [batch for batch in intent.batches if intent.kind is WriterKind.LOAD and current.has_batch(batch)]
    if taken:
        # Another process came through with the same batch. Prepared again, this load finds that there is nothing to do.
        raise Conflict(f"{taken[0]} was published on branch `{intent.branch.name}` by another process")


def check_branch(found: BranchRef | None, branch: BranchRef) -> None:
    """Fail if the branch was deleted, or deleted and made again, since it was resolved."""
    if found is None or found.incarnation != branch.incarnation:
        raise BranchNotFound(
            f"branch `{branch.name}` was deleted while this write was being prepared; nothing was written",
            branch=branch.name,
        )


def check_if_commit(store: GraphParts, branch: BranchRef, current: ManifestState, if_commit: str) -> None:
    """Fail if data changed on the branch since `if_commit`, or if that commit is not in its history."""
    head = current.head.graph_commit_id
    if head == if_commit:
        return
    history = known_history(store, current)
    if changed_data_since(history, head, if_commit):
        what = f"has changed since commit {if_commit}" if if_commit in history else f"knows no commit {if_commit}"
        raise PreconditionFailed(
            f"branch `{branch.name}` {what}: its head is {head} now. Nothing was written; read it again and decide "
            "anew.",
            if_commit=if_commit,
            head=head,
        )
