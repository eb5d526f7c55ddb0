"""Routes about stored queries: the catalog, and the call by name."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body
from starlette.responses import Response

from omnigraph.errors import BadRequest, PolicyDenied
from omnigraph.policy.actions import Action
from omnigraph.server.error_bodies import encoded
from omnigraph.server.routes.data_routes import IfCommit, Timeout, run_mutation, run_read
from omnigraph.server.routes.graph_calls import Call, GraphCall, Need, graph_router, json_reply, replies
from omnigraph.server.routes.reply_shapes import CatalogReply, MutateReply, QueryReply
from omnigraph.server.routes.request_bodies import InvokeBody
from omnigraph.stored.registry import Registry, StoredQuery
from omnigraph.stored.tool_catalog import listing

router = graph_router()


@router.get("/queries", responses=replies(CatalogReply), summary="The stored queries")
async def catalog(call: Call) -> Response:
    """What each is for, and its parameters. Those that are not exposed are not among them."""
    return json_reply(await call.read(lambda _: encoded(listing(call.served.queries)), Need(Action.READ, "main")))


@router.post("/queries/{name}", responses=replies(QueryReply | MutateReply), summary="Call a stored query")
async def invoke(
    call: Call,
    name: str,
    body: Annotated[InvokeBody | None, Body()] = None,
    if_commit: IfCommit = None,
    _timeout: Timeout = None,
) -> Response:
    """By its name. Needs `invoke_query`, and what the query does on its branch: `read` or `change`."""
    query = invoked(call, name)
    given = body or InvokeBody()
    if not query.mutates:
        return await run_read(call, query.text, query.name, given.params, given.branch, given.snapshot)
    if given.snapshot is not None:
        raise BadRequest(f"`{name}` changes data, and an older state cannot be changed; leave snapshot out")
    return await run_mutation(call, query.text, query.name, given.params, given.branch, if_commit)


def invoked(call: GraphCall, name: str) -> StoredQuery:
    """The query of that name. To whoever may not call stored queries, every name is one that is not there."""
    policy = call.served.policy
    if policy is not None:
        try:
            policy.require(call.actor, Action.INVOKE_QUERY)
        except PolicyDenied:
            return Registry().get(name)
    return call.served.queries.get(name)
