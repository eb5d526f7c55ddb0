"""The route of blobs: whole or a range of them, streamed, with a tag by which a client knows what it has already."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Annotated, Literal

from fastapi import Header, Query
from starlette.responses import Response

from omnigraph.policy.actions import Action
from omnigraph.read.state.control import CancelToken
from omnigraph.server.calls.threads import HeldStream
from omnigraph.server.routes.graph_calls import Call, GraphCall, Need, Responses, graph_router

router = graph_router()

BYTES = "application/octet-stream"
_PIECE = 1 << 20
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_CONTENT = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
_BLOB: Responses = {
    200: {"description": "The bytes.", "content": _CONTENT},
    206: {"description": "The range that was asked for.", "content": _CONTENT},
    304: {"description": "The client has it already."},
    416: {"description": "The blob ends before the range starts."},
}

Kind = Annotated[Literal["node", "edge"] | None, Query(description="Where a node and an edge type have one name.")]
Text = Annotated[str, Query()]
Maybe = Annotated[str | None, Query()]


@dataclass(frozen=True, slots=True)
class Opened:
    """A blob, opened: its size, and a tag that changes when it may have changed."""

    file: IO[bytes]
    size: int
    tag: str


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a client asks for of a blob, in the words of its headers, and what it has already."""

    range_: str | None = None
    only_of: str | None = None
    known: str | None = None

    def has(self, tag: str) -> bool:
        """Whether the client has the bytes of this tag."""
        return self.known is not None and any(
            one.strip().removeprefix("W/") in ("*", tag) for one in self.known.split(",")
        )

    def part(self, found: Opened) -> range | None:
        """The part to send; None for all of it. Who goes on with other bytes than these gets these from the start."""
        if self.range_ is None or (self.only_of is not None and self.only_of.strip() != found.tag):
            return None
        return _range(self.range_, found.size)


@router.get("/blob", responses=_BLOB, summary="The bytes of a blob")
async def blob(
    call: Call,
    type: Text,
    id: Text,
    property: Text,
    entity: Kind = None,
    branch: Maybe = None,
    snapshot: Maybe = None,
    range_: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Annotated[str | None, Header(description="The range only of this tag; else all of it.")] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """All of them, or a range. A range that cannot be served as one, such as several at once, gives all of them."""
    place = f"{entity}:{type}" if entity else type
    wanted = _Wanted(range_, if_range, if_none_match)
    return await _answer(call, place, id, property, branch, snapshot, wanted)


@router.head("/blob", responses=_BLOB, summary="The size and the tag of a blob", name="blob_head")
async def blob_head(
    call: Call,
    type: Text,
    id: Text,
    property: Text,
    entity: Kind = None,
    branch: Maybe = None,
    snapshot: Maybe = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Without its bytes."""
    place = f"{entity}:{type}" if entity else type
    return await _answer(call, place, id, property, branch, snapshot, _Wanted(known=if_none_match), head=True)


async def _answer(
    call: GraphCall,
    type_: str,
    id_: str,
    property_: str,
    branch: str | None,
    snapshot: str | None,
    wanted: _Wanted,
    *,
    head: bool = False,
) -> Response:
    ticket = call.admit(Need(Action.READ, None if snapshot is not None else branch or "main"))
    try:

        def work(_: CancelToken) -> Opened:
            return _opened(call, type_, id_, property_, branch, snapshot)

        found = await call.state.threads.read(call.request, work)
        headers = {"ETag": found.tag, "Accept-Ranges": "bytes", "Content-Length": str(found.size)}
        if wanted.has(found.tag):
            ticket.release()
            return Response(None, 304, {"ETag": found.tag})
        if head:
            ticket.release()
            return Response(None, 200, headers, BYTES)
        part = wanted.part(found)
        if part is not None and part.start >= found.size:
            ticket.release()
            return Response(None, 416, {"Content-Range": f"bytes */{found.size}"})
    except BaseException:
        ticket.release()
        raise
    sent = part if part is not None else range(found.size)
    response = HeldStream(call.state.threads.pull(_pieces(found.file, sent)), ticket, BYTES)
    response.headers.update({**headers, "Content-Length": str(len(sent))})
    if part is not None:
        response.status_code = 206
        response.headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{found.size}"
    return response


def _opened(call: GraphCall, type_: str, id_: str, property_: str, branch: str | None, snapshot: str | None) -> Opened:
    """The blob as it is in one state; a table that did not change gives the same tag."""
    state = call.graph.snapshot(snapshot, branch=branch, actor=call.actor)
    at = state.head.graph_commit_id
    file = call.graph.open_blob(type_, id_, property_, at=at, actor=call.actor)
    size = file.seek(0, 2)
    pins = [
        f"{pin.location}@{pin.lance_branch}@{pin.version}"
        for key, pin in sorted(state.tables.items())
        if type_ in (key, key.partition(":")[2])
    ]
    tag = hashlib.sha256("\n".join([*pins, id_, property_]).encode()).hexdigest()[:32]
    return Opened(file, size, f'"{tag}"')


def _range(text: str, size: int) -> range | None:
    """The bytes that a header asks for; None when it is no range that is served here, and then all are meant."""
    found = _RANGE.fullmatch(text.strip())
    if found is None or found[0] == "bytes=-" or (found[1] and found[2] and int(found[2]) < int(found[1])):
        return None
    if not found[1]:
        return range(max(0, size - int(found[2])), size)
    return range(int(found[1]), min(int(found[2]) + 1, size) if found[2] else size)


def _pieces(file: IO[bytes], part: range) -> Iterator[bytes]:
    file.seek(part.start)
    left = len(part)
    while left > 0 and (piece := file.read(min(left, _PIECE))):
        left -= len(piece)
        yield piece
