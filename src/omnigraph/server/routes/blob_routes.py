"""The route of blobs: whole or a range of them, streamed, with a tag by which a client knows what it has already."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Annotated, Literal

from fastapi import Header, Query
from starlette.responses import Response

from omnigraph.errors import BadRequest
from omnigraph.policy.actions import Action
from omnigraph.read.state.control import CancelToken
from omnigraph.server.routes.graph_calls import Call, GraphCall, Need, Responses, graph_router
from omnigraph.server.threads import HeldStream

router = graph_router()

BYTES = "application/octet-stream"
_PIECE = 1 << 20
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
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
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """All of them, or a range."""
    place = f"{entity}:{type}" if entity else type
    return await _answer(call, place, id, property, branch, snapshot, range_, if_none_match)


@router.head("/blob", responses=_BLOB, summary="The size and the tag of a blob", name="blob_head")
async def blob_head(
    call: Call,
    type: Text,
    id: Text,
    property: Text,
    entity: Kind = None,
    branch: Maybe = None,
    snapshot: Maybe = None,
) -> Response:
    """Without its bytes."""
    place = f"{entity}:{type}" if entity else type
    return await _answer(call, place, id, property, branch, snapshot, None, None, head=True)


async def _answer(
    call: GraphCall,
    type_: str,
    id_: str,
    property_: str,
    branch: str | None,
    snapshot: str | None,
    range_: str | None,
    known: str | None,
    *,
    head: bool = False,
) -> Response:
    ticket = call.admit(Need(Action.READ, None if snapshot is not None else branch or "main"))
    try:

        def work(_: CancelToken) -> Opened:
            return _opened(call, type_, id_, property_, branch, snapshot)

        found = await call.state.threads.read(call.request, work)
        headers = {"ETag": found.tag, "Accept-Ranges": "bytes", "Content-Length": str(found.size)}
        if known is not None and found.tag in [tag.strip() for tag in known.split(",")]:
            ticket.release()
            return Response(None, 304, {"ETag": found.tag})
        if head:
            ticket.release()
            return Response(None, 200, headers, BYTES)
        start, stop = _range(range_, found.size)
        if start >= found.size and range_ is not None:
            ticket.release()
            return Response(None, 416, {"Content-Range": f"bytes */{found.size}"})
    except BaseException:
        ticket.release()
        raise
    response = HeldStream(call.state.threads.pull(_pieces(found.file, start, stop)), ticket, BYTES)
    response.headers.update({**headers, "Content-Length": str(stop - start)})
    if range_ is not None:
        response.status_code = 206
        response.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{found.size}"
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


def _range(text: str | None, size: int) -> tuple[int, int]:
    """The bytes that a header asks for: from the first to before the last."""
    if text is None:
        return 0, size
    found = _RANGE.fullmatch(text.strip())
    if found is None or found[0] == "bytes=-":
        raise BadRequest(f"`{text[:40]}` is no range that is served here: write bytes=0-99, bytes=100- or bytes=-100")
    if not found[1]:
        return max(0, size - int(found[2])), size
    start = int(found[1])
    stop = min(int(found[2]) + 1, size) if found[2] else size
    if found[2] and int(found[2]) < start:
        raise BadRequest(f"`{text[:40]}` ends before it starts")
    return start, stop


def _pieces(file: IO[bytes], start: int, stop: int) -> Iterator[bytes]:
    file.seek(start)
    left = stop - start
    while left > 0 and (piece := file.read(min(left, _PIECE))):
        left -= len(piece)
        yield piece
