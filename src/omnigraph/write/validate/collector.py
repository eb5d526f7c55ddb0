"""Collects broken rules: a count of each kind, and the first ten of each kind per table, in the order of the input.

Loads, mutations, merges, schema changes and Spark tasks all report through this one collector, so a user reads the
same words whichever way the data came. Collectors of different tasks can be merged, and which ten are kept does not
depend on the order in which tasks finish.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph.errors import KeyConflict, ValidationFailed, Violation
from omnigraph.write.validate import messages

KEPT_PER_KIND = 10


class Kind(StrEnum):
    """The kinds of violation, in the order in which a report lists them."""

    MALFORMED_RECORD = "malformed_record"
    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_PROPERTY = "unknown_property"
    WRONG_TYPE = "wrong_type"
    MISSING_VALUE = "missing_value"
    ENUM = "enum"
    RANGE = "range"
    CHECK = "check"
    VECTOR_DIMENSION = "vector_dimension"
    NOT_FINITE = "not_finite"
    MISSING_KEY = "missing_key"
    KEY_NOT_CANONICAL = "key_not_canonical"
    DUPLICATE_ID = "duplicate_id"
    EXISTING_ID = "existing_id"
    UNIQUE = "unique"
    MISSING_ENDPOINT = "missing_endpoint"
    DANGLING_EDGE = "dangling_edge"
    CARDINALITY = "cardinality"


_KIND_ORDER = {kind.value: position for position, kind in enumerate(Kind)}

SortKey = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the input a row came from. Mutations and merges have no input, so both are None."""

    source: str | None = None
    record: int | None = None


NOWHERE = Place()


def place_key(violation: Violation) -> SortKey:
    """Input order: source, record, then row and property for several findings about one place."""
    return (violation.source or "", violation.record or 0, violation.row_id or "", violation.property or "")


class ViolationCollector:
    """Counts every violation and keeps the first few of each (kind, table); `kept_per_kind` says how many."""

    def __init__(self, kept_per_kind: int = KEPT_PER_KIND) -> None:
        self.kept_per_kind = kept_per_kind
        self._counts: dict[tuple[str, str], int] = {}
        self._kept: dict[tuple[str, str], list[Violation]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, violation: Violation) -> None:
        """Count one violation, and keep it if it is among the first of its kind."""
        self.add_many(violation.kind, violation.table_key, 1, [violation])

    def add_many(self, kind: str, table_key: str, count: int, first: Iterable[Violation]) -> None:
        """Count `count` violations of one kind; `first` are the ones that can be among the first ten."""
        if count <= 0:
            return
        key = (kind, table_key)
        self._counts[key] = self._counts.get(key, 0) + count
        kept = self._kept.setdefault(key, [])
        for violation in first:
            if len(kept) < self.kept_per_kind or place_key(violation) < place_key(kept[-1]):
                bisect.insort(kept, violation, key=place_key)
                del kept[self.kept_per_kind :]

    def add_rows(
        self, kind: Kind, table_key: str, rows: Iterable[int], describe: Callable[[int], Violation], count: int
    ) -> None:
        """Count `count` violating rows; only the first few are described, since words cost more than counting."""
        first: list[Violation] = []
        for row in rows:
            if len(first) == self.kept_per_kind:
                break
            first.append(describe(int(row)))
        self.add_many(kind, table_key, count, first)

    def merge(self, other: ViolationCollector) -> None:
        """Take over what another collector found, as if this one had found it."""
        for (kind, table_key), count in other._counts.items():
            self.add_many(kind, table_key, count, other._kept[kind, table_key])

    def relocated(self, place_of: Callable[[Violation], Place]) -> ViolationCollector:
        """The same findings at other places: a task counts records from the start of its own part of the input."""
        moved = ViolationCollector()
        for (kind, table_key), count in self._counts.items():
            first = []
            for violation in self._kept[kind, table_key]:
                place = place_of(violation)
                first.append(replace(violation, source=place.source, record=place.record))
            moved.add_many(kind, table_key, count, first)
        return moved

    @property
    def counts(self) -> Mapping[str, int]:
        """How many violations there are of each kind, over all tables."""
        totals: dict[str, int] = {}
        for (kind, _), count in sorted(self._counts.items(), key=lambda item: _rank(item[0])):
            totals[kind] = totals.get(kind, 0) + count
        return totals

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The kept violations: by kind, then table, then place."""
        return tuple(v for key in sorted(self._kept, key=_rank) for v in self._kept[key])

    def error(self, what: str) -> ValidationFailed | None:
        """The error to raise for a refused write, or None when nothing was found.

        An id that exists already is a key conflict, as long as nothing else is wrong: trying again with another mode
        or another key is what helps then, not repairing the data.
        """
        if not self._counts:
            return None
        counts = dict(self.counts)
        message = summary(what, self.violations, counts)
        if set(counts) == {Kind.EXISTING_ID}:
            return KeyConflict(message, self.violations, counts)
        return ValidationFailed(message, self.violations, counts)

    def raise_if_any(self, what: str) -> None:
        """Refuse the write that `what` names if anything was found."""
        error = self.error(what)
        if error is not None:
            raise error


def summary(what: str, violations: Iterable[Violation], counts: Mapping[str, int]) -> str:
    """The message of a refused write: how many of what, and the kept ones with their places."""
    total = sum(counts.values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    noun = "violation" if total == 1 else "violations"
    lines = [f"{what} breaks rules of the schema, nothing was published: {total} {noun} ({kinds})"]
    lines += [f"  {_place_text(v)}: {v.message}" for v in violations]
    return "\n".join(lines)


def _place_text(violation: Violation) -> str:
    if violation.record is not None:
        return f"{violation.source or 'input'}, record {violation.record}: {violation.table_key}"
    if violation.row_id is not None:
        return f"{violation.table_key} {messages.show(violation.row_id)}"
    return violation.table_key


def _rank(key: tuple[str, str]) -> tuple[int, str]:
    return (_KIND_ORDER.get(key[0], len(_KIND_ORDER)), key[1])
