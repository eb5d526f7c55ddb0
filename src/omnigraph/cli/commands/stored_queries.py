"""`omnigraph queries …`: the stored queries beside a graph, or of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.calling import Call, graph_command
from omnigraph.errors import BadRequest

queries = typer.Typer(help="List and check stored queries.", no_args_is_help=True)

Queries = Annotated[
    Path | None,
    typer.Option(
        "--queries", envvar="OMNIGRAPH_QUERIES", help="A folder of .gq files, one file, or a YAML list or map of them."
    ),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(queries, name="queries")
    graph_command(app, "mcp")(mcp)


def mcp(call: Call, queries: Queries = None) -> None:
    """Offer a graph of this machine to an agent, over standard input and output (MCP).

    Stored queries are tools; reading, branching, comparing and merging too, where the policy allows them.
    """
    try:
        from omnigraph.server.agents.local_agent import serve_here
    except ImportError:
        raise BadRequest("this needs the server's packages: install omnigraph[server]") from None

    serve_here(call.store_uri, queries=queries, policy=call.policy, actor=call.actor)


@graph_command(queries, "list")
def list_(call: Call, queries: Queries = None) -> None:
    """List the stored queries with their parameters. Of a server, those that it exposes."""
    if call.server is not None:
        with call.read() as graph:
            found = graph.stored_queries()
    else:
        from omnigraph.stored.tool_catalog import listing

        found = listing(_checked(call, queries))["queries"]
    if call.out.json:
        call.out.document({"queries": found})
        return
    rows = [
        (
            query["name"],
            "mutates" if query["mutates"] else "reads",
            ", ".join(_shown(parameter) for parameter in query["parameters"]) or None,
            query["description"],
        )
        for query in found
    ]
    call.out.table(("query", "", "parameters", "description"), rows, empty="no stored queries")


@graph_command(queries, "validate")
def validate(call: Call, queries: Queries = None) -> None:
    """Check stored queries against the schema of a graph. All problems at once; exits with 1 when there are any."""
    found = _checked(call, queries)
    if call.out.json:
        call.out.document({"valid": True, "queries": [query.name for query in found]})
    else:
        call.out.say(f"{len(found)} {'query fits' if len(found) == 1 else 'queries fit'} the schema")


def _checked(call: Call, queries: Path | None) -> Any:
    from omnigraph.stored.registry import read_registry

    if queries is None:
        raise BadRequest("say where the queries are, with --queries")
    with call.read() as graph:
        return read_registry(queries, graph.catalog())


def _shown(parameter: dict[str, Any]) -> str:
    inner = parameter.get("item_kind") or parameter.get("vector_dim")
    kind = f"{parameter['kind']} of {inner}" if inner else parameter["kind"]
    return f"{parameter['name']}: {kind}{'?' if parameter['nullable'] else ''}"
