"""Commands that move data: load, query, mutate, export."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.given_texts import parameters, query_text
from omnigraph.cli.options import (
    Actor,
    Branch,
    Engine,
    Json,
    Master,
    Quiet,
    Store,
    Uri,
    Yes,
    confirm_destructive,
    graph_uri,
)
from omnigraph.cli.show.output import Output, dump_json
from omnigraph.cli.show.progress import progress_line
from omnigraph.errors import BadRequest

QueryFile = Annotated[Path | None, typer.Option("--query", help="A file with queries (.gq).")]
QueryName = Annotated[str | None, typer.Option("--name", help="Which query of the file to run.")]
Inline = Annotated[str | None, typer.Option("-e", help="The query itself, inline.")]
Params = Annotated[str | None, typer.Option("--params", help="Parameters as a JSON object.")]
ParamsFile = Annotated[Path | None, typer.Option("--params-file", help="A JSON file with parameters.")]

FORMATS = ("json", "jsonl", "csv", "table", "kv")
MODES = ("append", "merge", "overwrite")


def register(app: typer.Typer) -> None:
    """Add these commands to the program, with their older names."""
    app.command("load")(load)
    app.command("query")(query)
    app.command("read", hidden=True)(query)
    app.command("mutate")(mutate)
    app.command("change", hidden=True)(mutate)
    app.command("export")(export)


def load(
    data: Annotated[
        list[str], typer.Option("--data", "-d", help="A file, directory, glob or - for stdin; may be repeated.")
    ],
    mode: Annotated[str, typer.Option("--mode", help="append, merge or overwrite.")],
    uri: Uri = None,
    store: Store = None,
    branch: Branch = "main",
    from_: Annotated[str | None, typer.Option("--from", help="Make --branch from this one if it is new.")] = None,
    type: Annotated[str | None, typer.Option("--type", help="The type that CSV or Parquet rows have.")] = None,
    src: Annotated[str | None, typer.Option("--src", help="The column with the source ids of edges.")] = None,
    dst: Annotated[str | None, typer.Option("--dst", help="The column with the target ids of edges.")] = None,
    columns: Annotated[list[str] | None, typer.Option("--map", help="column=property; may be repeated.")] = None,
    engine: Engine = "auto",
    master: Master = None,
    actor: Actor = None,
    json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Load records as one atomic commit, or nothing at all if any record breaks a rule.

    Example: omnigraph load --data people.jsonl --mode merge graph.omni
    """
    import omnigraph as og

    out = Output(json=json, quiet=quiet)
    target = graph_uri(uri, store)
    if mode not in MODES:
        raise BadRequest(f"--mode {mode} is not one of {', '.join(MODES)}")
    if from_ is not None and branch == "main":
        raise BadRequest(f"--from {from_} makes a branch for the load: name it with --branch")
    if mode == "overwrite":
        confirm_destructive(target, yes, "replace the content of every type in the input")
    out.echo_write(f"load {', '.join(data)} into {target} on branch {branch}, mode {mode}")
    shown = not json and not quiet
    with og.open(target, actor=actor) as graph, progress_line(shown=shown) as progress:
        result = graph.load(
            ["/dev/stdin" if name == "-" else name for name in data],
            mode=mode,
            type=type,
            src=src,
            dst=dst,
            columns=_mapping(columns or []),
            branch=branch,
            from_=from_,
            engine=engine,
            progress=progress,
        )
        if json:
            out.document({"uri": graph.uri, **result.to_json()})
            return
        rows = [(t.table_key, t.rows_loaded) for t in result.tables]
        out.table(("table", "rows loaded"), rows, empty="the input has no records")
        commit = f"commit {result.commit.graph_commit_id}" if result.commit else "nothing changed, no commit"
        out.say(f"{commit} on {result.branch} ({result.engine} engine)")


