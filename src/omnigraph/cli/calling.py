"""How a command on a graph is declared: its own options, and after them those that all such commands share.

A command is a function whose first parameter is the `Call`; which shared options it takes is said where it is
registered, so no command lists them and none can differ.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import typer

from omnigraph.cli.options import (
    Actor,
    Branch,
    GraphId,
    Json,
    OtherGraphId,
    Policy,
    Profile,
    Quiet,
    Server,
    Store,
    Uri,
    Yes,
    confirm_destructive,
    graph_uri,
)
from omnigraph.cli.show.output import Output
from omnigraph.cli.user_config import RemoteTarget, Shape, read_user_config
from omnigraph.errors import BadRequest

Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Call:
    """What a command on a graph is given: which graph and branch, for whom, and where to write."""

    named: str | None
    branch: str
    actor: str | None
    yes: bool
    out: Output
    policy: Path | None = None
    server: RemoteTarget | None = None
    shape: Shape = "table"
    """How rows are written where no flag says it."""

    @property
    def uri(self) -> str:
        """The graph, or where a server has it; an error when none was named."""
        if self.server is not None:
            return self.server.shown
        return graph_uri(self.named, None)

    @property
    def store_uri(self) -> str:
        """The graph, for a command that works on the store itself."""
        if self.server is not None:
            raise BadRequest("this command works on a store, not through a server: name the graph by its URI")
        return self.uri

    def read(self) -> Any:
        """The graph, opened so that not one byte can change."""
        return self.open(read_only=True)

    def open(self, *, read_only: bool = False) -> Any:
        """The graph, opened for writing unless it is not to be."""
        import omnigraph as og

        if self.server is not None:
            return self._connected("main")
        return og.open(self.uri, actor=self.actor, read_only=read_only, policy=self.policy)

    def _connected(self, branch: str) -> Any:
        """The graph behind the server. It is whoever the token stands for."""
        import omnigraph as og

        assert self.server is not None
        if self.actor is not None:
            raise BadRequest("--as is for a store that is opened here: a server takes the actor from the token")
        return og.connect(self.server.url, token=self.server.token(), graph=self.server.graph, branch=branch)

    def read_branch(self) -> Any:
        """The graph bound to the named branch, opened so that not one byte can change."""
        import omnigraph as og

        if self.server is not None:
            return self._connected(self.branch)
        return og.open(self.uri, read_only=True, branch=self.branch, actor=self.actor, policy=self.policy)

    def require_admin(self) -> None:
        """Refuse an actor who may not administrate, for a command that opens no graph."""
        if self.policy is not None:
            from omnigraph.policy.actions import Action
            from omnigraph.policy.decide_access import read_policy

            read_policy(self.policy).require(self.actor, Action.ADMIN)

    def confirm(self, what: str) -> None:
        """Ask before something is destroyed on a store that is not local."""
        confirm_destructive(self.uri, self.yes, what)


_SHARED: dict[str, tuple[Any, Any]] = {
    "uri": (Uri, None),
    "store": (Store, None),
    "server": (Server, None),
    "graph": (GraphId, None),
    "profile": (Profile, None),
    "branch": (Branch, "main"),
    "actor": (Actor, None),
    "policy": (Policy, None),
    "json": (Json, False),
    "quiet": (Quiet, False),
    "yes": (Yes, False),
}
"""The shared options with their defaults, in the order in which help shows them."""


def graph_command(
    group: typer.Typer,
    name: str,
    *,
    branch: bool = False,
    writes: bool = False,
    destroys: bool = False,
    hidden: bool = False,
    draws: bool = False,
) -> Callable[[Command], Command]:
    """Declare a command on a graph.

    `branch`: it works on one branch. `writes`: it echoes what it will touch. `destroys`: it may ask first. `draws`:
    its own `--graph` is a picture.
    """
    taken = ["uri", "store", "json", "actor", "policy", "server", "graph", "profile"]
    taken += ["branch"] if branch else []
    taken += ["quiet"] if writes else []
    taken += ["yes"] if destroys else []
    shared = {option: found for option, found in _SHARED.items() if option in taken}
    if draws:
        shared["graph"] = (OtherGraphId, None)

    def declare(function: Command) -> Command:
        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [parameter.replace(kind=kind, annotation=hints[parameter.name]) for parameter in own]
        parameters += [
            inspect.Parameter(option, kind, default=default, annotation=annotation)
            for option, (annotation, default) in shared.items()
        ]

        parameters.append(inspect.Parameter("context", kind, annotation=typer.Context))

        def command(context: typer.Context, **given: Any) -> None:
            chosen = {option: given.pop(option) for option in shared}
            function(_call(chosen, _flags(context, shared)), **given)

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by typer
        group.command(name, hidden=hidden)(command)
        return function

    return declare


def _flags(context: typer.Context, options: Iterable[str]) -> set[str]:
    """The options that stand on the line of the command; the others come from the environment, or are not given."""
    sources = {option: context.get_parameter_source(option) for option in options}
    return {option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _call(chosen: dict[str, Any], flags: set[str]) -> Call:
    config = read_user_config()
    named, server = _named(chosen, flags)
    target = config.target(named, server, chosen["graph"], chosen["profile"])
    if isinstance(target, str):
        named = target
    shape = config.shape(chosen["profile"])
    remote = isinstance(target, RemoteTarget)
    if remote and chosen["policy"] is not None and "policy" in flags:
        raise BadRequest("--policy is for a store that is opened here: a server has a policy of its own")
    given = chosen["actor"] if "actor" in flags else None
    return Call(
        named=named,
        branch=chosen.get("branch", "main"),
        actor=given if remote else config.acting(chosen["actor"], chosen["profile"]),
        server=target if isinstance(target, RemoteTarget) else None,
        policy=chosen["policy"],
        yes=chosen.get("yes", False),
        out=Output(json=chosen["json"] or shape == "json", quiet=chosen.get("quiet", False)),
        shape="json" if chosen["json"] else shape,
    )


def _named(chosen: dict[str, Any], flags: set[str]) -> tuple[str | None, str | None]:
    """The store and the server that a command names: by what stands on its line, and only without that by the
    environment, which may name one of them for all commands.
    """
    uri, store, server = chosen["uri"], chosen["store"], chosen["server"]
    flag = store if "store" in flags else None
    if uri and flag and uri != flag:
        raise BadRequest(f"{uri} is a graph and --store names another, {flag}: name one of the two")
    if uri or flag:
        return uri or flag, server if "server" in flags else None
    if server is not None and "server" in flags:
        return None, server
    if store is not None and server is not None:
        raise BadRequest(
            f"OMNIGRAPH_STORE names {store} and OMNIGRAPH_SERVER {server}: say which by --store or --server"
        )
    return store, server
