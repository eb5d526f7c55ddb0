"""Routes about the schema: show, plan, apply."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from omnigraph.policy.actions import Action
from omnigraph.read.state.control import CancelToken
from omnigraph.server.error_bodies import encoded
from omnigraph.server.routes.graph_calls import Call, Need, graph_router, json_reply, replies
from omnigraph.server.routes.reply_shapes import PlanReply, SchemaApplyReply, SchemaReply
from omnigraph.server.routes.request_bodies import SchemaBody

router = graph_router()


@router.get("/schema", responses=replies(SchemaReply), summary="The schema of a state")
async def show(
    call: Call,
    branch: Annotated[str | None, Query()] = None,
    snapshot: Annotated[str | None, Query()] = None,
) -> Response:
    """As it was accepted."""
    at = branch if snapshot is None else snapshot

    def work(_: CancelToken) -> bytes:
        state = call.graph.snapshot(at, actor=call.actor)
        source = call.graph.schema_source(state.head.graph_commit_id, actor=call.actor)
        return encoded({"schema_source": source, "schema_digest": state.schema_digest})

    return json_reply(await call.read(work, Need(Action.READ, None if at is not None else "main")))


@router.post("/schema/plan", responses=replies(PlanReply), summary="The steps to another schema")
async def plan(call: Call, body: SchemaBody) -> Response:
    """Changes nothing."""

    def work(_: CancelToken) -> bytes:
        found = call.graph.plan_schema(
            _text(body), branch=body.branch, allow_data_loss=body.allow_data_loss, actor=call.actor
        )
        return encoded(found.to_json())

    return json_reply(await call.read(work, Need(Action.READ, body.branch or "main")))


@router.post("/schema/apply", responses=replies(SchemaApplyReply), summary="Make another schema that of a branch")
async def apply(call: Call, body: SchemaBody) -> Response:
    """In one commit with the tables that change."""

    def work() -> bytes:
        done = call.graph.apply_schema(
            _text(body), branch=body.branch, allow_data_loss=body.allow_data_loss, actor=call.actor
        )
        return encoded({**done.to_json(), "uri": call.served.settings.id})

    return json_reply(await call.write(work, Need(Action.SCHEMA_APPLY, body.branch or "main")))


def _text(body: SchemaBody) -> str:
    """A schema that cannot be taken for the name of a file of this machine."""
    source = body.schema_source
    return source if "{" in source or "\n" in source else f"{source}\n"
