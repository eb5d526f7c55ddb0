"""Sidecars: the durable intent of a write in flight, put before the first table moves and deleted after the publish.

A sidecar says everything that somebody else needs in order to finish or undo the write. Its name is the ULID of the
operation, so a listing is in the order in which the writes began.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from ulid import ULID

from omnigraph.config import SIDECAR_SCHEMA_VERSION
from omnigraph.errors import LeaseLost, RecoveryRequired
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.values import CommitOperation, StreamBatch, TablePin, WriterKind
from omnigraph.storage.objects.object_errors import LostPrecondition, ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore, Token

SIDECAR_PREFIX = "__recovery"
SET_ASIDE_PREFIX = "__set_aside/sidecars"
CONTENT_PRESERVING_KINDS = frozenset({WriterKind.OPTIMIZE, WriterKind.ENSURE_INDICES})
"""Writers that change no data: any part of their work is a valid result."""

declare("sidecar.put", "Just before a sidecar is put: nothing has moved")
declare("sidecar.list", "Just before the sidecars are listed")
declare("sidecar.take_over", "Just before a recoverer takes a sidecar over")
declare("sidecar.plan", "Just before a recoverer writes its plan into the sidecar")
declare("sidecar.delete", "Just before a sidecar is deleted: the write it covers is resolved")


class UnreadableSidecar(RecoveryRequired):
    """A sidecar that is damaged, or of a newer program. Its name is all that it says: whose commits are its own."""

    def __init__(self, message: str, operation_id: str) -> None:
        super().__init__(message, operation_id, path=path_of(operation_id))


@dataclass(frozen=True, slots=True)
class SidecarOwner:
    """Who is working on the sidecar now. `nonce` makes each owner's content, and so its token, unlike any other's."""

    host: str
    process: int
    lease: str | None
    nonce: str

    @classmethod
    def here(cls, lease: str | None) -> SidecarOwner:
        """This process."""
        return cls(socket.gethostname(), os.getpid(), lease, str(ULID()))


@dataclass(frozen=True, slots=True)
class SidecarTable:
    """One table that will really move.

    `lance_branch` and `expected_version` are the line that the commits go to, and its version before the first of them.
    `pin` is what the manifest named then: the same place for a line that the branch owns, another line when the write
    made a fork for itself, None for a table that the write registers.
    """

    table_key: str
    type_id: str
    location: str
    lance_branch: str | None
    expected_version: int
    pin: TablePin | None
    transactions: tuple[str, ...]
    row_count: int

    @property
    def keys(self) -> frozenset[str]:
        """The key of the table, and the one it had before if the write renames it."""
        return frozenset({self.table_key, self.pin.table_key if self.pin else self.table_key})

    def builds_on(self, pin: TablePin | None) -> bool:
        """Whether `pin` is still the pin that this table had when the write was committed."""
        if pin is None or self.pin is None:
            return pin is self.pin
        return _place(pin) == _place(self.pin)


@dataclass(frozen=True, slots=True)
class RecoveredTable:
    """A table in a resolution: the HEAD that was found, and the logical version it stands at afterwards."""

    table_key: str
    from_version: int | None
    to_version: int | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a recoverer has decided, written into the sidecar before it acts, so that its successor records the same."""

    kind: str
    graph_commit_id: str
    tables: tuple[RecoveredTable, ...]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The intent of one write.

    `tables` are those that will move. The rest is what the publish says beyond them: tables that are new to the branch,
    tables that take over a version which exists already, renames, tombstones, and the schema. `reads` are the pins
    that the write was validated against.
    """

    operation_id: str
    kind: WriterKind
    branch: str
    incarnation: str
    actor_id: str | None
    graph_commit_id: str
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    started_at: int
    owner: SidecarOwner
    base_schema_digest: str
    tables: tuple[SidecarTable, ...]
    reads: tuple[tuple[str, TablePin | None], ...] = ()
    registered: tuple[TablePin, ...] = ()
    repinned: tuple[TablePin, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    tombstones: tuple[str, ...] = ()
    schema_digest: str | None = None
    changes_data: bool = True
    resolution: Resolution | None = None
    operations: tuple[CommitOperation, ...] = ()
    about: str | None = None
    batches: tuple[StreamBatch, ...] = ()

    @property
    def actors(self) -> str | None:
        """Whose write it is; all of them when it combines several."""
        names = {operation.actor_id for operation in self.operations if operation.actor_id is not None}
        return self.actor_id or ", ".join(sorted(names)) or None

    @property
    def table_keys(self) -> frozenset[str]:
        """Every table that the write would publish: what a sidecar that cannot be resolved blocks."""
        keys = {table.table_key for table in self.tables}
        keys |= {pin.table_key for pin in (*self.registered, *self.repinned)}
        return frozenset(keys | set(self.tombstones) | {key for pair in self.renamed for key in pair})

    def covers(self, table_key: str, lance_branch: str | None) -> bool:
        """Whether drift of this line of this table can come from this write: by table key and by Lance branch."""
        return any(table.lance_branch == lance_branch and table_key in table.keys for table in self.tables)

    def to_json(self) -> bytes:
        """The content of the sidecar's object."""
        more: dict[str, Any] = (
            {"operations": [operation.to_json() for operation in self.operations]} if self.operations else {}
        )
        more |= {"about": self.about} if self.about is not None else {}
        more |= {"batches": [batch.to_json() for batch in self.batches]} if self.batches else {}
        return orjson.dumps(
            {
                "schema_version": SIDECAR_SCHEMA_VERSION,
                "operation_id": self.operation_id,
                "writer_kind": self.kind.value,
                "branch": self.branch,
                "incarnation": self.incarnation,
                "actor_id": self.actor_id,
                "graph_commit_id": self.graph_commit_id,
                "parent_commit_id": self.parent_commit_id,
                "merged_parent_commit_id": self.merged_parent_commit_id,
                "started_at": self.started_at,
                "owner": self.owner,
                "base_schema_digest": self.base_schema_digest,
                "tables": self.tables,
                "reads": [{"table_key": key, "pin": pin} for key, pin in self.reads],
                "registered": self.registered,
                "repinned": self.repinned,
                "renamed": self.renamed,
                "tombstones": self.tombstones,
                "schema_digest": self.schema_digest,
                "changes_data": self.changes_data,
                "resolution": self.resolution,
                **more,
            },
            option=orjson.OPT_INDENT_2,
        )

    @classmethod
    def from_json(cls, data: bytes, operation_id: str) -> Sidecar:
        """Read the sidecar of an operation. `UnreadableSidecar` names the file, which stays."""
        try:
            content = orjson.loads(data)
            version = content["schema_version"]
            if not isinstance(version, int):
                raise TypeError("schema_version is no number")
        except (ValueError, TypeError, KeyError) as cause:
            raise _damaged(operation_id) from cause
        if version > SIDECAR_SCHEMA_VERSION:
            raise UnreadableSidecar(
                f"the sidecar {path_of(operation_id)} has schema version {version} and this program knows "
                f"{SIDECAR_SCHEMA_VERSION}: upgrade omnigraph first, then open the graph, which recovers it. Meanwhile "
                "it blocks only the tables that it moved",
                operation_id,
            )
        try:
            return _parse(content)
        except (ValueError, TypeError, KeyError, AttributeError) as cause:
            raise _damaged(operation_id) from cause


