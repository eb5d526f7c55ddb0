"""Commands about a graph as a whole: init, snapshot, copy, demo, version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.calling import Call, graph_command
from omnigraph.cli.given_texts import read_text
from omnigraph.cli.options import Actor, At, Engine, Json, Master, Policy, Quiet, SchemaFile
from omnigraph.cli.show.output import Output
from omnigraph.sources import named_in_errors


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    graph_command(app, "init", writes=True)(init)
    graph_command(app, "snapshot", branch=True)(snapshot)
    app.command("copy")(copy)
    app.command("demo")(demo)
    app.command("version")(version)


def init(call: Call, schema: SchemaFile) -> None:
    """Make a graph from a schema. Refuses a path that holds one already, or anything else.

    Example: omnigraph init --schema schema.pg graph.omni
    """
    import omnigraph as og

    out = call.out
    source = read_text(schema, "schema")
    out.echo_write(f"init {call.store_uri} from {schema}")
    with named_in_errors(str(schema)), og.init(call.store_uri, schema=_as_text(source), actor=call.actor) as graph:
        head, tables = graph.head(), sorted(graph.snapshot().tables)
        if out.json:
            out.document({"uri": graph.uri, "graph_commit_id": head.graph_commit_id, "tables": tables})
        else:
            noun = "type" if len(tables) == 1 else "types"
            out.say(f"made {graph.uri} with {len(tables)} {noun}, commit {head.graph_commit_id}")


def _as_text(source: str) -> str:
    """A schema that cannot be taken for the name of a file."""
    return source if "\n" in source else f"{source}\n"


def snapshot(call: Call, at: At = None) -> None:
    """Show what a branch (or a commit, tag or manifest version) publishes: every table with its version and rows."""
    with call.read_branch() as graph:
        state = graph.snapshot(at)
    if call.out.json:
        call.out.document(state.to_json())
        return
    place = f"branch {state.branch.name}, manifest version {state.manifest_version}"
    call.out.say(f"{place}, commit {state.head.graph_commit_id}")
    rows = [
        (p.table_key, p.row_count, p.version, p.lance_branch or "main line") for _, p in sorted(state.tables.items())
    ]
    call.out.table(("table", "rows", "version", "line"), rows, empty="the graph has no tables")


def copy(
    source: Annotated[str, typer.Argument(help="The graph to copy.")],
    target: Annotated[str, typer.Argument(help="Where to: an empty place, on any store.")],
    branch: Annotated[
        list[str] | None, typer.Option("--branch", "-b", help="Only main and this branch; may be repeated.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", help="Only the branch of this commit, tag or time, as it was.")
    ] = None,
    engine: Engine = "auto",
    master: Master = None,
    actor: Actor = None,
    policy: Policy = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy a graph with its history, while others go on writing to it. An interrupted copy is carried on.

    Example: omnigraph copy graph.omni s3://backups/graph.omni
    """
    import omnigraph as og

    out = Output(json=json, quiet=quiet)
    out.echo_write(f"copy {source} to {target}")
    result = og.copy(source, target, branches=branch or (), at=at, engine=engine, actor=actor, policy=policy)
    if json:
        out.document(result.to_json())
        return
    branches = "1 branch" if len(result.branches) == 1 else f"{len(result.branches)} branches"
    again = f", {result.files_there} were there already" if result.files_there else ""
    out.say(f"copied {branches} and {result.commits} commits to {result.target}")
    out.say(f"{result.files} files, {result.bytes} bytes{again}; main is at commit {result.graph_commit_id}")


def demo(
    path: Annotated[
        Path | None, typer.Argument(help="Where to make the sample graph.", show_default="a temporary place")
    ] = None,
    engine: Engine = "spark",
    people: Annotated[int, typer.Option("--people", help="How many people to make.", min=100)] = 20_000,
) -> None:
    """Make a sample graph and walk through it: load, query, branch, change, review, merge."""
    from omnigraph.cli.demo.walkthrough import walk_through

    walk_through(path, engine=engine, people=people)


def version(json: Json = False) -> None:
    """Show the versions of OmniGraph, of the storage format, and of what it stands on."""
    versions = installed_versions()
    out = Output(json=json)
    if json:
        out.document(versions)
    else:
        out.say(versions_text(versions))


def installed_versions() -> dict[str, str | int]:
    """The program, the storage format that it writes, and the libraries that matter."""
    import platform
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    from omnigraph.config import INTERNAL_MANIFEST_SCHEMA_VERSION

    found: dict[str, str | int] = {
        "omnigraph": installed("omnigraph"),
        "storage_format": INTERNAL_MANIFEST_SCHEMA_VERSION,
    }
    for name, package in (("lance", "pylance"), ("spark", "pyspark"), ("arrow", "pyarrow"), ("duckdb", "duckdb")):
        try:
            found[name] = installed(package)
        except PackageNotFoundError:
            found[name] = "not installed"
    found["python"] = platform.python_version()
    return found


def versions_text(versions: dict[str, str | int]) -> str:
    """One line for people."""
    return ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in versions.items())
