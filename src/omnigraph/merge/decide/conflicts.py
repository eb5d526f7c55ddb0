"""Conflicts of a merge: what collides, with the three versions of the row, and how a caller can resolve it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.merge.compare.images import shown_row
from omnigraph.merge.plain import plain_row, plain_value
from omnigraph.schema.arrow import shown_columns
from omnigraph.schema.catalog import GraphType


class ConflictKind(StrEnum):
    """Why a row cannot be merged by itself."""

    DIVERGENT_INSERT = "DivergentInsert"
    DIVERGENT_UPDATE = "DivergentUpdate"
    DELETE_VS_UPDATE = "DeleteVsUpdate"
    ORPHAN_EDGE = "OrphanEdge"
    UNIQUE_VIOLATION = "UniqueViolation"
    CARDINALITY_VIOLATION = "CardinalityViolation"
    VALUE_CONSTRAINT_VIOLATION = "ValueConstraintViolation"
    SCHEMA_CONFLICT = "SchemaConflict"


ROW_KINDS = frozenset({ConflictKind.DIVERGENT_INSERT, ConflictKind.DIVERGENT_UPDATE, ConflictKind.DELETE_VS_UPDATE})
"""The kinds that a strategy or a resolution can settle; the others are about the graph as a whole."""


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One row that both sides changed, or that the merged graph cannot hold. A missing version is None.

    `properties` are those that both sides changed in different ways.
    """

    table_key: str
    row_id: str | None
    kind: ConflictKind
    message: str
    base: dict[str, Any] | None = None
    source: dict[str, Any] | None = None
    target: dict[str, Any] | None = None
    properties: tuple[str, ...] = ()

    def differing(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """Each field that is not the same in every version of the row there is, with its values by version."""
        versions = {"base": self.base, "source": self.source, "target": self.target}
        rows = {name: row for name, row in versions.items() if row is not None}
        found = []
        for field in dict.fromkeys(field for row in rows.values() for field in row):
            values = {name: plain_value(row.get(field)) for name, row in rows.items()}
            first, *others = values.values()
            if any(value != first for value in others):
                found.append((field, values))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; kinds in snake case, as everywhere on the wire."""
        return {
            "table_key": self.table_key,
            "row_id": self.row_id,
            "kind": snake_case(self.kind.value),
            "message": self.message,
            "properties": list(self.properties),
            "base": plain_row(self.base) if self.base is not None else None,
            "source": plain_row(self.source) if self.source is not None else None,
            "target": plain_row(self.target) if self.target is not None else None,
        }


LONGEST_VALUE = 60
"""Characters of a value that are shown to people."""


class Granularity(StrEnum):
    """How fine the changes are that can collide: a whole row, or one property of it."""

    ROW = "row"
    PROPERTY = "property"

    @classmethod
    def of(cls, given: str) -> Granularity:
        """From what a caller gave."""
        try:
            return cls(given)
        except ValueError:
            raise BadRequest(f"`{given}` is no granularity: use row or property") from None


class Choice(StrEnum):
    """Which side a divergent row is taken from."""

    OURS = "ours"
    THEIRS = "theirs"


Resolution = Choice | dict[str, Any] | None
"""A side, a whole row, or None to delete the row."""


@dataclass(frozen=True, slots=True)
class Resolutions:
    """How divergent rows are settled: by a rule for all, and by an answer for single rows, which wins."""

    strategy: Choice | None = None
    rows: Mapping[tuple[str, str], Resolution] | None = None
    granularity: Granularity = Granularity.ROW

    @classmethod
    def of(
        cls, strategy: str | None, rows: Mapping[Any, Any] | None, granularity: str = Granularity.ROW
    ) -> Resolutions:
        """From what a caller gave: keys are (table key, id), values `ours`, `theirs`, a row or None."""
        chosen = None
        if strategy is not None:
            try:
                chosen = Choice(strategy)
            except ValueError:
                raise BadRequest(f"`{strategy}` is no strategy: use ours or theirs") from None
        answers = {_key(key): _resolution(key, value) for key, value in (rows or {}).items()}
        return cls(chosen, answers, Granularity.of(granularity))

    def settle(self, table_key: str, row_id: str) -> tuple[bool, Resolution]:
        """Whether there is an answer for a row, and the answer."""
        if self.rows and (table_key, row_id) in self.rows:
            return True, self.rows[table_key, row_id]
        return self.strategy is not None, self.strategy

    def of_table(self, table_key: str) -> dict[str, Resolution]:
        """The answers for single rows of one table, by id."""
        return {row_id: answer for (key, row_id), answer in (self.rows or {}).items() if key == table_key}


def _key(key: Any) -> tuple[str, str]:
    if isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, str) for part in key):
        return key
    raise BadRequest(f"a resolution is for a pair of table key and row id, such as ('node:Person', 'ada'), not {key!r}")


def _resolution(key: Any, value: Any) -> Resolution:
    if value is None or isinstance(value, dict):
        return value
    try:
        return Choice(value)
    except ValueError:
        raise BadRequest(f"the resolution of {key!r} is `ours`, `theirs`, a row or None, not {value!r}") from None


def row_conflict(
    type_: GraphType,
    row_id: str,
    base: dict[str, Any] | None,
    source: dict[str, Any] | None,
    target: dict[str, Any] | None,
    *,
    inserted: bool,
    clashing: Sequence[str] = (),
) -> MergeConflict:
    """The conflict of a row that both sides changed. `inserted`: neither side found it there.

    `clashing` are the columns that both sides changed in different ways.
    """
    names = shown_columns(type_)
    properties = tuple(names[column] for column in clashing)
    listed = f" ({', '.join(f'`{name}`' for name in properties)})" if properties else ""
    if source is None or target is None:
        kind = ConflictKind.DELETE_VS_UPDATE
        gone, kept = ("source", "target") if source is None else ("target", "source")
        message = f"{type_.name} `{row_id}` was deleted on the {gone} and changed on the {kept}"
    elif inserted:
        kind = ConflictKind.DIVERGENT_INSERT
        message = f"{type_.name} `{row_id}` was added on both sides with different values{listed}"
    else:
        kind = ConflictKind.DIVERGENT_UPDATE
        message = f"{type_.name} `{row_id}` was changed on both sides in different ways{listed}"
        if not properties:
            message += ", but no property by both; granularity property would take both changes"
    versions = {"base": base, "source": source, "target": target}
    rows = {name: shown_row(type_, row) for name, row in versions.items()}
    return MergeConflict(type_.table_key, row_id, kind, message, **rows, properties=properties)


def described(conflicts: Sequence[MergeConflict]) -> str:
    """Conflicts for people: what collides, and the fields in which the versions differ."""
    lines = []
    for conflict in conflicts:
        lines.append(f"  {conflict.kind.value} {conflict.table_key} {conflict.row_id or ''}: {conflict.message}")
        for field, values in conflict.differing():
            shown = ", ".join(f"{name} {_shown(value)}" for name, value in values.items())
            lines.append(f"      {field}: {shown}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def snake_case(name: str) -> str:
    """`DivergentInsert` as `divergent_insert`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
