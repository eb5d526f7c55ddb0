"""Lines of a table: the main line and its forks are a tree, and versions meet at one place in it.

Version numbers of different lines mean nothing to each other. What versions differ in must have happened on the way
from the place where their lines meet to each of them, and each stretch of that way lies on a single line. Along such a
way row ids keep their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.storage.values import ForkInfo, TableVersion


@dataclass(frozen=True, slots=True)
class Stretch:
    """Versions after `begin` up to `end` of one line."""

    line: str | None
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """The newest version that several versions have in their past, and the way from it to each of them."""

    table: TableVersion
    ways: tuple[tuple[Stretch, ...], ...]


def meeting_of(tables: Sequence[TableVersion], forks: Mapping[str, ForkInfo]) -> Meeting | None:
    """Where versions of one table meet; None when a fork on the way is not known."""
    chains = [_chain(table, forks) for table in tables]
    shared = chains[0]
    for chain in chains:
        if chain is None or shared is None:
            return None
        shared = _common(shared, chain)
    if not shared:
        return None
    line, version = shared[0]
    found = [_way(chain, line, version, forks) for chain in chains if chain is not None]
    return Meeting(TableVersion(tables[0].location, line, version), tuple(found))


def stretches_between(left: TableVersion, right: TableVersion, forks: Mapping[str, ForkInfo]) -> list[Stretch] | None:
    """The stretches from where the lines of two versions meet to either of them; None when a fork is not known."""
    meeting = meeting_of((left, right), forks)
    return None if meeting is None else [stretch for way in meeting.ways for stretch in way]


_Chain = list[tuple[str | None, int]]


def _chain(table: TableVersion, forks: Mapping[str, ForkInfo]) -> _Chain | None:
    """The lines from a version's own down to the main line, each with the newest version that belongs to its past."""
    chain: _Chain = [(table.branch, table.version)]
    line = table.branch
    while line is not None:
        fork = forks.get(line)
        if fork is None:
            return None
        line = fork.parent_branch if fork.parent_branch not in (None, "main") else None
        chain.append((line, fork.parent_version))
    return chain


def _common(left: _Chain, right: _Chain) -> _Chain:
    """The chain of the newest version that is in the past of both."""
    reached = dict(right)
    for position, (line, version) in enumerate(left):
        if line in reached:
            return [(line, min(version, reached[line])), *left[position + 1 :]]
    return []


def _way(chain: _Chain, line: str | None, version: int, forks: Mapping[str, ForkInfo]) -> tuple[Stretch, ...]:
    """The stretches from a version of a line forward to the head of a chain, the oldest first."""
    found: list[Stretch] = []
    for own, end in chain:
        begin = version if own == line else forks[own or ""].parent_version
        if end > begin:
            found.append(Stretch(own, begin, end))
        if own == line:
            break
    return tuple(reversed(found))
