"""Marks of frame writes in flight: their tasks write files before any process could hold a lease for all of them.

A mark is put before the first task runs and removed by the commit or the abort. While one is there, nobody sweeps up
unreferenced files. A driver that died leaves its mark; after the grace period of `cleanup` it counts no more, and the
next cleanup removes it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ulid import ULID

from omnigraph.config import settings
from omnigraph.storage.objects.objects import ObjectStore

MARKS = "__staging"


def put_mark(objects: ObjectStore, what: str) -> str:
    """Mark a write in flight; where the mark is."""
    path = f"{MARKS}/{ULID()}.json"
    objects.put(path, what.encode())
    return path


def remove_mark(objects: ObjectStore, path: str) -> None:
    """The write is over."""
    objects.delete(path)


def any_marked(objects: ObjectStore) -> bool:
    """Whether a frame write may be in flight."""
    oldest = _oldest_that_counts()
    return any(mark.modified >= oldest for mark in objects.list(MARKS))


def remove_dead_marks(objects: ObjectStore) -> int:
    """Remove the marks of writers that died, and what they have put beside them; how many objects there were."""
    oldest = _oldest_that_counts()
    dead = [mark.path for mark in objects.list(MARKS) if mark.modified < oldest]
    for path in dead:
        objects.delete(path)
    objects.remove_empty_folders(MARKS)
    return len(dead)


def _oldest_that_counts() -> datetime:
    return datetime.now(UTC) - timedelta(seconds=settings().cleanup_grace)
