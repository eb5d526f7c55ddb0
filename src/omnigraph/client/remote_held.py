"""What every call to a graph behind a server starts from: the connection, and the branch that a handle is bound to."""

from __future__ import annotations

from omnigraph.client.transport import Transport


class RemoteHeld:
    """A connection to one graph of a server, and a branch."""

    def __init__(self, transport: Transport, branch: str = "main") -> None:
        self._transport = transport
        self._branch = branch

    @property
    def uri(self) -> str:
        """Where the graph is."""
        name = f"/graphs/{self._transport.graph}" if self._transport.graph else ""
        return self._transport.url + name

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self._branch

    def _place(self, branch: str | None) -> str:
        """The branch that a call is about: the handle's own when it names none."""
        return self._branch if branch is None else branch
