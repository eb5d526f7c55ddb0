"""Commands about servers and about the user: login, logout, profile, config, graphs."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Annotated, Any

import typer

from omnigraph.cli.options import Json, Server
from omnigraph.cli.show.output import Output
from omnigraph.cli.user_config import (
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
    known = read_user_config()
    if url is None and name not in known.servers:
        raise BadRequest(f"`{name}` is new: say where it is with --url")
    if url is not None and not url.startswith(("http://", "https://")):
        raise BadRequest(f"`{url}` is no URL of a server: it starts with http:// or https://")
    if token_stdin or not sys.stdin.isatty():
        token = sys.stdin.readline().strip()
    else:
        token = typer.prompt("token", hide_input=True).strip()
    if not token:
        raise BadRequest("the token is empty")
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
    default: Annotated[bool, typer.Option("--default", help="Use it where nothing else is named.")] = False,
) -> None:
    """Make or replace a profile."""
    if (server is None) == (store is None):
        raise BadRequest("a profile is about a server (--server) or a store (--store)")
    known = read_user_config()
    if server is not None:
        known.remote(server)
    made = {key: value for key, value in {"server": server, "graph": graph, "store": store}.items() if value}
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
        (name, found.get("server"), found.get("graph"), found.get("store"), name == known.profile)
        for name, found in sorted(known.profiles.items())
    ]
    out.table(("profile", "server", "graph", "store", "default"), rows, empty="no profiles")


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
def show(json: Json = False) -> None:
    """Show every value and where it comes from. Tokens are not shown, only whether there is one."""
    known = read_user_config()
    values = list(_values(known))
    out = Output(json=json)
    if json:
        out.document({"values": [{"name": n, "value": v, "from": source} for n, v, source in values]})
    else:
        out.table(("name", "value", "from"), values, empty="nothing is set")


def _values(known: UserConfig) -> Any:
    file = str(folder() / "config.yaml")
    for name, variable, kept in (
        ("actor", "OMNIGRAPH_ACTOR", known.actor),
        ("store", "OMNIGRAPH_STORE", None),
        ("server", "OMNIGRAPH_SERVER", None),
        ("profile", "OMNIGRAPH_PROFILE", known.profile),
        ("policy", "OMNIGRAPH_POLICY", None),
    ):
        if os.environ.get(variable):
            yield name, os.environ[variable], variable
        elif kept:
            yield name, kept, file
        else:
            yield name, None, "default"
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
