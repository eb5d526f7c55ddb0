"""Commands about a graph as a whole: init, snapshot, demo, version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.given_texts import read_text
from omnigraph.cli.options import Actor, Branch, Json, Quiet, Store, Uri, graph_uri
from omnigraph.cli.show.output import Output


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command("init")(init)
    app.command("snapshot")(snapshot)
    app.command("demo")(demo)
    app.command("version")(version)


def init(
    schema: Annotated[Path, typer.Option("--schema", "-s", help="The schema file (.pg).")],
    uri: Uri = None,
    store: Store = None,
    actor: Actor = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a graph from a schema. Refuses a path that holds one already.

    Example: omnigraph init --schema schema.pg graph.omni
    """
    import omnigraph as og

    out = Output(json=json, quiet=quiet)
    target = graph_uri(uri, store)
    out.echo_write(f"init {target} from {schema}")
    with og.init(target, schema=read_text(schema, "schema"), actor=actor) as graph:
        head = graph.head()
        if json:
            out.document({"uri": graph.uri, "graph_commit_id": head.graph_commit_id, "tables": _tables(graph)})
        else:
            out.say(f"made {graph.uri} with {len(_tables(graph))} types, commit {head.graph_commit_id}")


def snapshot(
    uri: Uri = None,
    store: Store = None,
    branch: Branch = "main",
    at: Annotated[str | None, typer.Option("--at", help="A commit, a tag or a manifest version.")] = None,
    json: Json = False,
) -> None:
    """Show what a branch (or a commit, tag or manifest version) publishes: every table with its version and rows."""
    import omnigraph as og

    out = Output(json=json)
    with og.open(graph_uri(uri, store), read_only=True, branch=branch) as graph:
        state = graph.snapshot(at)
        if json:
            out.document(snapshot_json(state))
            return
        place = f"branch {state.branch.name}, manifest version {state.manifest_version}"
        out.say(f"{place}, commit {state.head.graph_commit_id}")
        rows = [
            (p.table_key, p.row_count, p.version, p.lance_branch or "main line")
            for _, p in sorted(state.tables.items())
        ]
        out.table(("table", "rows", "version", "line"), rows, empty="the graph has no tables")


def snapshot_json(state: Any) -> dict[str, Any]:
    """The JSON form of a snapshot, the same as the server's."""
    return {
        "branch": state.branch.name,
        "manifest_version": state.manifest_version,
        "graph_commit_id": state.head.graph_commit_id,
        "schema_digest": state.schema_digest,
        "tables": [
            {
                "table_key": pin.table_key,
                "row_count": pin.row_count,
                "table_version": pin.version,
                "table_branch": pin.lance_branch,
                "location": pin.location,
            }
            for _, pin in sorted(state.tables.items())
        ],
    }


def _tables(graph: Any) -> list[str]:
    return sorted(graph.snapshot().tables)


def demo(
    path: Annotated[
        Path | None, typer.Argument(help="Where to make the sample graph.", show_default="a temporary place")
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="spark or local: what runs the load.")] = "spark",
    people: Annotated[int, typer.Option("--people", help="How many people to make.", min=100)] = 20_000,
) -> None:
    """Make a sample graph and walk through it: load, query, branch, change, review, merge."""
    from omnigraph.cli.demo.walkthrough import walk_through

    walk_through(path, engine=engine, people=people)


def version(json: Json = False) -> None:
    """Show the versions of OmniGraph and of what it stands on."""
    import platform
    from importlib.metadata import version as installed

    versions = {name: installed(name) for name in ("omnigraph", "pylance", "pyarrow", "pyspark", "duckdb")}
    versions["python"] = platform.python_version()
    out = Output(json=json)
    if json:
        out.document(versions)
    else:
        out.say(", ".join(f"{name} {number}" for name, number in versions.items()))
