"""Routes about the server itself: health, readiness, graphs, metrics, reload."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from omnigraph.server.metrics import CONTENT_TYPE
from omnigraph.server.routes.graph_calls import Responses, ServerState, json_reply, replies
from omnigraph.server.routes.reply_shapes import ErrorReply, GraphsReply, HealthReply, ReloadReply
from omnigraph.server.served import Quarantined

router = APIRouter(responses={"default": {"model": ErrorReply}})

_METRICS: Responses = {
    200: {"description": "Metrics for Prometheus.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", responses=replies(HealthReply), summary="Whether the server runs")
async def healthz() -> Response:
    """For everybody."""
    return json_reply({"status": "ok"})


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz",
    responses={**replies(HealthReply), 503: {"model": HealthReply, "description": "not ready"}},
    summary="Whether every graph is served",
)
async def readyz(request: Request) -> Response:
    """503 while the server starts or stops, or when a graph cannot be served."""
    state: ServerState = request.app.state.omnigraph
    ready = state.graphs.ready and not state.stopping
    return json_reply({"status": "ready" if ready else "not ready"}, 200 if ready else 503)


@router.get("/graphs", responses=replies(GraphsReply), summary="The graphs of this server")
async def graphs(request: Request) -> Response:
    """With what keeps one of them from being served. Needs `graph_list`."""
    state: ServerState = request.app.state.omnigraph
    found = []
    for graph in state.graphs.listed(request.scope["omnigraph"].actor):
        if isinstance(graph, Quarantined):
            found.append({"id": graph.settings.id, "status": "quarantined", "reason": graph.reason})
        else:
            found.append({"id": graph.settings.id, "status": "served"})
    return json_reply({"graphs": found, "revision": state.graphs.revision})


@router.get("/metrics", responses=_METRICS, summary="Metrics")
async def metrics(request: Request) -> Response:
    """For whoever has a token."""
    state: ServerState = request.app.state.omnigraph
    text = await state.threads.write(state.metrics.text)
    return Response(text, media_type=CONTENT_TYPE)


@router.post("/reload", responses=replies(ReloadReply), summary="Read policies and stored queries again")
async def reload(request: Request) -> Response:
    """And, of a cluster, take its newest applied revision. Without dropping a request.

    What is broken changes nothing, and is told. Needs `admin` on every graph, or by the policy of the cluster.
    """
    state: ServerState = request.app.state.omnigraph
    state.graphs.require_admin(request.scope["omnigraph"].actor)
    revision = await state.threads.write(state.graphs.reload)
    return json_reply({"reloaded": True, "revision": revision})
