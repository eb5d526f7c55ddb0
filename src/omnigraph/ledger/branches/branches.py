"""Graph branches: made in O(1), listed, deleted.

Making one first makes the Lance branch of the manifest and then the ref object: that is the instant at which it exists,
whole, for everybody. No table is touched. Deleting one removes the ref object first; the manifest's Lance branch stays,
since merge bases of live branches may lie on it, and `cleanup` takes it when nothing needs it any more.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

from ulid import ULID

from omnigraph.choices import Target
from omnigraph.errors import BadRequest, BranchNotFound, Conflict, HistoryGap, OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger import snapshots
from omnigraph.ledger.branches.names import check_branch_name, refuse_system_name
from omnigraph.ledger.branches.schema_lock import refuse_while_schema_is_applied
from omnigraph.ledger.commit.attempts import WRITER_LEASE_PREFIX
from omnigraph.ledger.history import complete_log
from omnigraph.ledger.history.bases_of_heads import bases_of_heads
from omnigraph.ledger.history.dag import CommitGraph, made_from
from omnigraph.ledger.history.held_history import history_held, refuse_removed
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import MAIN, BranchRef, Snapshot
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.values import TableVersion

_logger = logging.getLogger("omnigraph.ledger")

declare("branch_create.before_manifest", "Nothing of the new branch is made")
declare("branch_create.before_ref", "The Lance branch of the manifest is made, the ref object is not: no branch yet")
declare("branch_create.after_ref", "The branch exists")
declare("branch_delete.before_ref", "The branch is about to go; its ref object is still there")
declare("branch_delete.after_ref", "The branch is gone; none of its forks is reclaimed")
declare("branch_delete.between_forks", "One more fork of a deleted branch is reclaimed")


def create_branch(store: GraphParts, name: str, from_: Target = MAIN, *, actor: str | None = None) -> BranchRef:
    """Make a branch that starts at `from_`: a branch, or any other target. Costs the same whatever the graph's size."""
    store.refuse_if_read_only("branch create")
    check_branch_name(name, "branch create")
    if store.refs.get(name) is not None:
        raise _exists(name)
    refuse_while_schema_is_applied(store, "branch create")
    # Taken before the source is read: cleanup leaves alone whatever was a head since then.
    with store.leases.acquire(f"{WRITER_LEASE_PREFIX}{ULID()}", f"branch create {name}"):
        source = snapshots.resolve(store, from_, operation="branch create")
        with _source_held(store, source):
            return _create(store, name, source, actor)


def _create(store: GraphParts, name: str, source: Snapshot, actor: str | None) -> BranchRef:
    incarnation = str(ULID())
    ref = BranchRef(
        name=name,
        incarnation=incarnation,
        manifest_branch=f"b-{incarnation}",
        source_branch=source.branch.name,
        source_incarnation=source.branch.incarnation,
        source_commit=source.head.graph_commit_id,
        source_manifest_version=source.manifest_version,
        created_by=actor,
        created_at=time.time_ns() // 1000,
    )
    failpoint("branch_create.before_manifest")
    _fork_manifest(store, source, f"b-{incarnation}")
    failpoint("branch_create.before_ref")
    if not store.refs.create(ref):
        _drop_manifest_branch(store, f"b-{incarnation}")
        raise _exists(name)
    failpoint("branch_create.after_ref")
    try:
        _refuse_schema_change(store, source)
    except OmniGraphError:
        store.refs.delete(ref)
        _drop_manifest_branch(store, f"b-{incarnation}")
        raise
    return ref


def _refuse_schema_change(store: GraphParts, source: Snapshot) -> None:
    """No branch from a state of which a hard drop takes, or took, the history while the branch is being made.

    A hard drop looks for branches while it holds the lock of its schema apply. So once the ref object is there, either
    the drop sees it and refuses, or its lock is seen here, or what it removed is missing here.
    """
    refuse_while_schema_is_applied(store, "branch create")
    live = store.refs.get(source.branch.name)
    if live is None or store.manifest.read(live).schema_digest != source.schema_digest:
        refuse_removed(store, source, "branch create")


def list_branches(store: GraphParts) -> list[BranchRef]:
    """All public branches, sorted by name; system ones are left out."""
    return store.refs.list()


def delete_branch(
    store: GraphParts,
    name: str,
    *,
    bound_to: str | None = None,
    as_made: BranchRef | None = None,
    force: bool = False,
    actor: str | None = None,
) -> None:
    """Delete a branch.

    Refuses `main`, a system name, a branch that others were made from (unless `force`: they keep what they read), and
    the one the caller's handle is bound to.
    With `as_made`, also a branch that is not that one any more, or has a commit of its own: somebody works on it.
    """
    store.refuse_if_read_only("branch delete")
    refuse_system_name(name, "branch delete")
    if name == MAIN:
        raise BadRequest(f"branch delete: `{MAIN}` always exists and cannot be deleted")
    if name == bound_to:
        raise BadRequest(
            f"branch delete: this handle is bound to `{name}`; bind it to another branch first (`sync_branch`)"
        )
    ref = store.branch(name, "branch delete")
    with store.windows.enter(ref, ()) as window:
        # What the branch published must be in the log while its line can still be found by name.
        last = store.manifest.read(ref)
        complete_log.complete_from(store, [last])
        children = descendants(store, ref)
        if children and not force:
            raise _has_children(ref, children)
        if as_made is not None and (ref, last.head.graph_commit_id) != (as_made, as_made.source_commit):
            raise Conflict(f"branch delete: somebody else has written to `{name}`", branch=name)
        failpoint("branch_delete.before_ref")
        window.check()
        if not store.refs.delete(ref):
            raise BranchNotFound(f"branch delete: `{name}` was deleted by somebody else meanwhile", branch=name)
        failpoint("branch_delete.after_ref")
    _logger.info("branch %s was deleted%s, at commit %s", name, by(actor), last.head.graph_commit_id)
    if not children:
        _reclaim(store, ref, last)


