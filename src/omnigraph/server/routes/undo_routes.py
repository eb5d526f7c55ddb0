"""Routes that take things back: revert, restore, cherry-pick."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from starlette.responses import Response

from omnigraph.merge.undo.undo_result import UndoResult
from omnigraph.policy.actions import Action
from omnigraph.read.state.control import CancelToken
from omnigraph.server.error_bodies import encoded
from omnigraph.server.routes.change_bytes import changes_document
from omnigraph.server.routes.graph_calls import JSON, Call, GraphCall, Need, graph_router, json_reply, replies
from omnigraph.server.routes.request_bodies import CherryPickBody, RestoreBody, RevertBody, by_row
from omnigraph.server.routes.upkeep_shapes import UndoReply

router = graph_router()


@router.post("/revert", responses=replies(UndoReply), summary="Take back what a commit changed")
async def revert(call: Call, body: RevertBody) -> Response:
    """One new commit, or every conflict and no effect."""

    def work() -> UndoResult:
        return call.graph.revert(
            body.commit,
            branch=body.branch,
            strategy=body.strategy,
            resolutions=by_row(body.resolutions),
            dry_run=body.dry_run,
            granularity=body.granularity,
            actor=call.actor,
        )

    return await _undo(call, work, body.branch, dry_run=body.dry_run)


@router.post("/restore", responses=replies(UndoReply), summary="Go back to an older state")
async def restore(call: Call, body: RestoreBody) -> Response:
    """One new commit, without conflicts."""

    def work() -> UndoResult:
        return call.graph.restore(body.to, branch=body.branch, dry_run=body.dry_run, actor=call.actor)

    return await _undo(call, work, body.branch, dry_run=body.dry_run)


@router.post("/cherry-pick", responses=replies(UndoReply), summary="Bring what a commit changed to a branch")
async def cherry_pick(call: Call, body: CherryPickBody) -> Response:
    """One new commit, or every conflict and no effect."""

    def work() -> UndoResult:
        return call.graph.cherry_pick(
            body.commit,
            into=body.into,
            strategy=body.strategy,
            resolutions=by_row(body.resolutions),
            dry_run=body.dry_run,
            granularity=body.granularity,
            actor=call.actor,
        )

    return await _undo(call, work, body.into, dry_run=body.dry_run)


async def _undo(call: GraphCall, work: Callable[[], UndoResult], branch: str | None, *, dry_run: bool) -> Response:
    need = Need(Action.CHANGE, branch or "main")
    if not dry_run:
        return json_reply(await call.write(lambda: encoded(work().to_json()), need))

    def preview(_: CancelToken) -> Iterator[bytes]:
        result: Any = work()
        return changes_document(result.to_json(), result.tables, result.changes)

    return await call.stream(preview, JSON, need)
