"""The async twin of the package: `await og.aio.open(…)`, then every method of a Graph can be awaited.

    g = await og.aio.open("graph.omni")
    result = await g.query("query q() { match { $p: Person } return { $p.name } }")

The work is done in threads: Lance, DuckDB and Arrow let go of the interpreter while they work, so the event loop goes
on. A call that is cancelled stops to wait. A query of a graph that is opened here stops with it; what else was begun
comes to its end in its thread, and a write is still atomic.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime
from functools import partial, wraps
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from omnigraph import graph as sync
from omnigraph.choices import Target
from omnigraph.graph import Graph

if TYPE_CHECKING:
    from omnigraph.client.remote_graph import RemoteGraph
    from omnigraph.client.wire_values import RemotePage
    from omnigraph.merge.feed import Page
    from omnigraph.policy.bundle import Bundle
    from omnigraph.policy.decide_access import Policy

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


async def init(uri: str | PathLike[str], *, schema: str | PathLike[str], actor: str | None = None) -> AsyncGraph:
    """Make a graph, as `og.init` does."""
    return AsyncGraph(await asyncio.to_thread(sync.init, uri, schema=schema, actor=actor))


async def open(  # noqa: A001 - `og.aio.open` is how it reads
    uri: str | PathLike[str],
    *,
    read_only: bool = False,
    branch: str = "main",
    actor: str | None = None,
    combine: bool = False,
    policy: Policy | Bundle | str | PathLike[str] | None = None,
) -> AsyncGraph:
    """Open a graph, as `og.open` does."""
    options: dict[str, Any] = {"read_only": read_only, "branch": branch, "actor": actor}
    return AsyncGraph(await asyncio.to_thread(sync.open, uri, combine=combine, policy=policy, **options))


async def connect(
    url: str, *, token: str | None = None, graph: str | None = None, branch: str = "main"
) -> AsyncRemoteGraph:
    """A graph of a server, as `og.connect` gives it."""
    from omnigraph.client.remote_graph import connect as connect_now

    return AsyncRemoteGraph(connect_now(url, token=token, graph=graph, branch=branch))


def _awaited(method: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """The same method, run in a thread."""

    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, *args, **kwargs)

    return call


def _awaited_while_wanted(method: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """The same query, run in a thread, which gets free when nobody waits for the answer any more."""
    from omnigraph.read.state.control import CancelToken

    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        token = CancelToken()
        own = {} if kwargs.get("cancel") is not None else {"cancel": token}
        try:
            return await asyncio.to_thread(partial(method, *args, **kwargs), **own)
        except asyncio.CancelledError:
            token.cancel()
            raise

    return call


class _ClosedAtTheEnd:
    """For `async with`."""

    close: Callable[[], Awaitable[None]]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncGraph(_ClosedAtTheEnd):
    """A Graph whose methods are awaited; `graph` is the Graph itself. Use it with `async with`, or `await close()`.

    What comes back is what the Graph gives: a Diff or a page of changes reads as it is iterated, so iterate a large one
    in a thread, or list it with `await asyncio.to_thread(list, diff)`.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.uri = graph.uri
        self.query = _awaited_while_wanted(graph.query)
        self.explain = _awaited(graph.explain)
        self.snapshot = _awaited(graph.snapshot)
        self.entity = _awaited(graph.entity)
        self.read_blob = _awaited(graph.read_blob)
        self.open_blob = _awaited(graph.open_blob)
        self.export = _awaited(graph.export)
        self.to_spark = _awaited(graph.to_spark)
        self.mutate = _awaited(graph.mutate)
        self.load = _awaited(graph.load)
        self.embed = _awaited(graph.embed)
        self.load_stream = _awaited(graph.load_stream)
        self.catalog = _awaited(graph.catalog)
        self.schema_source = _awaited(graph.schema_source)
        self.plan_schema = _awaited(graph.plan_schema)
        self.apply_schema = _awaited(graph.apply_schema)
        self.head = _awaited(graph.head)
        self.commit = _awaited(graph.commit)
        self.commit_changes = _awaited(graph.commit_changes)
        self.log = _awaited(graph.log)
        self.recoveries = _awaited(graph.recoveries)
        self.refresh = _awaited(graph.refresh)
        self.branch_list = _awaited(graph.branch_list)
        self.branch_create = _awaited(graph.branch_create)
        self.branch_delete = _awaited(graph.branch_delete)
        self.sync_branch = _awaited(graph.sync_branch)
        self.merge = _awaited(graph.merge)
        self.revert = _awaited(graph.revert)
        self.restore = _awaited(graph.restore)
        self.cherry_pick = _awaited(graph.cherry_pick)
        self.set_granularity = _awaited(graph.set_granularity)
        self.diff = _awaited(graph.diff)
        self.changes = _awaited(graph.changes)
        self.ensure_indices = _awaited(graph.ensure_indices)
        self.relocate = _awaited(graph.relocate)
        self.optimize = _awaited(graph.optimize)
        self.repair = _awaited(graph.repair)
        self.cleanup = _awaited(graph.cleanup)
        self.verify = _awaited(graph.verify)
        self.close = _awaited(graph.close)

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self.graph.branch_name

    @property
    def tags(self) -> AsyncTags:
        """Names for commits: `create`, `list`, `delete`."""
        return AsyncTags(self.graph)

    def under(self, policy: Policy | None) -> AsyncGraph:
        """Another handle on the same opened graph, under another policy, as `Graph.under` gives it."""
        return AsyncGraph(self.graph.under(policy))

    @asynccontextmanager
    async def branch(
        self, name: str, from_: Target = None, *, merge: bool = False, actor: str | None = None
    ) -> AsyncIterator[AsyncGraph]:
        """A handle bound to a branch, as `Graph.branch` gives it."""
        async with _entered(self.graph.branch(name, from_, merge=merge, actor=actor)) as bound:
            yield AsyncGraph(bound)

    def __repr__(self) -> str:
        return repr(self.graph).replace("<Graph", "<AsyncGraph", 1)

    async def export_lines(self, **options: Any) -> AsyncIterator[bytes]:
        """What `export` writes as JSON lines, piece by piece. Each piece is made off the event loop."""
        async for piece in _pulled(await asyncio.to_thread(self.graph.export_lines, **options)):
            yield piece

    async def follow(
        self,
        branch: str | None = None,
        since: str | datetime = "now",
        *,
        limit: int = 100,
        every: float = 0.5,
        timeout: float | None = None,
        **filters: Any,
    ) -> AsyncIterator[Page]:
        """The change feed as it goes on, as `Graph.follow` gives it: `async for page in g.follow()`."""
        found = await self.changes(branch, since, limit=limit, **filters)
        waited = 0.0
        while timeout is None or waited < timeout or found.blocks:
            if found.blocks:
                waited = 0.0
                yield found
            else:
                await asyncio.sleep(every)
                waited += every
            found = await self.changes(branch, found.cursor, limit=limit, **filters)


