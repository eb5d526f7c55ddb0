"""The history and the branches of a graph behind a server: commits, branches, merges, differences, the change feed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from omnigraph.choices import Engine, Granularity, Strategy, Target, Time
from omnigraph.client.remote_feed import followed
from omnigraph.client.remote_held import RemoteHeld
from omnigraph.client.wire_arguments import answers, filters, moment_text, state_name
from omnigraph.times import since_text

if TYPE_CHECKING:
    from omnigraph.client.wire_values import RemoteDiff, RemotePage
    from omnigraph.ledger.values import BranchRef, GraphCommit, History
    from omnigraph.merge.changes import EntityChange
    from omnigraph.merge.merge import MergeResult


class RemoteVersions(RemoteHeld):
    """History and branches; `RemoteGraph` has them."""

    def head(self, branch: str | None = None) -> GraphCommit:
        """The newest commit of a branch."""
        return self.commit(self._transport.get("/snapshot", branch=self._place(branch))["graph_commit_id"])

    def commit(self, id: str) -> GraphCommit:
        """One commit by its id."""
        from omnigraph.client.wire_values import commit

        return commit(self._transport.get(f"/commits/{quote(id, safe='')}"))

    def log(
        self,
        branch: str | None = None,
        by: str | None = None,
        limit: int | None = None,
        *,
        since: Time | None = None,
        until: Time | None = None,
    ) -> History:
        """The commits that a branch can reach, newest first."""
        from omnigraph.client.wire_values import commit
        from omnigraph.ledger.values import History

        asked = {"branch": self._place(branch), "actor": by, "limit": limit}
        found = self._transport.get("/commits", **asked, since=moment_text(since), until=moment_text(until))
        return History(commit(one) for one in found["commits"])

    def commit_changes(self, id: str) -> Iterator[EntityChange]:
        """What one commit changed against its first parent."""
        from omnigraph.client.wire_values import diff

        return iter(diff(self._transport.get(f"/commits/{quote(id, safe='')}/changes")))

    def branch_list(self) -> list[str]:
        """The names of the branches that may be read, sorted."""
        return [found["name"] for found in self._transport.get("/branches")["branches"]]

    def branch_create(self, name: str, from_: Target = None) -> BranchRef:
        """Make a branch from another one (by default the handle's own), or from a commit or a tag."""
        from omnigraph.client.wire_values import branch

        return branch(self._transport.post("/branches", {"name": name, "from": state_name(from_) or self._branch}))

    def branch_delete(self, name: str, *, force: bool = False) -> None:
        """Delete a branch. Its name is free at once. One that other branches were made from needs `force`."""
        self._transport.delete(f"/branches/{quote(name, safe='/')}", force=True if force else None)

    @contextmanager
    def branch(self, name: str, from_: Target = None, *, merge: bool = False) -> Iterator[Self]:
        """A handle bound to a branch, which is made when it does not exist. With `merge` it is merged at the end."""
        if name not in self.branch_list():
            self.branch_create(name, from_)
        yield type(self)(self._transport, name)
        if merge:
            self.merge(name, into=self._branch)

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
    ) -> MergeResult:
        """Merge one branch into another; what collides raises `MergeConflicts` and has no effect."""
        from omnigraph.client.wire_values import merge_result

        body = {
            "source": source,
            "target": into,
            "strategy": strategy,
            "resolutions": answers(resolutions),
            "dry_run": dry_run,
            "delete_branch": delete_source,
            "granularity": granularity,
        }
        return merge_result(self._transport.post("/branches/merge", body))

    def diff(
        self,
        a: Target,
        b: Target,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        engine: Engine = "auto",
    ) -> RemoteDiff:
        """What differs between two targets: iterate for the changes, `summary()` for the counts."""
        from omnigraph.client.wire_values import diff

        body = {
            "from": state_name(a) or self._branch,
            "to": state_name(b) or self._branch,
            **filters(kinds, types, ops),
        }
        return diff(self._transport.post("/diff", body))

    def changes(
        self,
        branch: str | None = None,
        since: str | datetime = "beginning",
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        limit: int | None = None,
    ) -> RemotePage:
        """The change feed of a branch: one block per commit, and a cursor to go on from."""
        from omnigraph.client.wire_values import page

        start = since_text(since)
        asked = {"branch": self._place(branch), "since": start, "limit": limit, **filters(kinds, types, ops)}
        return page(self._transport.get("/changes", **asked))

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
    ) -> Iterator[RemotePage]:
        """The change feed as it goes on: a page for each commit as it is published. Keep the cursor of the last one.

        With `timeout` it ends when nothing has happened for so long. `limit` and `every` are those of a graph that is
        opened here: the server tells each commit by itself, and looks twice a second.
        """
        from omnigraph.merge.follow import checked_pause

        checked_pause(every, timeout)
        if since == "now":  # this moment, not that of the first page
            since = self.changes(branch, since, kinds=kinds, types=types, ops=ops).cursor
        asked = {"branch": self._place(branch), "since": since_text(since), **filters(kinds, types, ops)}
        return followed(self._transport, asked, timeout)

    def sync_branch(self, name: str | None = None) -> GraphCommit:
        """Bind this handle to a branch (by default its own), and return its newest commit."""
        head = self.head(name)
        self._branch = self._place(name)
        return head
