"""The schema-apply lock: a system ref object with its owner's lease in it.

While a live owner holds it, no branch is made and other writers wait or fail with a retryable error. A dead owner's
lock counts as free: its lease says so, and the next taker replaces the object by put-if-match.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
from ulid import ULID

from omnigraph.errors import Busy
from omnigraph.ledger.branches.refs import branch_path
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import SCHEMA_APPLY_LOCK
from omnigraph.storage.objects.object_errors import LostPrecondition, ObjectExists, ObjectNotFound
from omnigraph.storage.objects.objects import Token

LOCK_PATH = branch_path(SCHEMA_APPLY_LOCK)


@dataclass(frozen=True, slots=True)
class SchemaLock:
    """Who holds the lock. `operation_id` is the schema apply that it belongs to."""

    lease: str
    operation_id: str
    started_at: int


@contextmanager
def hold_schema_lock(store: GraphParts, operation_id: str, *, wait: float = 0.0) -> Iterator[SchemaLock]:
    """Hold the lock for the duration of a schema apply. `Busy` when somebody alive holds it."""
    lock = SchemaLock(f"schema-apply-{ULID()}", operation_id, time.time_ns() // 1000)
    with store.leases.acquire(lock.lease, operation_id):
        token = _take(store, lock, time.monotonic() + wait)
        try:
            yield lock
        finally:
            _give_back(store, token)


def current_schema_lock(store: GraphParts) -> SchemaLock | None:
    """The lock, if somebody alive holds it."""
    stored = _read(store)
    if stored is None or store.leases.is_live(stored[0].lease) is None:
        return None
    return stored[0]


def refuse_while_schema_is_applied(store: GraphParts, operation: str) -> None:
    """`Busy` while a live schema apply holds the lock."""
    held = current_schema_lock(store)
    if held is not None:
        raise Busy(
            f"{operation}: a schema apply ({held.operation_id}) is under way; try again when it is done",
            operation_id=held.operation_id,
        )


def drop_dead_schema_lock(store: GraphParts) -> bool:
    """Remove the lock of an owner that died; False when there is none. Only with recovery's full sweep."""
    stored = _read(store)
    if stored is None or store.leases.is_live(stored[0].lease) is not None:
        return False
    lock = SchemaLock(f"schema-apply-{ULID()}", "drop", time.time_ns() // 1000)
    with store.leases.acquire(lock.lease, "drop of a dead schema-apply lock"):
        try:
            token = store.objects.put_if_match(LOCK_PATH, orjson.dumps(lock), stored[1])
        except (LostPrecondition, ObjectNotFound):
            return False
        _give_back(store, token)
    return True


def _take(store: GraphParts, lock: SchemaLock, deadline: float) -> Token:
    data = orjson.dumps(lock)
    while True:
        with contextlib.suppress(ObjectExists):
            return store.objects.put_if_absent(LOCK_PATH, data)
        stored = _read(store)
        if stored is None:
            continue
        if store.leases.is_live(stored[0].lease) is None:
            with contextlib.suppress(LostPrecondition, ObjectNotFound):
                return store.objects.put_if_match(LOCK_PATH, data, stored[1])
            continue
        if time.monotonic() >= deadline:
            raise Busy(
                f"another schema apply ({stored[0].operation_id}) is under way; try again when it is done",
                operation_id=stored[0].operation_id,
            )
        time.sleep(0.05)


def _give_back(store: GraphParts, token: Token) -> None:
    """Remove our own lock, and nobody else's: who was paused past his lease may have been replaced."""
    with contextlib.suppress(LostPrecondition):
        store.objects.delete_if_match(LOCK_PATH, token)


def _read(store: GraphParts) -> tuple[SchemaLock, Token] | None:
    try:
        data, token = store.objects.get(LOCK_PATH)
    except ObjectNotFound:
        return None
    return SchemaLock(**orjson.loads(data)), token
