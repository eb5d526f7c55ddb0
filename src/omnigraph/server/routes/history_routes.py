"""Routes about states and their history: snapshot, commits, differences, and the change feed with its live form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Literal

from fastapi import Header, Query
from starlette.responses import Response

from omnigraph.errors import OmniGraphError
from omnigraph.merge.changes import counted
from omnigraph.merge.feed import Page
from omnigraph.policy.actions import Action
from omnigraph.read.state.control import CancelToken
from omnigraph.server.calls.threads import HeldStream
from omnigraph.server.error_bodies import encoded
from omnigraph.server.routes.change_bytes import changes_document, event, feed_document
from omnigraph.server.routes.graph_calls import (
    JSON,
    Call,
    GraphCall,
    Need,
    Responses,
    graph_router,
    json_reply,
    replies,
)
from omnigraph.server.routes.reply_shapes import ChangesReply, Commit, CommitsReply, FeedReply, SnapshotReply
from omnigraph.server.routes.request_bodies import DiffBody

router = graph_router()

EVENTS = "text/event-stream"
LOOK_EVERY = 0.5
"""Seconds between two looks for new commits."""
SIGN_OF_LIFE_EVERY = 15.0
PAGE = 100
"""Commits that are read at a time for a stream of events."""

BranchName = Annotated[str | None, Query(description="The branch; `main` by default.")]
Kinds = Annotated[list[Literal["node", "edge"]] | None, Query()]
Ops = Annotated[list[Literal["insert", "update", "delete"]] | None, Query()]

_FEED: Responses = {
    200: {
        "model": FeedReply,
        "description": "A page of the feed; with `Accept: text/event-stream`, events that go on.",
        "content": {EVENTS: {"schema": {"type": "string"}}},
    }
}


@router.get("/snapshot", responses=replies(SnapshotReply), summary="The tables that a state publishes")
async def snapshot(call: Call, branch: BranchName = None, snapshot: Annotated[str | None, Query()] = None) -> Response:
    """Of a branch, or of a commit, a tag or a manifest version."""

    def work(_: CancelToken) -> bytes:
        return encoded(call.graph.snapshot(snapshot, branch=branch, actor=call.actor).to_json())

    need = Need(Action.READ, None if snapshot is not None else branch or "main")
    return json_reply(await call.read(work, need))


@router.get("/commits", responses=replies(CommitsReply), summary="The commits that a branch can reach")
async def commits(
    call: Call,
    branch: BranchName = None,
    actor: Annotated[str | None, Query(description="Only commits of this actor.")] = None,
    since: Annotated[str | None, Query(description="ISO time with an offset.")] = None,
    until: Annotated[str | None, Query(description="ISO time with an offset.")] = None,
    limit: Annotated[int | None, Query(ge=0, le=1_000_000)] = None,
) -> Response:
    """Newest first."""

    def work(_: CancelToken) -> bytes:
        found = call.graph.log(branch, actor, limit, since=since, until=until, actor=call.actor)
        return encoded({"commits": [commit.to_json() for commit in found]})

    return json_reply(await call.read(work, Need(Action.READ, branch or "main")))


@router.get("/commits/{commit_id}", responses=replies(Commit), summary="One commit")
async def commit(call: Call, commit_id: str) -> Response:
    """By its id."""
    return json_reply(await call.read(lambda _: encoded(call.graph.commit(commit_id, actor=call.actor).to_json())))


@router.get("/commits/{commit_id}/changes", responses=replies(ChangesReply), summary="What one commit changed")
async def commit_changes(call: Call, commit_id: str) -> Response:
    """Against its first parent."""

    def pieces(_: CancelToken) -> Iterator[bytes]:
        found = call.graph.commit(commit_id, actor=call.actor)
        counts = counted(call.graph.commit_changes(commit_id, actor=call.actor))
        changes = call.graph.commit_changes(commit_id, actor=call.actor)
        return changes_document({"commit": found.to_json()}, counts, changes)

    return await call.stream(pieces, JSON)


@router.post("/diff", responses=replies(ChangesReply), summary="What differs between two states")
async def diff(call: Call, body: DiffBody) -> Response:
    """Counts first, then every changed entity."""

    def pieces(_: CancelToken) -> Iterator[bytes]:
        found = call.graph.diff(body.from_, body.to, kinds=body.kinds, types=body.types, ops=body.ops, actor=call.actor)
        return changes_document({"from": body.from_, "to": body.to}, found.summary(), () if body.summary else found)

    return await call.stream(pieces, JSON)


@router.get("/changes", responses=_FEED, summary="The change feed of a branch")
async def changes(
    call: Call,
    branch: BranchName = None,
    since: Annotated[str, Query(description="A cursor, a commit, `beginning` or `now`.")] = "beginning",
    limit: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
    kinds: Kinds = None,
    types: Annotated[list[str] | None, Query()] = None,
    ops: Ops = None,
    last_event_id: Annotated[str | None, Header(description="Go on after this event.")] = None,
) -> Response:
    """One block per commit, and the cursor to go on from. As events, it goes on until the client goes."""

    def page(since: str, limit: int | None) -> Page:
        return call.graph.changes(branch, since, kinds=kinds, types=types, ops=ops, limit=limit, actor=call.actor)

    need = Need(Action.READ, branch or "main")
    if EVENTS not in call.request.headers.get("accept", ""):
        return await call.stream(lambda _: feed_document(page(since, limit)), JSON, need)
    ticket = call.admit(need)
    try:
        first = await call.state.threads.read(call.request, lambda _: page(last_event_id or since, PAGE))
    except BaseException:
        ticket.release()
        raise
    return HeldStream(_events(call, page, first), ticket, EVENTS)


async def _events(call: GraphCall, page: object, first: Page) -> AsyncIterator[bytes]:
    """The commits of a feed as they are published. The policy is asked again with every look."""
    assert callable(page)
    found = first
    waited = 0.0
    yield b"retry: 1000\n\n"
    while not call.state.stopping:
        for block in found.blocks:
            # mypy does not see: a default binds the loop variable.
            yield await call.state.threads.read(call.request, lambda _, block=block: event(block))  # type: ignore[misc]
        if len(found.blocks) < PAGE:
            await asyncio.sleep(LOOK_EVERY)
            waited = 0.0 if found.blocks else waited + LOOK_EVERY
            if waited >= SIGN_OF_LIFE_EVERY:
                waited = 0.0
                yield b": still here\n\n"
        cursor = found.cursor
        try:
            found = await call.state.threads.write(lambda: page(cursor, PAGE))  # noqa: B023 - awaited at once
        except OmniGraphError as error:
            yield b"event: error\ndata: " + encoded(error.to_json()) + b"\n\n"
            return
