"""Work on every branch while others delete theirs: one that goes between the listing and the work is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import BranchRef

Result = TypeVar("Result")


def for_live_branches(store: GraphParts, work: Callable[[BranchRef], Result]) -> list[tuple[BranchRef, Result]]:
    """What `work` gives for each branch. Its failure counts only while the branch is still there."""
    found: list[tuple[BranchRef, Result]] = []
    for ref in store.refs.list():
        try:
            found.append((ref, work(ref)))
        except OmniGraphError:
            if is_live(store, ref):
                raise
    return found


def is_live(store: GraphParts, ref: BranchRef) -> bool:
    """Whether this very branch, and not another of its name, is still there."""
    now = store.refs.get(ref.name)
    return now is not None and now.incarnation == ref.incarnation
