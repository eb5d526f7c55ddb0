"""Routes that move data: query, mutate, load, embed, export, entity, and the older names of the first three."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal

import orjson
from fastapi import Header, Query
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from omnigraph.errors import BadRequest
from omnigraph.handle.asked import ReadAsk
from omnigraph.merge.plain import plain_row
from omnigraph.policy.actions import Action
from omnigraph.read.state.control import CancelToken
from omnigraph.server.calls.admission import Ticket
from omnigraph.server.calls.growing_file import GrowingFile
from omnigraph.server.calls.threads import in_chunks
from omnigraph.server.error_bodies import encoded
from omnigraph.server.routes.graph_calls import (
    JSON,
    LINES,
    Call,
    GraphCall,
    Need,
    Responses,
    graph_router,
    json_reply,
    replies,
)
from omnigraph.server.routes.reply_shapes import (
    EmbedReply,
    EntityReply,
    LoadReply,
    MutateReply,
    PlanOfQuery,
    QueryReply,
)
from omnigraph.server.routes.request_bodies import (
    EmbedBody,
    ExplainBody,
    ExportBody,
    LoadBody,
    MutateBody,
    OldQueryBody,
    QueryBody,
)
from omnigraph.server.routes.result_bytes import ARROW, arrow_pieces, json_pieces

router = graph_router()

IfCommit = Annotated[
    str | None,
    Header(alias="Omnigraph-If-Graph-Commit", description="Only if no data changed on the branch since this commit."),
]
Timeout = Annotated[
    str | None, Header(alias="Omnigraph-Timeout", description="Seconds that the read may take at most.")
]

_ROWS: Responses = {
    200: {
        "model": QueryReply,
        "description": "The rows, as JSON or, where `Accept` asks for it, as an Arrow stream.",
        "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_LINES: Responses = {
    200: {"description": "JSON lines.", "content": {LINES: {"schema": {"type": "string"}}}},
}
_RECORDS = {"requestBody": {"required": True, "content": {LINES: {"schema": {"type": "string"}}}}}
_ROWS_OF = "The lines are plain rows of this type, not records that say their own; without a line it has no rows."
EARLY_BYTES = 4 << 20
"""Bytes of a streamed load that have come when it is begun."""


@router.post("/query", responses=_ROWS, summary="Run a read query")
async def query(call: Call, body: QueryBody, _timeout: Timeout = None) -> Response:
    """Rows of one snapshot. A mutation is refused here."""
    return await run_read(call, body.query, body.name, body.params, body.branch, body.snapshot)


@router.post("/explain", responses=replies(PlanOfQuery), summary="How a read query would run")
async def explain(call: Call, body: ExplainBody, _timeout: Timeout = None) -> Response:
    """Its steps with estimates and choices; with `analyze` it is run, and they have rows and times."""
    seconds = call.seconds

    def work(_: CancelToken) -> bytes:
        found = call.graph.explain(
            body.query,
            body.name,
            body.params,
            branch=body.branch,
            at=body.snapshot,
            analyze=body.analyze,
            actor=call.actor,
            timeout=seconds,
        )
        return encoded(found.to_json())

    return json_reply(await call.read(work, _read_need(body.branch, body.snapshot)))


@router.post("/mutate", responses=replies(MutateReply), summary="Run a mutation")
async def mutate(call: Call, body: MutateBody, if_commit: IfCommit = None) -> Response:
    """One commit, or none when nothing changes."""
    return await run_mutation(call, body.query, body.name, body.params, body.branch, if_commit)


@router.post("/load", responses=replies(LoadReply), summary="Load records of a JSON body")
async def load(call: Call, body: LoadBody, if_commit: IfCommit = None) -> Response:
    """One commit, or nothing at all when a record breaks a rule."""
    data = body.data.encode("utf-8", "surrogatepass") if isinstance(body.data, str) else body.data
    return await _load(call, data, body.mode, body.branch, body.from_, if_commit)


@router.post("/load/ndjson", responses=replies(LoadReply), openapi_extra=_RECORDS, summary="Load a stream of records")
async def load_stream(
    call: Call,
    mode: Annotated[Literal["append", "merge", "overwrite"], Query()],
    branch: Annotated[str | None, Query()] = None,
    from_: Annotated[str | None, Query(alias="from")] = None,
    rows_of: Annotated[str | None, Query(alias="type", description=_ROWS_OF)] = None,
    src: Annotated[str | None, Query(description="With `type`, of an edge: the name that its source has.")] = None,
    dst: Annotated[str | None, Query(description="With `type`, of an edge: the name that its target has.")] = None,
    stream: Annotated[str | None, Query(min_length=1, description="The name of a stream of loads.")] = None,
    batch: Annotated[int | None, Query(ge=0, le=2**53, description="The number of this load in its stream.")] = None,
    if_commit: IfCommit = None,
) -> Response:
    """As `load`, of any size. The records are read as they come, and loaded when they are all there.

    A `batch` of a `stream` that the branch has is not loaded again: whoever got no answer repeats it.
    """
    if (stream is None) != (batch is None):
        raise BadRequest("`stream` and `batch` go together: the name of a stream and the number of this load in it")
    place = branch or "main"
    part = None if stream is None or batch is None else (stream, batch)
    rows = {} if rows_of is None else {"type": rows_of, "src": src, "dst": dst}
    ticket = call.admit(Need(Action.CHANGE, place))
    try:
        with GrowingFile() as body:
            loaded = await _load_as_it_comes(
                call,
                ticket,
                body,
                lambda: _loaded(
                    call,
                    body if rows_of is None else _rows(io.BufferedReader(body)),
                    mode,
                    branch,
                    from_,
                    if_commit,
                    part,
                    **rows,
                ),
                # A branch is made for a load that is going to be, and rows of a named type are gone through once.
                early=from_ is None and rows_of is None,
            )
        return json_reply(loaded)
    finally:
        ticket.release()


async def _load_as_it_comes(
    call: GraphCall, ticket: Ticket, body: GrowingFile, load: Callable[[], bytes], *, early: bool
) -> bytes:
    """Load the records of a body: a large one is begun on while the rest of it comes in."""
    threads = call.state.threads
    loading: asyncio.Future[bytes] | None = None
    received = 0
    try:
        async with threads.kept(body) as keep:
            async for piece in call.request.stream():
                ticket.hold(len(piece))
                if loading is not None and loading.done():
                    continue  # it has failed; who still sends would not hear of it
                await keep(piece)
                received += len(piece)  # what is being written to the body just now is waited for by who reads it
                if early and loading is None and received >= EARLY_BYTES:
                    loading = threads.begin(load)
                    early = loading is not None
        body.end()
        return await (asyncio.shield(loading) if loading is not None else threads.write(load))
    except ClientDisconnect:
        raise BadRequest("the client went before its records were all there; nothing was loaded") from None
    finally:
        body.break_off(BadRequest("the records did not come to their end; nothing was loaded"))
        if loading is not None:
            # Nobody may close the body before; and it ends soon, since there is no more to read.
            await asyncio.wait({loading})
            loading.cancelled() or loading.exception()


@router.post("/embed", responses=replies(EmbedReply), summary="Make the vectors of stored texts")
async def embed(call: Call, body: EmbedBody) -> Response:
    """One commit. A dry run counts rows and tokens."""
    place = body.branch or "main"

    def done() -> bytes:
        result = call.graph.embed(
            body.types,
            body.property,
            mode=body.mode,
            branch=body.branch,
            dry_run=body.dry_run,
            actor=call.actor,
        )
        return encoded({**result.to_json(), "uri": call.served.settings.id})

    if body.dry_run:
        return json_reply(await call.read(lambda _: done(), Need(Action.READ, place)))
    return json_reply(await call.write(done, Need(Action.CHANGE, place)))


@router.post("/export", responses=_LINES, summary="Write a graph out")
async def export(call: Call, body: ExportBody) -> Response:
    """JSON lines that load back to an equal graph, streamed."""
    types = [*(body.type_names or ()), *(body.table_keys or ())] or None

    def lines(_: CancelToken) -> Iterator[bytes]:
        return in_chunks(call.graph.export_lines(at=body.snapshot, branch=body.branch, types=types, actor=call.actor))

    return await call.stream(lines, LINES, _read_need(body.branch, body.snapshot, Action.EXPORT))


@router.get("/entity", responses=replies(EntityReply), summary="One node or edge by its id")
async def entity(
    call: Call,
    type: Annotated[str, Query()],
    id: Annotated[str, Query()],
    branch: Annotated[str | None, Query()] = None,
    snapshot: Annotated[str | None, Query()] = None,
) -> Response:
    """As the change feed shows it; null when there is none."""

    def work(_: CancelToken) -> bytes:
        found = call.graph.entity(type, id, snapshot, branch=branch, actor=call.actor)
        return encoded({"entity": plain_row(found) if found is not None else None})

    return json_reply(await call.read(work, _read_need(branch, snapshot)))


# --- what older clients call ---------------------------------------------------------------------------------------


@router.post("/read", responses=_ROWS, deprecated=True, summary="The older name of query")
async def read(call: Call, body: OldQueryBody, _timeout: Timeout = None) -> Response:
    """As `query`."""
    now = body.now()
    return await run_read(call, now.query, now.name, now.params, now.branch, now.snapshot)


@router.post("/change", responses=replies(MutateReply), deprecated=True, summary="The older name of mutate")
async def change(call: Call, body: OldQueryBody, if_commit: IfCommit = None) -> Response:
    """As `mutate`."""
    return await run_mutation(call, body.query_source, body.query_name, body.params, body.branch, if_commit)


@router.post("/ingest", responses=replies(LoadReply), deprecated=True, summary="The older name of load")
async def ingest(call: Call, body: LoadBody, if_commit: IfCommit = None) -> Response:
    """As `load`."""
    return await load(call, body, if_commit)


# --- shared with stored queries ------------------------------------------------------------------------------------


async def run_read(
    call: GraphCall, source: str, name: str | None, params: dict[str, Any] | None, branch: str | None, at: Any
) -> Response:
    """The rows of a read, as JSON or Arrow."""
    arrow = ARROW in call.request.headers.get("accept", "")
    ask = ReadAsk(source, name, params, branch, at, call.actor, timeout=call.seconds)
    pieces, media_type = (arrow_pieces, ARROW) if arrow else (json_pieces, JSON)
    return await call.rows(ask, pieces, media_type, _read_need(branch, at))


async def run_mutation(
    call: GraphCall,
    source: str,
    name: str | None,
    params: dict[str, Any] | None,
    branch: str | None,
    if_commit: str | None,
) -> Response:
    """What a mutation did."""

    def work() -> bytes:
        done = call.graph.mutate(source, name, params, branch=branch, actor=call.actor, if_commit=if_commit)
        return encoded(done.to_json())

    return json_reply(await call.write(work, Need(Action.CHANGE, branch or "main")))


async def _load(
    call: GraphCall, data: Any, mode: Any, branch: str | None, from_: str | None, if_commit: str | None
) -> Response:
    return json_reply(
        await call.write(
            lambda: _loaded(call, data, mode, branch, from_, if_commit), Need(Action.CHANGE, branch or "main")
        )
    )


def _loaded(
    call: GraphCall,
    data: Any,
    mode: Any,
    branch: str | None,
    from_: str | None,
    if_commit: str | None,
    batch: tuple[str, int] | None = None,
    **rows: Any,
) -> bytes:
    done = call.graph.load(
        data, mode=mode, branch=branch, from_=from_, actor=call.actor, if_commit=if_commit, batch=batch, **rows
    )
    return encoded({**done.to_json(), "uri": call.served.settings.id})


def _rows(lines: Iterable[bytes]) -> Iterator[Any]:
    """Plain rows, one JSON object to a line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise BadRequest(f"line {number} is not JSON: {error}") from None


def _read_need(branch: str | None, at: Any, action: Action = Action.READ) -> Need:
    """What a read needs. Which branch an older state is of is for the engine to find out, and to ask about."""
    return Need(action, None if at is not None else branch or "main")
