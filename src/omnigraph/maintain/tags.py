"""Tags: names for commits that stay readable; `cleanup` keeps what they need."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from omnigraph.choices import Target
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import Conflict, NotFound
from omnigraph.ledger.branches.branches import by
from omnigraph.ledger.branches.names import check_tag_name, refuse_system_name
from omnigraph.ledger.branches.refs import TagRef
from omnigraph.ledger.history.held_history import history_held, refuse_removed

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

_logger = logging.getLogger("omnigraph.maintain")


class Tags:
    """The tags of one graph: create, list, delete."""

    def __init__(
        self,
        store: GraphStore,
        branch: str,
        actor: str | None,
        allow: Callable[[bool, str | None], None] = lambda writes, actor: None,
    ) -> None:
        """`allow(writes, actor)` refuses those who may not."""
        self._allow = allow
        self._store = store
        self._branch = branch
        self._actor = actor

    def create(self, name: str, target: Target = None, *, actor: str | None = None) -> TagRef:
        """Name the commit of a target: a branch, a commit, another tag; by default the head of the handle's branch."""
        self._allow(True, actor)
        self._store.refuse_if_read_only("tag create")
        refuse_system_name(name, "tag create")
        check_tag_name(name, "tag create")
        if self._store.refs.get(name) is not None:
            raise Conflict(f"tag create: there is a branch `{name}`; a name can stand for one thing only", tag=name)
        with history_held(self._store, f"tag create {name}"):
            snapshot = self._store.snapshot(target, branch=self._branch)
            refuse_removed(self._store, snapshot, "tag create")
            tag = TagRef(name, snapshot.head.graph_commit_id, actor or self._actor, time.time_ns() // 1000)
            made = self._store.refs.create_tag(tag)
        if not made:
            raise Conflict(
                f"tag create: there is a tag `{name}` already; delete it first, or choose another name", tag=name
            )
        return tag

    def list(self, *, actor: str | None = None) -> list[TagRef]:
        """All tags, sorted by name."""
        self._allow(False, actor)
        return self._store.refs.tags()

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """Remove a tag. The commit stays until `cleanup`."""
        self._allow(True, actor)
        self._store.refuse_if_read_only("tag delete")
        refuse_system_name(name, "tag delete")
        if not self._store.refs.delete_tag(name):
            hint = did_you_mean(name, [tag.name for tag in self._store.refs.tags()])
            raise NotFound(f"tag delete: there is no tag `{name}`{f'; {hint}' if hint else ''}", tag=name)
        _logger.info("tag %s was deleted%s", name, by(actor or self._actor))