@dataclass(frozen=True, slots=True)
class StoredSidecar:
    """A sidecar as it was read, with the token of that content."""

    sidecar: Sidecar
    token: Token


@dataclass(frozen=True, slots=True)
class Deferred:
    """A sidecar that cannot be resolved in process. `refused` says why recovery left it for a person, None that it only
    waits for the next open for writing."""

    sidecar: Sidecar
    token: Token
    refused: str | None


class Sidecars:
    """The sidecars of one graph, and which of them this handle knows to be waiting for somebody else."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._deferred: dict[str, Deferred] = {}
        self._over: set[str] = set()

    def put(self, sidecar: Sidecar) -> StoredSidecar:
        """Phase A. Nobody else uses this operation id, so an object that exists already is an error."""
        failpoint("sidecar.put")
        return StoredSidecar(sidecar, self._objects.put_if_absent(path_of(sidecar.operation_id), sidecar.to_json()))

    def names(self) -> list[str]:
        """What unfinished work left, by name: sidecars, and the marks of `publish_marks`. A failure is loud."""
        failpoint("sidecar.list")
        # Asked before: one that is deleted meanwhile may be listed still.
        over = {path_of(operation_id) for operation_id in tuple(self._over)}
        return [e.path.rpartition("/")[2] for e in self._objects.list(SIDECAR_PREFIX) if e.path not in over]

    def list(self) -> list[str]:
        """The operation ids of all sidecars, oldest first."""
        return operation_ids(self.names())

    def get(self, operation_id: str) -> StoredSidecar | None:
        """The sidecar as it is now, or None when it is gone."""
        path = path_of(operation_id)
        try:
            data, token = self._objects.get(path)
        except ObjectNotFound:
            return None
        return StoredSidecar(Sidecar.from_json(data, operation_id), token)

    def check_ours(self, stored: StoredSidecar) -> None:
        """Fail if somebody took this sidecar over or resolved it: a process paused past its lease finds out here."""
        operation_id = stored.sidecar.operation_id
        try:
            _, token = self._objects.get(path_of(operation_id))
        except ObjectNotFound:
            token = None
        if token != stored.token:
            raise _lost(operation_id)

    def take_over(self, stored: StoredSidecar, owner: SidecarOwner) -> StoredSidecar:
        """Make a sidecar ours. From then on its former owner stops at its next check."""
        failpoint("sidecar.take_over")
        return self._replace(stored, replace(stored.sidecar, owner=owner))

    def plan(self, stored: StoredSidecar, resolution: Resolution) -> StoredSidecar:
        """Write down what is about to be done, before it is done."""
        failpoint("sidecar.plan")
        return self._replace(stored, replace(stored.sidecar, resolution=resolution))

    def note_over(self, operation_id: str) -> None:
        """The write of this sidecar is over, and it is about to be deleted: nobody here need look at it."""
        self._over.add(operation_id)

    def delete(self, operation_id: str) -> None:
        """Phase D. One that could not be deleted is work for whoever heals next."""
        try:
            failpoint("sidecar.delete")
            self._objects.delete(path_of(operation_id))
        finally:
            self._over.discard(operation_id)

    def set_aside(self, operation_id: str) -> str:
        """Take a sidecar out of recovery's sight without losing it; where it is now."""
        path = f"{SET_ASIDE_PREFIX}/{operation_id}.json"
        self._objects.put(path, self._objects.get(path_of(operation_id))[0])
        self._objects.delete(path_of(operation_id))
        return path

    def defer(self, deferred: Deferred) -> None:
        """Remember a sidecar that has to wait, so that later writes look at it no further than its token."""
        self._deferred = {**self._deferred, deferred.sidecar.operation_id: deferred}

    def is_deferred(self, stored: StoredSidecar) -> bool:
        """Whether this very content was found to have to wait."""
        known = self._deferred.get(stored.sidecar.operation_id)
        return known is not None and known.token == stored.token

    def forget_all_but(self, operation_ids: Collection[str]) -> None:
        """Drop what is remembered of sidecars that are gone."""
        self._deferred = {one: deferred for one, deferred in self._deferred.items() if one in operation_ids}

    @property
    def deferred(self) -> tuple[Deferred, ...]:
        """The sidecars that wait, oldest first."""
        return tuple(self._deferred[one] for one in sorted(self._deferred))

    def _replace(self, stored: StoredSidecar, changed: Sidecar) -> StoredSidecar:
        path = path_of(changed.operation_id)
        try:
            return StoredSidecar(changed, self._objects.put_if_match(path, changed.to_json(), stored.token))
        except (LostPrecondition, ObjectNotFound) as cause:
            raise _lost(changed.operation_id) from cause


