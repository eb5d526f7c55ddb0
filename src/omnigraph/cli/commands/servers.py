"""Commands about servers and about the user: login, logout, profile, config, graphs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer

from omnigraph.cli.options import Actor, GraphId, Json, Policy, Profile, Server, Store
from omnigraph.cli.show.output import Output
from omnigraph.cli.user_config import (
    OUTPUT_VARIABLE,
    Shape,
    UserConfig,
    folder,
    read_credentials,
    read_user_config,
    token_variable,
    write_credentials,
    write_user_config,
)
from omnigraph.errors import BadRequest, NotFound

profile = typer.Typer(help="Name what you often work on: a server and a graph of it, or a store.", no_args_is_help=True)
config = typer.Typer(help="Show the configuration of this user.", no_args_is_help=True)
graphs = typer.Typer(help="List the graphs of a server.", no_args_is_help=True)

Value = tuple[str, str | None, str]
"""A name, its value, and where that comes from."""

_OF_A_PROFILE = ("server", "graph", "store", "cluster", "actor", "output")

Name = Annotated[str, typer.Argument(help="The server, by a name of your choice.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command("login")(login)
    app.command("logout")(logout)
    app.add_typer(profile, name="profile")
    app.add_typer(config, name="config")
    app.add_typer(graphs, name="graphs")


def login(
    name: Name,
    url: Annotated[str | None, typer.Option("--url", help="Its URL, the first time.")] = None,
    graph: Annotated[str | None, typer.Option("--graph", help="The graph of it that is meant by default.")] = None,
    token_stdin: Annotated[bool, typer.Option("--token-stdin", help="Read the token from standard input.")] = False,
) -> None:
    """Keep the token for a server, in a file that only you can read.

    Example: omnigraph login work --url https://graphs.example.com
    """
    from omnigraph.client.transport import bearer, checked_address

    known = read_user_config()
    if url is None and name not in known.servers:
        raise BadRequest(f"`{name}` is new: say where it is with --url")
    if url is not None:
        checked_address(url)
    if token_stdin or not sys.stdin.isatty():
        token = sys.stdin.readline().strip()
    else:
        token = typer.prompt("token", hide_input=True).strip()
    if not token:
        raise BadRequest("the token is empty")
    bearer(token)  # one that cannot be sent is told now
    server = {**known.servers.get(name, {}), **({"url": url} if url else {}), **({"graph": graph} if graph else {})}
    write_user_config(replace(known, servers={**known.servers, name: server}))
    write_credentials({**read_credentials(), name: token})
    Output().say(f"kept the token for {name} ({server['url']})")


def logout(name: Name) -> None:
    """Forget the token for a server."""
    tokens = read_credentials()
    if name not in tokens:
        raise NotFound(f"there is no token for `{name}`")
    write_credentials({key: token for key, token in tokens.items() if key != name})
    Output().say(f"forgot the token for {name}")


@profile.command("set")
def set_profile(
    name: Annotated[str, typer.Argument(help="The profile.")],
    server: Annotated[str | None, typer.Option("--server", help="A server of the configuration.")] = None,
    graph: Annotated[str | None, typer.Option("--graph", help="A graph of the server.")] = None,
    store: Annotated[str | None, typer.Option("--store", help="A graph by its URI, instead of a server.")] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="A cluster of the configuration, or its folder.")
    ] = None,
    actor: Annotated[str | None, typer.Option("--as", help="Who asks, on a store that is opened here.")] = None,
    output: Annotated[Shape | None, typer.Option("--output", help="How rows are written.")] = None,
    default: Annotated[bool, typer.Option("--default", help="Use it where nothing else is named.")] = False,
) -> None:
    """Make or replace a profile."""
    if (server is not None and store is not None) or not (server or store or cluster):
        raise BadRequest("a profile is about a server (--server) or a store (--store), a cluster (--cluster) or both")
    known = read_user_config()
    if server is not None:
        known.remote(server)
    given = {"server": server, "graph": graph, "store": store, "cluster": cluster, "actor": actor, "output": output}
    made = {key: value for key, value in given.items() if value}
    chosen = name if default else known.profile
    write_user_config(replace(known, profiles={**known.profiles, name: made}, profile=chosen))
    Output().say(f"profile {name} is set{', and the default' if default else ''}")


@profile.command("list")
def list_profiles(json: Json = False) -> None:
    """List the profiles."""
    known = read_user_config()
    out = Output(json=json)
    if json:
        out.document({"profiles": known.profiles, "default": known.profile})
        return
    rows = [
        (name, *(found.get(key) for key in _OF_A_PROFILE), name == known.profile)
        for name, found in sorted(known.profiles.items())
    ]
    out.table(("profile", *_OF_A_PROFILE, "default"), rows, empty="no profiles")


@profile.command("delete")
def delete_profile(name: Annotated[str, typer.Argument(help="The profile.")]) -> None:
    """Remove a profile."""
    known = read_user_config()
    if name not in known.profiles:
        raise NotFound(f"the configuration has no profile `{name}`")
    rest = {key: found for key, found in known.profiles.items() if key != name}
    write_user_config(replace(known, profiles=rest, profile=None if known.profile == name else known.profile))
    Output().say(f"deleted profile {name}")


@config.command("show")
def show(
    context: typer.Context,
    store: Store = None,
    server: Server = None,
    graph: GraphId = None,
    profile: Profile = None,
    actor: Actor = None,
    policy: Policy = None,
    json: Json = False,
) -> None:
    """Show every value and where it comes from: a flag, the environment, the profile, the file, the default.

    Takes the flags of a command, and shows what they would mean to it. Tokens are not shown, only whether there is one.
    """
    known = read_user_config()
    given = {"store": store, "server": server, "graph": graph, "profile": profile, "actor": actor, "policy": policy}
    values = [*_chosen(known, context, given), *_kept(known)]
    out = Output(json=json)
    if json:
        out.document({"values": [{"name": n, "value": v, "from": source} for n, v, source in values]})
    else:
        out.table(("name", "value", "from"), values, empty="nothing is set")


_FLAGS = {"actor": "--as"}
_SOURCES = ("actor", "store", "server", "graph", "profile", "policy")


def _chosen(known: UserConfig, context: typer.Context, given: dict[str, Any]) -> Iterator[Value]:
    """What a command with these flags would go by."""
    file = str(folder() / "config.yaml")
    chosen = given["profile"] or known.profile
    kept = {"actor": known.actor, "profile": known.profile}
    for name in _SOURCES:
        source = context.get_parameter_source(name)
        if given[name] is not None and source is not None and source.name == "COMMANDLINE":
            yield name, str(given[name]), _FLAGS.get(name, f"--{name}")
        elif given[name] is not None:
            yield name, str(given[name]), f"OMNIGRAPH_{name.upper()}"
        elif name != "profile" and (found := known.of_profile(name, chosen)):
            yield name, found, f"profile {chosen}"
        elif kept.get(name):
            yield name, kept[name], file
        else:
            yield name, None, "default"
    if os.environ.get(OUTPUT_VARIABLE):
        yield "output", known.shape(chosen), OUTPUT_VARIABLE
    elif found := known.of_profile("output", chosen):
        yield "output", found, f"profile {chosen}"
    else:
        yield "output", known.shape(chosen), file if known.output else "default"


def _kept(known: UserConfig) -> Iterator[Value]:
    """The names that the configuration has for clusters and servers."""
    file = str(folder() / "config.yaml")
    for name, place in sorted(known.clusters.items()):
        yield f"clusters.{name}", place, file
    tokens = read_credentials()
    for name, server in sorted(known.servers.items()):
        yield f"servers.{name}", server["url"], file
        if os.environ.get(token_variable(name)):
            yield f"servers.{name}.token", "set", token_variable(name)
        else:
            yield f"servers.{name}.token", "set" if name in tokens else None, str(folder() / "credentials.json")


@graphs.command("list")
def list_graphs(server: Server = None, json: Json = False) -> None:
    """List the graphs of a server."""
    from omnigraph.client.transport import Transport

    if server is None:
        raise BadRequest("name the server with --server")
    target = read_user_config().remote(server)
    transport = Transport(target.url, target.token(), None)
    try:
        found = transport.get("/graphs")
    finally:
        transport.close()
    out = Output(json=json)
    if json:
        out.document(found)
        return
    rows = [(graph["id"], graph["status"], graph.get("reason")) for graph in found["graphs"]]
    out.table(("graph", "status", "reason"), rows, empty="no graphs")
