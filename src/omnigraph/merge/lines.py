"""Lines of a table: the main line and its forks are a tree, and two versions meet at one place in it.

Version numbers of different lines mean nothing to each other. What two versions differ in must have happened on the way
from the place where their lines meet to either of them, and each stretch of that way lies on a single line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.storage.values import ForkInfo, TableVersion


@dataclass(frozen=True, slots=True)
class Stretch:
    """Versions after `begin` up to `end` of one line."""

    line: str | None
    begin: int
    end: int


def stretches_between(left: TableVersion, right: TableVersion, forks: Mapping[str, ForkInfo]) -> list[Stretch] | None:
    """The stretches from where the lines of two versions meet to either of them; None when a fork is not known."""
    left_chain, right_chain = _chain(left, forks), _chain(right, forks)
    if left_chain is None or right_chain is None:
        return None
    reached = dict(right_chain)
    meeting = next((line for line, _ in left_chain if line in reached), None)
    if not any(line in reached for line, _ in left_chain):
        return None
    found: list[Stretch] = []
    shared = min(dict(left_chain)[meeting], reached[meeting])
    for chain in (left_chain, right_chain):
        for line, version in chain:
            begin = shared if line == meeting else forks[line or ""].parent_version
            if version > begin:
                found.append(Stretch(line, begin, version))
            if line == meeting:
                break
    return found


def _chain(table: TableVersion, forks: Mapping[str, ForkInfo]) -> list[tuple[str | None, int]] | None:
    """The lines from a version's own down to the main line, each with the newest version that belongs to its past."""
    chain: list[tuple[str | None, int]] = [(table.branch, table.version)]
    line = table.branch
    while line is not None:
        fork = forks.get(line)
        if fork is None:
            return None
        line = fork.parent_branch if fork.parent_branch not in (None, "main") else None
        chain.append((line, fork.parent_version))
    return chain
