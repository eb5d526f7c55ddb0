"""Routes about branches: list, create, delete, merge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from omnigraph.errors import NotFound
from omnigraph.policy.actions import Action
from omnigraph.read.state.control import CancelToken
from omnigraph.server.error_bodies import encoded
from omnigraph.server.routes.change_bytes import changes_document
from omnigraph.server.routes.graph_calls import JSON, Call, Need, graph_router, json_reply, replies
from omnigraph.server.routes.reply_shapes import Branch, BranchesReply, DeletedReply, MergeReply
from omnigraph.server.routes.request_bodies import BranchBody, MergeBody, by_row

router = graph_router()


@router.get("/branches", responses=replies(BranchesReply), summary="List the branches")
async def list_branches(call: Call) -> Response:
    """The branches that the caller may read, with their heads."""

    def work(_: CancelToken) -> bytes:
        found = []
        for ref in call.graph.branches.list(actor=call.actor):
            # One that is deleted meanwhile is no branch any more.
            with suppress(NotFound):
                head = call.graph.head(ref.name, actor=call.actor).graph_commit_id
                found.append({**ref.to_json(), "head": head})
        return encoded({"branches": found})

    return json_reply(await call.read(work))


@router.post("/branches", responses=replies(Branch), summary="Make a branch")
async def create_branch(call: Call, body: BranchBody) -> Response:
    """It costs nothing: no table is copied."""

    def work() -> bytes:
        return encoded(call.graph.branch_create(body.name, body.from_, actor=call.actor).to_json())

    return json_reply(await call.write(work, Need(Action.BRANCH_CREATE, body.name)))


@router.post("/branches/merge", responses=replies(MergeReply), summary="Merge a branch into another")
async def merge(call: Call, body: MergeBody) -> Response:
    """One commit, or every conflict and no effect. A dry run shows the changes and writes nothing."""
    needs = [Need(Action.BRANCH_MERGE, body.target)]
    needs += [Need(Action.BRANCH_DELETE, body.source)] if body.delete_branch else []

    def merged() -> Any:
        return call.graph.merge(
            body.source,
            body.target,
            strategy=body.strategy,
            resolutions=by_row(body.resolutions),
            dry_run=body.dry_run,
            delete_source=body.delete_branch,
            granularity=body.granularity,
            actor=call.actor,
        )

    if not body.dry_run:
        return json_reply(await call.write(lambda: encoded(merged().to_json()), *needs))

    def preview(_: CancelToken) -> Iterator[bytes]:
        result = merged()
        return changes_document(result.to_json(), result.tables, result.changes)

    return await call.stream(preview, JSON, *needs)


@router.delete("/branches/{name:path}", responses=replies(DeletedReply), summary="Delete a branch")
async def delete_branch(
    call: Call,
    name: str,
    force: Annotated[bool, Query(description="Also when other branches were made from it; they stay.")] = False,
) -> Response:
    """Its name is free at once."""

    def work() -> bytes:
        call.graph.branch_delete(name, force=force, actor=call.actor)
        return encoded({"name": name, "deleted": True})

    return json_reply(await call.write(work, Need(Action.BRANCH_DELETE, name)))