def operation_ids(names: Iterable[str]) -> list[str]:
    """The operation ids of the sidecars among these names, oldest first."""
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))


def path_of(operation_id: str) -> str:
    """Where the sidecar of an operation is, relative to the graph."""
    return f"{SIDECAR_PREFIX}/{operation_id}.json"


def _lost(operation_id: str) -> LeaseLost:
    return LeaseLost(
        f"the unfinished write {operation_id} was taken over by somebody else; this process must not go on with it. "
        "Look at the branch, and write again if the change is not there.",
        operation_id=operation_id,
    )


def _damaged(operation_id: str) -> UnreadableSidecar:
    return UnreadableSidecar(
        f"the sidecar {path_of(operation_id)} cannot be read: it is damaged. It stays where it is and blocks only the "
        "tables that its write moved; `omnigraph repair` shows them and resolves it",
        operation_id,
    )


def _place(pin: TablePin) -> tuple[str, str | None, int]:
    return pin.location, pin.lance_branch, pin.version


def _pin(content: Mapping[str, Any] | None) -> TablePin | None:
    return None if content is None else TablePin(**content)


def _table(content: Mapping[str, Any]) -> SidecarTable:
    return SidecarTable(
        **{**content, "pin": _pin(content["pin"]), "transactions": tuple(content["transactions"])},
    )


def _resolution(content: Mapping[str, Any] | None) -> Resolution | None:
    if content is None:
        return None
    tables = tuple(RecoveredTable(**table) for table in content["tables"])
    return Resolution(content["kind"], content["graph_commit_id"], tables)


def _parse(content: Mapping[str, Any]) -> Sidecar:
    return Sidecar(
        operation_id=content["operation_id"],
        kind=WriterKind(content["writer_kind"]),
        branch=content["branch"],
        incarnation=content["incarnation"],
        actor_id=content["actor_id"],
        graph_commit_id=content["graph_commit_id"],
        parent_commit_id=content["parent_commit_id"],
        merged_parent_commit_id=content["merged_parent_commit_id"],
        started_at=content["started_at"],
        owner=SidecarOwner(**content["owner"]),
        base_schema_digest=content["base_schema_digest"],
        tables=tuple(_table(table) for table in content["tables"]),
        reads=tuple((read["table_key"], _pin(read["pin"])) for read in content["reads"]),
        registered=tuple(TablePin(**pin) for pin in content["registered"]),
        repinned=tuple(TablePin(**pin) for pin in content["repinned"]),
        renamed=tuple((old, new) for old, new in content["renamed"]),
        tombstones=tuple(content["tombstones"]),
        schema_digest=content["schema_digest"],
        changes_data=content["changes_data"],
        resolution=_resolution(content["resolution"]),
        operations=tuple(CommitOperation.from_json(one) for one in content.get("operations", ())),
        about=content.get("about"),
        batches=tuple(StreamBatch(**batch) for batch in content.get("batches", ())),
    )
