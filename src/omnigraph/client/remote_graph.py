"""A graph behind a server, with the methods of one that is opened here. The actor is whoever the token stands for."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.client.remote_reads import RemoteReads
from omnigraph.client.remote_undoing import RemoteUndoing
from omnigraph.client.remote_upkeep import RemoteUpkeep
from omnigraph.client.remote_versions import RemoteVersions
from omnigraph.client.remote_writes import RemoteWrites
from omnigraph.client.transport import Transport
from omnigraph.errors import BadRequest
from omnigraph.graph import Graph

if TYPE_CHECKING:
    from omnigraph.ledger.values import BranchRef


def connect(url: str, *, token: str | None = None, graph: str | None = None, branch: str = "main") -> RemoteGraph:
    """A graph of a server. `graph` names it where the server has several; nothing is asked of it yet."""
    return RemoteGraph(Transport(url, token, graph), branch)


class NotThroughAServer(BadRequest, AttributeError):
    """What a server does not offer."""


class RemoteGraph(RemoteReads, RemoteWrites, RemoteVersions, RemoteUndoing, RemoteUpkeep):
    """A graph behind a server, bound to a branch. Safe to share between threads; close it, or use it in a `with`.

    Rows of queries come as Arrow, so they have the types that they have here. Entities and changes come as JSON.
    """

    @property
    def branches(self) -> RemoteBranches:
        """Everything about branches."""
        return RemoteBranches(self)

    def __repr__(self) -> str:
        return f"<RemoteGraph {self.uri}, branch {self._branch}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(Graph, name):
            raise NotThroughAServer(
                f"{name} works on a graph that is opened where it lies, not through a server: use og.open, or the "
                "command with the graph's URI"
            )
        raise AttributeError(f"a RemoteGraph has no attribute {name!r}")


class RemoteBranches:
    """`g.branches`."""

    def __init__(self, graph: RemoteGraph) -> None:
        self._graph = graph
        self.create = graph.branch_create
        self.delete = graph.branch_delete
        self.merge = graph.merge
        self.diff = graph.diff
        self.sync = graph.sync_branch
        self.revert = graph.revert
        self.restore = graph.restore
        self.cherry_pick = graph.cherry_pick

    def list(self) -> list[BranchRef]:
        """The branches that may be read, sorted by name."""
        from omnigraph.client.wire_values import branch

        return [branch(found) for found in self._graph._transport.get("/branches")["branches"]]
