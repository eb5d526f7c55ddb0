"""The part of the Graph about history: commits, branches, merges, differences. Thin, like the rest of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from omnigraph.choices import Engine, Granularity, Strategy, Target, Time
from omnigraph.engines import row_placement
from omnigraph.errors import BadRequest
from omnigraph.handle.held import Held
from omnigraph.policy.actions import Action

if TYPE_CHECKING:
    from omnigraph.ledger.recovery.audit import RecoveryRecord
    from omnigraph.ledger.values import BranchRef, GraphCommit, History
    from omnigraph.merge.changes import EntityChange
    from omnigraph.merge.diff import Diff
    from omnigraph.merge.feed import Page
    from omnigraph.merge.merge import MergeResult


class Versions(Held):
    """Commits and branches of an open graph; `Graph` has them."""

    def head(self, branch: str | None = None, *, actor: str | None = None) -> GraphCommit:
        """The newest commit of a branch."""
        return self._state("head", None, branch, actor).head

    def commit(self, id: str, *, actor: str | None = None) -> GraphCommit:
        """One commit by its id, or by any other target: the beginning of an id, a tag, a time."""
        from omnigraph.ledger.branches.names import is_commit_id
        from omnigraph.ledger.snapshots import get_commit

        if not is_commit_id(id):
            return self._state("commit", id, None, actor).head
        with self._hidden_when_unread(actor, self._branch):
            found = get_commit(self._store, id)
        self._allow(Action.READ, actor, branch=found.branch)
        return found

    def log(
        self,
        branch: str | None = None,
        by: str | None = None,
        limit: int | None = None,
        *,
        since: Time | None = None,
        until: Time | None = None,
        actor: str | None = None,
    ) -> History:
        """The commits that a branch can reach, newest first. `since` and `until` are aware datetimes, or ISO text."""
        from omnigraph.ledger.history.complete_log import known_history
        from omnigraph.ledger.values import History
        from omnigraph.times import to_microseconds

        self._allow(Action.READ, actor, branch=self._place(branch))
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise BadRequest(f"log: limit is a whole number from 0 on, not {limit!r}")
        first = to_microseconds(since, "since") if since is not None else None
        last = to_microseconds(until, "until") if until is not None else None
        state = self._store.manifest.read(self._store.branch(self._place(branch), "log"))
        known_history(self._store, state)
        head = state.head.graph_commit_id
        return History(self._store.commits.log(head, actor=by, since=first, until=last, limit=limit))

    def recoveries(self, *, actor: str | None = None) -> list[RecoveryRecord]:
        """What recovery did, oldest first: one record for each unfinished write that was resolved."""
        self._allow(Action.READ, actor, branch=self._branch)
        return self._store.audit.list()

    def branch_create(self, name: str, from_: Target = None, *, actor: str | None = None) -> BranchRef:
        """Make a branch from another one (by default the handle's own), or from a commit or a tag."""
        from omnigraph.ledger.branches.branches import create_branch

        self._allow(Action.BRANCH_CREATE, actor, target=name)
        return create_branch(self._store, name, self._branch if from_ is None else from_, actor=actor or self._actor)

    def branch_delete(self, name: str, *, force: bool = False, actor: str | None = None) -> None:
        """Delete a branch. Its name is free at once.

        One that other branches were made from needs `force`; they stay as they are.
        """
        from omnigraph.ledger.branches.branches import delete_branch

        self._allow(Action.BRANCH_DELETE, actor, target=name)
        delete_branch(self._store, name, bound_to=self._branch, force=force, actor=actor or self._actor)

    @contextmanager
    def branch(
        self, name: str, from_: Target = None, *, merge: bool = False, actor: str | None = None
    ) -> Iterator[Self]:
        """A handle bound to a branch, which is made when it does not exist.

        The branch stays for review. With `merge` it is merged into this handle's branch when the block ends well.
        """
        if self._store.refs.get(name) is None:
            self.branch_create(name, from_, actor=actor)
        who = actor or self._actor
        yield self._on(name, who, self._policy)
        if merge:
            self.merge(name, into=self._branch, actor=actor)

    def merge(
        self,
        source: str,
        into: str = "main",
        *,
        strategy: Strategy | None = None,
        resolutions: Mapping[tuple[str, str], Any] | None = None,
        dry_run: bool = False,
        delete_source: bool = False,
        granularity: Granularity | None = None,
        engine: Engine = "auto",
        actor: str | None = None,
    ) -> MergeResult:
        """Merge one branch into another, row by row against their common ancestor.

        `strategy` (ours, theirs) settles rows that both sides changed; `resolutions` settles single rows, by (table
        key, id), with ours, theirs, a row, or None to delete it. What is left raises `MergeConflicts` and has no
        effect. With `granularity` property, changes of different properties of one row are both taken, and a strategy
        is about the properties that collide. `dry_run` returns what would happen, conflicts included.
        """
        from omnigraph.merge.merge import merge

        self._allow(Action.BRANCH_MERGE, actor, target=into)
        if delete_source:
            self._allow(Action.BRANCH_DELETE, actor, target=source)
        states = [self._store.snapshot(branch=name, operation="merge") for name in (source, into)]
        return merge(
            self._store,
            source,
            into,
            strategy=strategy,
            resolutions=resolutions,
            dry_run=dry_run,
            delete_source=delete_source,
            granularity=granularity,
            actor=actor or self._actor,
            placement=row_placement(engine, "merge", *states, source=source, place=f"{into} of {self.uri}"),
        )

    def diff(
        self,
        a: Target,
        b: Target,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        engine: Engine = "auto",
        actor: str | None = None,
    ) -> Diff:
        """What differs between two targets: iterate for the changes, `summary()` for the counts. Streams."""
        from omnigraph.merge.diff import Diff, DiffFilter

        left, right = self._state("diff", a, None, actor), self._state("diff", b, None, actor)
        placement = row_placement(engine, "diff", left, right, source=self.uri)
        return Diff(self._store, left, right, DiffFilter.of(kinds, types, ops), placement)

    def changes(
        self,
        branch: str | None = None,
        since: str | datetime = "beginning",
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        limit: int | None = None,
        actor: str | None = None,
    ) -> Page:
        """The change feed of a branch: one block per commit, and a cursor to go on from.

        `since` is a cursor, a commit, a tag, a time, `beginning` or `now`.
        """
        from omnigraph.merge.diff import DiffFilter
        from omnigraph.merge.feed import changes

        self._allow(Action.READ, actor, branch=self._place(branch))
        ref = self._store.branch(self._place(branch), "changes")
        return changes(self._store, ref, since, only=DiffFilter.of(kinds, types, ops), limit=limit)

    def follow(
        self,
        branch: str | None = None,
        since: str | datetime = "now",
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        limit: int = 100,
        every: float = 0.5,
        timeout: float | None = None,
        actor: str | None = None,
    ) -> Iterator[Page]:
        """The change feed as it goes on: a page whenever there is something new, at most `limit` commits in each.

        Waits for the next one, and looks `every` so many seconds; with `timeout` it ends when nothing has happened for
        so long. Keep the cursor of the last page that was dealt with: `since` takes it, also in another process.
        """
        from omnigraph.merge.follow import checked_pause, follow

        checked_pause(every, timeout)
        named = self._place(branch)

        def look(cursor: str | datetime) -> Page:
            return self.changes(named, cursor, kinds=kinds, types=types, ops=ops, limit=limit, actor=actor)

        # The first look is now and not with the first page: `now` means this moment.
        return follow(look, look(since), every=every, timeout=timeout)

    def commit_changes(self, id: str, *, actor: str | None = None) -> Iterator[EntityChange]:
        """What one commit changed against its first parent."""
        from omnigraph.merge.feed import commit_changes

        return commit_changes(self._store, self.commit(id, actor=actor))

    def sync_branch(self, name: str | None = None, *, actor: str | None = None) -> GraphCommit:
        """Bind this handle to a branch (by default its own) as it is now, and return its newest commit."""
        wanted = self._place(name)
        head = self._state("sync branch", None, wanted, actor).head
        self._branch = wanted
        return head
