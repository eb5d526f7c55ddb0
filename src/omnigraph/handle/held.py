"""An open graph, the branch it is bound to, who uses it and under which policy; and the state that a call reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from omnigraph.choices import Target
from omnigraph.errors import OmniGraphError
from omnigraph.forked import opened_here, refuse_in_child
from omnigraph.policy.actions import Action
from omnigraph.query.compiled import QueryCache

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import BranchRef, Snapshot
    from omnigraph.policy.decide_access import Policy


class Held:
    """What every call of a handle starts from."""

    def __init__(
        self,
        store: GraphStore,
        *,
        branch: str = "main",
        actor: str | None = None,
        combine: bool = False,
        policy: Policy | None = None,
    ) -> None:
        self._opened = store
        self._policy = policy
        self._process = opened_here()
        self._combine = combine
        self._branch = branch
        self._actor = actor
        self._compiled = QueryCache()

    @property
    def _store(self) -> GraphStore:
        """The opened graph, for the process that opened it."""
        refuse_in_child(self._process)
        return self._opened

    def _on(self, branch: str, actor: str | None = None, policy: Policy | None = None) -> Self:
        """Another handle on the same opened graph."""
        return type(self)(self._store, branch=branch, actor=actor, combine=self._combine, policy=policy)

    @property
    def uri(self) -> str:
        """Where the graph lies."""
        return self._opened.uri

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self._branch

    @property
    def policy(self) -> Policy | None:
        """The policy that this handle is under."""
        return self._policy

    def _place(self, branch: str | None) -> str:
        """The branch that a call is about: its own when it names none. An empty name is one that is not there."""
        return self._branch if branch is None else branch

    def _state(
        self,
        operation: str,
        at: Target = None,
        branch: str | None = None,
        actor: str | None = None,
        *,
        action: Action = Action.READ,
    ) -> Snapshot:
        """The state that a call reads, by default the head of the handle's branch; the policy is asked for its branch.

        Whoever may read no state of that branch does not learn either what else there is.
        """
        place = self._place(branch)
        if at is None:
            self._allow(action, actor, branch=place)
            return self._store.snapshot(branch=place, operation=operation)
        with self._hidden_when_unread(actor, place, action):
            found = self._store.snapshot(at, branch=place, operation=operation)
        self._allow(action, actor, branch=found.branch.name)
        return found

    def _readable(self, branches: list[BranchRef], actor: str | None) -> list[BranchRef]:
        """Those branches that the actor may read; refused when there are none."""
        if self._policy is None:
            return branches
        who = actor or self._actor
        found = [ref for ref in branches if self._policy.decide(who, Action.READ, branch=ref.name).allowed]
        if not found:
            self._allow(Action.READ, actor, branch=self._branch)
        return found

    @contextmanager
    def _hidden_when_unread(self, actor: str | None, branch: str, action: Action = Action.READ) -> Iterator[None]:
        """What is wrong with a name is told to those only who may look at it."""
        try:
            yield
        except OmniGraphError:
            self._allow(action, actor, branch=branch)
            raise

    def _allow(
        self, action: Action, actor: str | None, *, branch: str | None = None, target: str | None = None
    ) -> None:
        """`PolicyDenied` unless the policy of this handle, if it has one, allows it to this actor."""
        if self._policy is not None:
            self._policy.require(actor or self._actor, action, branch=branch, target=target)
