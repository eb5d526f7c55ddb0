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
from omnigraph.graph_groups import Group, SchemaGroup

if TYPE_CHECKING:
    from omnigraph.ledger.values import BranchRef


def connect(url: str, *, token: str | None = None, graph: str | None = None, branch: str = "main") -> RemoteGraph:
    """A graph of a server. `graph` names it where the server has several; nothing is asked of it yet."""
    return RemoteGraph(Transport(url, token, graph), branch)


class NotThroughAServer(BadRequest, AttributeError):
    """What a server does not offer."""


def _not_through_a_server(name: str) -> NotThroughAServer:
    return NotThroughAServer(
        f"{name} works on a graph that is opened where it lies, not through a server: use og.open, or the command with "
        "the graph's URI"
    )


class RemoteGraph(RemoteReads, RemoteWrites, RemoteVersions, RemoteUndoing, RemoteUpkeep):
    """A graph behind a server, bound to a branch. Safe to share between threads; close it, or use it in a `with`.

    Rows of queries come as Arrow, so they have the types that they have here. Entities and changes come as JSON.
    """

    @property
    def branches(self) -> RemoteBranches:
        """Everything about branches."""
        return RemoteBranches(self)

    @property
    def schema(self) -> SchemaGroup:
        """Everything about the schema."""
        return SchemaGroup(self)  # type: ignore[arg-type]  # it has the methods that the group names

    @property
    def maintenance(self) -> RemoteMaintenance:
        """What operators do, as far as it goes through a server."""
        return RemoteMaintenance(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # The token goes along: without it the graph could not be opened again where it arrives.
        return RemoteGraph, (self._transport, self._branch)

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
            raise _not_through_a_server(name)
        raise AttributeError(f"a RemoteGraph has no attribute {name!r}")


class RemoteMaintenance(Group):
    """`g.maintenance`."""

    def __init__(self, graph: RemoteGraph) -> None:
        self.optimize = graph.optimize
        self.ensure_indices = graph.ensure_indices
        self.cleanup = graph.cleanup
        self.verify = graph.verify
        self.recoveries = graph.recoveries

    def __getattr__(self, name: str) -> Any:
        if name in ("repair", "relocate"):
            raise _not_through_a_server(name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class RemoteBranches(Group):
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