class AsyncRemoteGraph(_ClosedAtTheEnd):
    """A RemoteGraph whose methods are awaited; `graph` is the RemoteGraph itself."""

    def __init__(self, graph: RemoteGraph) -> None:
        self.graph = graph
        self.uri = graph.uri
        self.query = _awaited(graph.query)
        self.explain = _awaited(graph.explain)
        self.invoke = _awaited(graph.invoke)
        self.stored_queries = _awaited(graph.stored_queries)
        self.snapshot = _awaited(graph.snapshot)
        self.entity = _awaited(graph.entity)
        self.read_blob = _awaited(graph.read_blob)
        self.open_blob = _awaited(graph.open_blob)
        self.export = _awaited(graph.export)
        self.mutate = _awaited(graph.mutate)
        self.load = _awaited(graph.load)
        self.embed = _awaited(graph.embed)
        self.catalog = _awaited(graph.catalog)
        self.schema_source = _awaited(graph.schema_source)
        self.plan_schema = _awaited(graph.plan_schema)
        self.apply_schema = _awaited(graph.apply_schema)
        self.head = _awaited(graph.head)
        self.commit = _awaited(graph.commit)
        self.commit_changes = _awaited(graph.commit_changes)
        self.log = _awaited(graph.log)
        self.branch_list = _awaited(graph.branch_list)
        self.branch_create = _awaited(graph.branch_create)
        self.branch_delete = _awaited(graph.branch_delete)
        self.sync_branch = _awaited(graph.sync_branch)
        self.merge = _awaited(graph.merge)
        self.revert = _awaited(graph.revert)
        self.restore = _awaited(graph.restore)
        self.cherry_pick = _awaited(graph.cherry_pick)
        self.ensure_indices = _awaited(graph.ensure_indices)
        self.optimize = _awaited(graph.optimize)
        self.cleanup = _awaited(graph.cleanup)
        self.verify = _awaited(graph.verify)
        self.recoveries = _awaited(graph.recoveries)
        self.diff = _awaited(graph.diff)
        self.changes = _awaited(graph.changes)
        self.close = _awaited(graph.close)

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self.graph.branch_name

    @property
    def tags(self) -> AsyncTags:
        """Names for commits: `create`, `list`, `delete`."""
        return AsyncTags(self.graph)

    @asynccontextmanager
    async def branch(self, name: str, from_: Target = None, *, merge: bool = False) -> AsyncIterator[AsyncRemoteGraph]:
        """A handle bound to a branch, as `RemoteGraph.branch` gives it."""
        async with _entered(self.graph.branch(name, from_, merge=merge)) as bound:
            yield AsyncRemoteGraph(bound)

    async def export_lines(self, **options: Any) -> AsyncIterator[bytes]:
        """What `export` writes, line by line, as it comes."""
        async for line in _pulled(self.graph.export_lines(**options)):
            yield line

    async def follow(
        self, branch: str | None = None, since: str | datetime = "now", **options: Any
    ) -> AsyncIterator[RemotePage]:
        """The change feed as it goes on, as `RemoteGraph.follow` gives it."""
        async for page in _pulled(await asyncio.to_thread(self.graph.follow, branch, since, **options)):
            yield page


class AsyncTags:
    """The tags of a graph, awaited."""

    def __init__(self, graph: Graph | RemoteGraph) -> None:
        self.create = _awaited(graph.tags.create)
        self.list = _awaited(graph.tags.list)
        self.delete = _awaited(graph.tags.delete)


@asynccontextmanager
async def _entered(block: AbstractContextManager[T]) -> AsyncIterator[T]:
    """A block whose start and end are waited for off the event loop."""
    bound = await asyncio.to_thread(block.__enter__)
    try:
        yield bound
    except BaseException as error:
        if not await asyncio.to_thread(block.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await asyncio.to_thread(block.__exit__, None, None, None)


async def _pulled(pieces: Iterator[T]) -> AsyncIterator[T]:
    """What an iterator that blocks gives, each piece made off the event loop."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece
