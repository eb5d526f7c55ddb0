"""Changes as bytes, a piece at a time: they are never all in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from omnigraph.merge.changes import EntityChange, TypeCount
from omnigraph.merge.feed import CommitChanges, Page
from omnigraph.server.calls.threads import in_chunks
from omnigraph.server.error_bodies import encoded


def changes_document(
    head: Mapping[str, Any], counts: Iterable[TypeCount], changes: Iterable[EntityChange]
) -> Iterator[bytes]:
    """What stands at the head, the counts, then each change."""
    return in_chunks(_document({**head, "summary": [count.to_json() for count in counts]}, changes))


def feed_document(page: Page) -> Iterator[bytes]:
    """A page of the change feed."""
    return in_chunks(_feed(page))


def event(block: CommitChanges) -> bytes:
    """One commit as a server-sent event; its id is the cursor that goes on after it."""
    content = {
        "commit": block.commit.to_json(),
        "cursor": block.cursor,
        "changes": [change.to_json() for change in block.changes],
    }
    return b"id: " + block.cursor.encode() + b"\nevent: commit\ndata: " + encoded(content) + b"\n\n"


def _document(head: Mapping[str, Any], changes: Iterable[EntityChange]) -> Iterator[bytes]:
    yield encoded(head)[:-1] + b',"changes":['
    yield from _separated(changes)
    yield b"]}"


def _feed(page: Page) -> Iterator[bytes]:
    yield b'{"blocks":['
    for position, block in enumerate(page.blocks):
        opening = encoded({"commit": block.commit.to_json(), "cursor": block.cursor})
        yield (b"," if position else b"") + opening[:-1] + b',"changes":['
        yield from _separated(block.changes)
        yield b"]}"
    yield b'],"cursor":' + encoded(page.cursor) + b"}"


def _separated(changes: Iterable[EntityChange]) -> Iterator[bytes]:
    for position, change in enumerate(changes):
        yield (b"," if position else b"") + encoded(change.to_json())
