"""What a difference is made of: one change per entity, and counts per type and operation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.schema.entities import shown_entity


class Op(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class FieldPair:
    """One field under the names that it has before and after. None: the schema of that side has no such field.

    Rows of that side are taken to have `default`, the value that a row gets when the property is added.
    """

    before: str | None
    after: str | None
    default: Any = None


@dataclass(frozen=True, slots=True)
class EntityChange:
    """One node or edge that differs: `before` and `after` show it as `entity()` does.

    `endpoints` are the ends of an edge (of the newer state when there is one), None for a node. `old` and `new` are the
    whole rows that were compared, with vectors, and with blobs as digests of their bytes.
    """

    kind: str
    type: str
    id: str
    op: Op
    old: dict[str, Any] | None = field(repr=False)
    new: dict[str, Any] | None = field(repr=False)
    endpoints: tuple[str, str] | None = None
    fields: tuple[FieldPair, ...] | None = field(default=None, compare=False, repr=False)
    """The fields that are compared, when a change of the schema lies between; otherwise they have the same names."""
    hidden: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The blobs and vectors of the type."""

    @property
    def before(self) -> dict[str, Any] | None:
        """The entity before the change; None when it was inserted."""
        return shown_entity(self.old, self.hidden) if self.old is not None else None

    @property
    def after(self) -> dict[str, Any] | None:
        """The entity after the change; None when it was deleted."""
        return shown_entity(self.new, self.hidden) if self.new is not None else None

    @property
    def changed_fields(self) -> tuple[str, ...]:
        """The names whose values differ, for an update; blobs and vectors among them."""
        return tuple(name for name, _, _ in self.differing())

    def differing(self) -> tuple[tuple[str, Any, Any], ...]:
        """Each field whose values differ, for an update, with the old and the new value."""
        if self.old is None or self.new is None:
            return ()
        pairs = self.fields
        if pairs is None:
            pairs = tuple(FieldPair(name, name) for name in dict.fromkeys((*self.old, *self.new)))
        found = []
        for pair in pairs:
            old = pair.default if pair.before is None else self.old.get(pair.before)
            new = pair.default if pair.after is None else self.new.get(pair.after)
            if not _same(old, new):
                found.append((pair.after or pair.before or "", old, new))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "kind": self.kind,
            "type": self.type,
            "id": self.id,
            "op": self.op.value,
            "changed_fields": list(self.changed_fields),
            "before": _plain(self.before),
            "after": _plain(self.after),
            "endpoints": {"from": self.endpoints[0], "to": self.endpoints[1]} if self.endpoints else None,
        }


@dataclass(frozen=True, slots=True)
class TypeCount:
    """How many entities of one type were inserted, updated and deleted."""

    table_key: str
    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.inserts + self.updates + self.deletes

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "table_key": self.table_key,
            "inserts": self.inserts,
            "updates": self.updates,
            "deletes": self.deletes,
        }


def counted(changes: Iterable[EntityChange]) -> tuple[TypeCount, ...]:
    """The counts of a difference, in the order in which types first appear."""
    found: dict[str, dict[Op, int]] = {}
    for change in changes:
        per_type = found.setdefault(f"{change.kind}:{change.type}", {})
        per_type[change.op] = per_type.get(change.op, 0) + 1
    return tuple(
        TypeCount(key, ops.get(Op.INSERT, 0), ops.get(Op.UPDATE, 0), ops.get(Op.DELETE, 0))
        for key, ops in found.items()
    )


def _same(left: Any, right: Any) -> bool:
    return bool(left == right or (left != left and right != right))


def _plain(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    from omnigraph.merge.plain import plain_row

    return plain_row(row)