def query(
    uri: Uri = None,
    store: Store = None,
    query: QueryFile = None,
    name: QueryName = None,
    inline: Inline = None,
    params: Params = None,
    params_file: ParamsFile = None,
    branch: Branch = "main",
    snapshot: Annotated[str | None, typer.Option("--snapshot", help="A commit, tag or manifest version.")] = None,
    format: Annotated[str | None, typer.Option("--format", "-f", help="json, jsonl, csv, table or kv.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the plan instead of running it.")] = False,
    analyze: Annotated[bool, typer.Option("--analyze", help="Run it and show the plan with real counts.")] = False,
    engine: Engine = "auto",
    master: Master = None,
    json: Json = False,
) -> None:
    """Run a read query.

    Example: omnigraph query graph.omni -e 'query q() { match { $p: Person } return { $p.name } limit 5 }'
    """
    import omnigraph as og

    shape = format or ("json" if json else "table")
    if shape not in FORMATS:
        raise BadRequest(f"--format {shape} is not one of {', '.join(FORMATS)}")
    source = query_text(query, inline)
    values = parameters(params, params_file)
    with og.open(graph_uri(uri, store), read_only=True, branch=branch) as graph:
        if explain or analyze:
            plan = graph.explain(source, name, values, at=snapshot, analyze=analyze)
            sys.stdout.write((dump_json(plan.to_json()) if shape == "json" else str(plan)) + "\n")
            return
        result = graph.query(source, name, values, at=snapshot, engine=engine)
        if shape == "json":
            state = graph.snapshot(snapshot)
            sys.stdout.write(dump_json(query_json(result, name, state)) + "\n")
            return
        for chunk in result_text(result, shape):
            sys.stdout.write(chunk)


def query_json(result: Any, name: str | None, state: Any) -> dict[str, Any]:
    """The JSON document of a query, the same as the server's response."""
    import orjson

    return {
        "query_name": name,
        "target": {"branch": state.branch.name, "manifest_version": state.manifest_version},
        "columns": [{"name": c.name, "type": str(c.type), "nullable": c.nullable} for c in result.columns],
        "row_count": len(result),
        "rows": orjson.Fragment(result.to_json()),
        "graph_commit_id": state.head.graph_commit_id,
    }


def result_text(result: Any, shape: str) -> Iterator[str]:
    """A result as text, a piece at a time."""
    if shape == "jsonl":
        yield from (line + "\n" for line in result.jsonl())
    elif shape == "csv":
        yield from result.csv()
    elif shape == "kv":
        yield result.to_kv() + "\n"
    else:
        width = None if sys.stdout.isatty() else 10_000
        yield result.to_text(width=width) + "\n"


def mutate(
    uri: Uri = None,
    store: Store = None,
    query: QueryFile = None,
    name: QueryName = None,
    inline: Inline = None,
    params: Params = None,
    params_file: ParamsFile = None,
    branch: Branch = "main",
    if_commit: Annotated[
        str | None, typer.Option("--if-commit", help="Only if no data changed since this commit.")
    ] = None,
    actor: Actor = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a mutation query: one commit, or nothing.

    Example: omnigraph mutate graph.omni --query people.gq --name hire --params '{"slug": "ada"}'
    """
    import omnigraph as og

    out = Output(json=json, quiet=quiet)
    target = graph_uri(uri, store)
    source = query_text(query, inline)
    out.echo_write(f"mutate {target} on branch {branch}")
    with og.open(target, actor=actor) as graph:
        result = graph.mutate(source, name, parameters(params, params_file), branch=branch, if_commit=if_commit)
        if json:
            out.document(result.to_json())
            return
        commit = f"commit {result.commit.graph_commit_id}" if result.commit else "nothing changed, no commit"
        nodes, edges = _counted(result.affected_nodes, "node"), _counted(result.affected_edges, "edge")
        out.say(f"{nodes} and {edges} affected; {commit}")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def export(
    to: Annotated[Path, typer.Option("--to", help="A file for JSON lines (- is stdout), a directory for Parquet.")],
    uri: Uri = None,
    store: Store = None,
    branch: Branch = "main",
    snapshot: Annotated[str | None, typer.Option("--snapshot", help="A commit, tag or manifest version.")] = None,
    type: Annotated[list[str] | None, typer.Option("--type", help="Only these types; may be repeated.")] = None,
    format: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
    engine: Engine = "auto",
    master: Master = None,
    json: Json = False,
) -> None:
    """Write a graph out, as JSON lines that load back to an equal graph, or as Parquet, one directory per type."""
    import omnigraph as og

    out = Output(json=json or str(to) == "-")
    with og.open(graph_uri(uri, store), read_only=True, branch=branch) as graph:
        summary = graph.export(str(to), at=snapshot, types=type, format=format, engine=engine)
    if json and str(to) != "-":
        out.document(summary.to_json())
    else:
        out.say(f"wrote {summary.rows} rows to {to}")


def _mapping(texts: list[str]) -> dict[str, str] | None:
    found: dict[str, Any] = {}
    for text in texts:
        column, equals, property_ = text.partition("=")
        if not equals or not column or not property_:
            raise BadRequest(f"--map {text} is not understood: write column=property")
        found[column] = property_
    return found or None
