"""A history of graphs in memory, with a merge of its own: whole states, compared key by key, as the rules say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.model.graph_model import SCHEMA as GRAPH_SCHEMA
from tests.model.graph_model import TABLES, GraphModel, Refused, Row

UNKNOWN = "unknown"
"""Stands for a base that the common ancestors disagree about."""

SCHEMA = GRAPH_SCHEMA.replace("@unique(src, dst)", "@key(src, dst)")
"""With keys on all edges: two sides that add one edge add the same."""


class Collides(Exception):
    """Rows that both sides changed, and nobody said which one to take."""

    def __init__(self, keys: set[tuple[str, Any]]) -> None:
        super().__init__(f"{sorted(keys, key=str)}")
        self.keys = keys


@dataclass(frozen=True)
class Node:
    """One commit: its parents, the state it published, and its place in time."""

    parents: tuple[str, ...]
    state: GraphModel
    number: int


@dataclass
class HistoryModel:
    """Every commit that was ever made."""

    commits: dict[str, Node] = field(default_factory=dict)

    def add(self, id_: str, parents: Sequence[str], state: GraphModel) -> None:
        self.commits[id_] = Node(tuple(parents), state.copy(), len(self.commits))

    def ancestors(self, id_: str) -> set[str]:
        """A commit and everything that it was made from."""
        found: set[str] = set()
        waiting = [id_]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += self.commits[current].parents
        return found

    def best_common(self, left: Sequence[str], right: str) -> list[str]:
        """Common ancestors that no other one was made from, the newest first."""
        common = {one for start in left for one in self.ancestors(start) & self.ancestors(right)}
        best = [one for one in common if not any(one != other and one in self.ancestors(other) for other in common)]
        return sorted(best, key=lambda one: (-self.generation(one), -self.commits[one].number))

    def generation(self, id_: str) -> int:
        return 1 + max((self.generation(parent) for parent in self.commits[id_].parents), default=0)

    def merged(self, source: str, target: str, strategy: str | None, granularity: str = "row") -> GraphModel | None:
        """The state of the target after the merge; None when it has the source already. Refused, Collides."""
        if source in self.ancestors(target):
            return None
        return self.brought(self.best_common([source], target), source, target, strategy, granularity)

    def brought(
        self, bases: Sequence[str], source: str, target: str, strategy: str | None, granularity: str = "row"
    ) -> GraphModel:
        """The state of the target with what changed from the bases to the source. Refused, Collides."""
        theirs, ours = self.commits[source].state, self.commits[target].state
        result = GraphModel()
        colliding: set[tuple[str, Any]] = set()
        for table in TABLES:
            for key in theirs.tables[table].keys() | ours.tables[table].keys():
                s, t = theirs.tables[table].get(key), ours.tables[table].get(key)
                base = self._base(bases, table, key)
                row = _three_way(base, s, t)
                if row == UNKNOWN and granularity == "property":
                    row = _by_property(base, s, t, strategy)
                if row == UNKNOWN:
                    colliding.add((table, key))
                    row = s if strategy == "theirs" else t
                if row is not None:
                    assert not isinstance(row, str)
                    result.tables[table][key] = dict(row)
        if colliding and strategy is None:
            raise Collides(colliding)
        result.check()
        return result

    def _base(self, commits: Sequence[str], table: str, key: Any) -> Row | str | None:
        current: Row | str | None = self.commits[commits[0]].state.tables[table].get(key)
        for position in range(1, len(commits)):
            other = self.commits[commits[position]].state.tables[table].get(key)
            if current == UNKNOWN:
                return UNKNOWN
            if current == other:
                continue
            older = self.best_common(commits[:position], commits[position])
            current = _three_way(self._base(older, table, key) if older else None, other, current)  # type: ignore[arg-type]
        return current


def _three_way(base: Row | str | None, source: Row | None, target: Row | None) -> Row | str | None:
    if source == target:
        return target
    if base == UNKNOWN:
        return UNKNOWN
    if source == base:
        return target
    return source if target == base else UNKNOWN


def _by_property(base: Row | str | None, source: Row | None, target: Row | None, strategy: str | None) -> Row | str:
    """A row that both sides changed, one property after the other."""
    if source is None or target is None or base is None or isinstance(base, str):
        return UNKNOWN
    found: Row = {}
    for name in target:
        s, t, b = source[name], target[name], base[name]
        if s != t and b not in (s, t) and strategy is None:
            return UNKNOWN
        found[name] = t if s in (t, b) else s if t == b or strategy == "theirs" else t
    return found


__all__ = ["SCHEMA", "Collides", "HistoryModel", "Refused"]