def by(actor: str | None) -> str:
    """Who did it, for a line of the log."""
    return f" by {actor}" if actor else ""


def descendants(store: GraphParts, ref: BranchRef) -> list[BranchRef]:
    """The branches that were made from this incarnation of a branch."""
    return [other for other in store.refs.list() if other.source_incarnation == ref.incarnation]


def forks_in_use(store: GraphParts, gone: BranchRef) -> set[tuple[str, str]]:
    """The (location, fork) pairs of a deleted branch that tags and merge bases of live branches read.

    No head of another branch reads them: a merge takes rows over, never a fork, and of a branch that others were made
    from nothing is reclaimed when it is deleted, but by `cleanup`.
    """
    if store.sidecars.names():
        # Somebody may have published a merge that is not logged yet.
        complete_log.complete(store)
    else:
        # Small writes to `main` leave no trace while they are not logged.
        complete_log.complete_branch(store, store.branch(MAIN))
    graph = store.commits.graph()
    own = [commit.graph_commit_id for commit in graph if commit.incarnation == gone.incarnation]
    readers = made_from(graph, own)
    commits = readers.intersection(tag.graph_commit_id for tag in store.refs.tags())
    if _may_be_bases(graph, own, readers):
        heads = [store.manifest.read(ref).head.graph_commit_id for ref in store.refs.list()]
        commits |= bases_of_heads(graph, readers.intersection(heads))
    needed: set[tuple[str, str | None]] = set()
    for commit_id in sorted(commits):
        pins = store.commits.pins(commit_id)
        if pins is None:
            raise HistoryGap(f"the pins of commit {commit_id} are not known", graph_commit_id=commit_id)
        needed |= {(pin.location, pin.lance_branch) for pin in pins.values()}
    return {(location, fork) for location, fork in needed if fork is not None}


def _may_be_bases(graph: CommitGraph, own: Collection[str], readers: Collection[str]) -> bool:
    """Whether a commit that reads forks of a deleted branch may be a merge base: only if two commits were made from it.

    Its own commits read them, and those of branches that were made from it and are gone too, which follow them by first
    parents. Mostly a branch was merged once, from its head, and the heads of all branches need not be read to see that.
    """
    reading = set(own)
    for commit_id in sorted(readers, key=graph.generation):
        commit = graph.get(commit_id)
        if commit is not None and commit.parent_commit_id in reading:
            reading.add(commit_id)
    children = Counter(parent for reader in readers for parent in set(graph.parents(reader)))
    return any(children[commit_id] > 1 for commit_id in reading)


@contextmanager
def _source_held(store: GraphParts, source: Snapshot) -> Iterator[None]:
    """Keep the source from being deleted, and its forks from being reclaimed, until the new branch is known.

    `main` is never deleted. A state that is no head any more can be used as long as its rows are still there.
    """
    live = store.refs.get(source.branch.name)
    if live is not None and live.incarnation != source.branch.incarnation:
        live = None
    with ExitStack() as held:
        if live is None or not _is_head(store, live, source):
            held.enter_context(history_held(store, "branch create"))
            refuse_removed(store, source, "branch create")
        if live is not None and live.name != MAIN:
            held.enter_context(store.windows.enter(live, ()))
            if store.refs.get(live.name) != live:
                raise BranchNotFound(f"branch create: the source `{live.name}` was deleted meanwhile", branch=live.name)
        yield


def _is_head(store: GraphParts, live: BranchRef, source: Snapshot) -> bool:
    """Whether the source is what its branch shows now: somebody may have published since, which does no harm."""
    return store.manifest.read(live).head.graph_commit_id == source.head.graph_commit_id


def _fork_manifest(store: GraphParts, source: Snapshot, name: str) -> None:
    start = TableVersion(MANIFEST, source.branch.manifest_branch, source.manifest_version)
    try:
        store.tables.create_fork(start, name)
    except TableNotFound as cause:
        raise HistoryGap(
            f"branch create: the manifest version of commit {source.head.graph_commit_id} has been removed by cleanup; "
            "start from a newer commit",
            graph_commit_id=source.head.graph_commit_id,
        ) from cause


def _drop_manifest_branch(store: GraphParts, name: str) -> None:
    try:
        store.tables.delete_fork(MANIFEST, name)
    except OmniGraphError as error:
        _logger.warning("the unnamed manifest branch %s was left for cleanup: %s", name, error)


def _has_children(ref: BranchRef, children: Collection[BranchRef]) -> BadRequest:
    names = [child.name for child in children]
    return BadRequest(
        f"branch delete: branches were made from `{ref.name}` ({', '.join(names)}); delete those first, or force it: "
        "they stay as they are",
        branch=ref.name,
        descendants=names,
    )


def _reclaim(store: GraphParts, ref: BranchRef, last: ManifestState) -> None:
    """Remove the forks that only the deleted branch used. Best effort: `cleanup` converges what is left."""
    own = [pin for pin in last.tables.values() if pin.owner == ref.incarnation and pin.lance_branch is not None]
    if not own:
        return
    try:
        needed = forks_in_use(store, ref)
        for pin in own:
            if pin.lance_branch is None or (pin.location, pin.lance_branch) in needed:
                continue
            store.tables.delete_fork(pin.location, pin.lance_branch)
            failpoint("branch_delete.between_forks")
    except (OmniGraphError, OSError) as error:
        _logger.warning("forks of the deleted branch %s were left for cleanup: %s", ref.name, error)


def _exists(name: str) -> Conflict:
    return Conflict(f"branch create: there is a branch `{name}` already; choose another name", branch=name)
