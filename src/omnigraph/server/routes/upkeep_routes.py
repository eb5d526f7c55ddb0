"""Routes for operators: tags, optimize, indexes, cleanup, verify, recoveries."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.policy.actions import Action
from omnigraph.server.error_bodies import encoded
from omnigraph.server.routes.graph_calls import Call, Need, graph_router, json_reply, replies
from omnigraph.server.routes.reply_shapes import DeletedReply
from omnigraph.server.routes.request_bodies import CleanupBody, IndicesBody, OptimizeBody, TagBody, VerifyBody
from omnigraph.server.routes.upkeep_shapes import (
    CleanupReply,
    MaintenanceReply,
    RecoveriesReply,
    Tag,
    TagsReply,
    VerifyReply,
)

router = graph_router()

_ADMIN = Need(Action.ADMIN)


@router.get("/tags", responses=replies(TagsReply), summary="List the tags")
async def list_tags(call: Call) -> Response:
    """Names for commits that `cleanup` respects."""

    def work(_: object) -> bytes:
        return encoded({"tags": [tag.to_json() for tag in call.graph.tags.list(actor=call.actor)]})

    return json_reply(await call.read(work, Need(Action.READ, "main")))


@router.post("/tags", responses=replies(Tag), summary="Name a commit")
async def create_tag(call: Call, body: TagBody) -> Response:
    """A name stands for one commit; delete it to use it again."""

    def work() -> bytes:
        return encoded(call.graph.tags.create(body.name, body.target, actor=call.actor).to_json())

    return json_reply(await call.write(work, _ADMIN))


@router.delete("/tags/{name:path}", responses=replies(DeletedReply), summary="Remove a tag")
async def delete_tag(call: Call, name: str) -> Response:
    """The commit stays until `cleanup`."""

    def work() -> bytes:
        call.graph.tags.delete(name, actor=call.actor)
        return encoded({"name": name, "deleted": True})

    return json_reply(await call.write(work, _ADMIN))


@router.post("/optimize", responses=replies(MaintenanceReply), summary="Compact tables and update indexes")
async def optimize(call: Call, body: OptimizeBody) -> Response:
    """In one commit that changes no data."""

    def work() -> bytes:
        return encoded(call.graph.optimize(body.branch, tables=body.tables, actor=call.actor).to_json())

    return json_reply(await call.write(work, _ADMIN))


@router.post("/ensure-indices", responses=replies(MaintenanceReply), summary="Build the declared indexes")
async def ensure_indices(call: Call, body: IndicesBody) -> Response:
    """In one commit that changes no data."""

    def work() -> bytes:
        return encoded(call.graph.ensure_indices(body.branch, actor=call.actor).to_json())

    return json_reply(await call.write(work, _ADMIN))


@router.post("/cleanup", responses=replies(CleanupReply), summary="Remove old history")
async def cleanup(call: Call, body: CleanupBody) -> Response:
    """Only tells what would go unless it is confirmed."""

    def work() -> bytes:
        done = call.graph.cleanup(
            keep_versions=body.keep_versions,
            older_than=body.older_than,
            confirm=body.confirm,
            force=body.force,
            actor=call.actor,
        )
        return encoded(done.to_json())

    return json_reply(await call.write(work, _ADMIN))


@router.post("/verify", responses=replies(VerifyReply), summary="Read everything and check it")
async def verify(call: Call, body: VerifyBody) -> Response:
    """Changes nothing."""

    def work() -> bytes:
        return encoded(call.graph.verify(deep=body.deep, actor=call.actor).to_json())

    return json_reply(await call.write(work, _ADMIN))


@router.get("/recoveries", responses=replies(RecoveriesReply), summary="What recovery did")
async def recoveries(call: Call) -> Response:
    """One record for each unfinished write that was resolved, oldest first."""

    def work(_: object) -> bytes:
        return encoded({"recoveries": [one.to_json() for one in call.graph.recoveries(actor=call.actor)]})

    return json_reply(await call.read(work, Need(Action.READ, "main")))
