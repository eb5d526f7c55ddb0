"""Commands that move data: load, query, mutate, embed, export."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph import choices
from omnigraph.cli.calling import Call, graph_command
from omnigraph.cli.given_texts import parameters, query_text
from omnigraph.cli.options import At, DryRun, Engine, IfCommit, Master, Types
from omnigraph.cli.show.output import dump_json
from omnigraph.cli.show.progress import progress_line, time_taken
from omnigraph.cli.user_config import Shape
from omnigraph.diagnostics import UNNAMED
from omnigraph.errors import BadRequest
from omnigraph.notebook import counted
from omnigraph.sources import named_in_errors

QueryFile = Annotated[Path | None, typer.Option("--query", help="A file with queries (.gq); - is standard input.")]
QueryName = Annotated[str | None, typer.Option("--name", help="Which query of the file to run.")]
Inline = Annotated[str | None, typer.Option("-e", help="The query itself, inline.")]
Params = Annotated[str | None, typer.Option("--params", help="Parameters as a JSON object.")]
ParamsFile = Annotated[Path | None, typer.Option("--params-file", help="A JSON file with parameters.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the program, with their older names."""
    graph_command(app, "load", branch=True, writes=True, destroys=True)(load)
    graph_command(app, "query", branch=True)(query)
    graph_command(app, "read", branch=True, hidden=True)(query)
    graph_command(app, "mutate", branch=True, writes=True)(mutate)
    graph_command(app, "change", branch=True, writes=True, hidden=True)(mutate)
    graph_command(app, "embed", branch=True, writes=True)(embed)
    graph_command(app, "export", branch=True)(export)


def load(
    call: Call,
    data: Annotated[
        list[str], typer.Option("--data", "-d", help="A file, directory, glob or - for stdin; may be repeated.")
    ],
    mode: Annotated[
        choices.Mode, typer.Option("--mode", help="Refuse ids that are there, update them, or replace each type.")
    ],
    from_: Annotated[str | None, typer.Option("--from", help="Make --branch from this one if it is new.")] = None,
    type: Annotated[str | None, typer.Option("--type", help="The type that CSV or Parquet rows have.")] = None,
    src: Annotated[str | None, typer.Option("--src", help="The column with the source ids of edges.")] = None,
    dst: Annotated[str | None, typer.Option("--dst", help="The column with the target ids of edges.")] = None,
    columns: Annotated[list[str] | None, typer.Option("--map", help="column=property; may be repeated.")] = None,
    if_commit: IfCommit = None,
    engine: Engine = "auto",
    master: Master = None,
) -> None:
    """Load records as one atomic commit, or nothing at all if any record breaks a rule.

    Example: omnigraph load --data people.jsonl --mode merge graph.omni
    """
    out = call.out
    if from_ is not None and call.branch == "main":
        raise BadRequest(f"--from {from_} makes a branch for the load: name it with --branch")
    if mode == "overwrite":
        call.confirm("replace the content of every type in the input")
    out.echo_write(f"load {', '.join(data)} into {call.uri} on branch {call.branch}, mode {mode}")
    shown = not out.json and not out.quiet
    with call.open() as graph, progress_line(shown=shown) as progress:
        began = time.monotonic()
        result = graph.load(
            ["/dev/stdin" if name == "-" else name for name in data],
            mode=mode,
            type=type,
            src=src,
            dst=dst,
            columns=_mapping(columns or []),
            branch=call.branch,
            from_=from_,
            engine=engine,
            if_commit=if_commit,
            progress=progress,
        )
        if out.json:
            out.document({"uri": graph.uri, **result.to_json()})
            return
        rows = [(t.table_key, t.rows_loaded) for t in result.tables]
        out.table(("table", "rows loaded"), rows, empty="the input has no records")
        commit = f"commit {result.commit.graph_commit_id}" if result.commit else "nothing changed, no commit"
        taken = time_taken(result.rows_loaded, time.monotonic() - began)
        out.say(f"{commit} on {result.branch} ({result.engine} engine{taken})")


def query(
    call: Call,
    query: QueryFile = None,
    name: QueryName = None,
    inline: Inline = None,
    params: Params = None,
    params_file: ParamsFile = None,
    at: At = None,
    format: Annotated[Shape | None, typer.Option("--format", "-f", help="How rows are written.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the plan instead of running it.")] = False,
    analyze: Annotated[bool, typer.Option("--analyze", help="Run it and show the plan with real counts.")] = False,
    timeout: Annotated[float | None, typer.Option("--timeout", help="Stop it after so many seconds.")] = None,
    engine: Engine = "auto",
    master: Master = None,
) -> None:
    """Run a read query.

    Example: omnigraph query graph.omni -e 'query q() { match { $p: Person } return { $p.name } limit 5 }'
    """
    shape = format or call.shape
    source = query_text(query, inline)
    values = parameters(params, params_file)
    with call.read_branch() as graph, named_in_errors(str(query) if query else UNNAMED):
        if explain or analyze:
            plan = graph.explain(source, name, values, at=at, analyze=analyze, timeout=timeout)
            sys.stdout.write((dump_json(plan.to_json()) if shape == "json" else str(plan)) + "\n")
            return
        result = graph.query(source, name, values, at=at, engine=engine, timeout=timeout)
        if shape == "json":
            sys.stdout.write(dump_json({**result.head_json(), "rows": orjson_rows(result)}) + "\n")
            return
        for chunk in result_text(result, shape):
            sys.stdout.write(chunk)


def orjson_rows(result: Any) -> Any:
    """The rows of a result as a part of a JSON document."""
    import orjson

    return orjson.Fragment(result.to_json())


def result_text(result: Any, shape: Shape) -> Iterator[str]:
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
    call: Call,
    query: QueryFile = None,
    name: QueryName = None,
    inline: Inline = None,
    params: Params = None,
    params_file: ParamsFile = None,
    if_commit: IfCommit = None,
) -> None:
    """Run a mutation query: one commit, or nothing.

    Example: omnigraph mutate graph.omni --query people.gq --name hire --params '{"slug": "ada"}'
    """
    out = call.out
    source = query_text(query, inline)
    values = parameters(params, params_file)
    out.echo_write(f"mutate {call.uri} on branch {call.branch}")
    with call.open() as graph, named_in_errors(str(query) if query else UNNAMED):
        result = graph.mutate(source, name, values, branch=call.branch, if_commit=if_commit)
    if out.json:
        out.document(result.to_json())
        return
    commit = f"commit {result.commit.graph_commit_id}" if result.commit else "nothing changed, no commit"
    nodes, edges = counted(result.affected_nodes, "node"), counted(result.affected_edges, "edge")
    out.say(f"{nodes} and {edges} affected; {commit}")


def embed(
    call: Call,
    type: Types = None,
    property: Annotated[str | None, typer.Option("--property", help="Only the embedded property of this name.")] = None,
    mode: Annotated[
        choices.EmbedMode,
        typer.Option("--mode", help="Rows without a vector, also those whose text or model has changed, or all rows."),
    ] = "missing",
    dry_run: DryRun = False,
    engine: Engine = "auto",
    master: Master = None,
) -> None:
    """Make the vectors of @embed properties from their texts, as one commit; carries on where an earlier run stopped.

    The provider is named by OMNIGRAPH_EMBEDDING_PROVIDER. --dry-run shows how many rows and tokens it would be asked.

    Example: omnigraph embed graph.omni --dry-run
    """
    out = call.out
    shown = not out.json and not out.quiet
    if not dry_run:
        out.echo_write(
            f"embed texts of {', '.join(type or ['all types'])} in {call.uri} on branch {call.branch}, {mode}"
        )
    opened = call.open(read_only=True) if dry_run else call.open()
    with opened as graph, progress_line(shown=shown and not dry_run) as progress:
        result = graph.embed(
            type, property, mode=mode, branch=call.branch, dry_run=dry_run, engine=engine, progress=progress
        )
    if out.json:
        out.document(result.to_json())
        return
    heads = ("property", "from", "model", "rows", "tokens (about)", "ready", "emptied")
    rows = [
        (
            f"{one.table_key}.{one.property}",
            one.source,
            one.model or "",
            one.rows,
            one.tokens,
            one.rows_ready,
            one.rows_cleared,
        )
        for one in result.properties
    ]
    out.table(heads, rows, empty="no property is embedded")
    if dry_run:
        out.say(f"{counted(result.rows, 'row')} would get a vector, about {counted(result.tokens, 'token')}")
        return
    commit = f"commit {result.commit.graph_commit_id}" if result.commit else "nothing changed, no commit"
    out.say(f"{commit} on {result.branch} ({result.engine} engine)")


def export(
    call: Call,
    to: Annotated[str, typer.Option("--to", help="A file for JSON lines (- is stdout), a directory for Parquet.")],
    at: At = None,
    type: Types = None,
    format: Annotated[choices.ExportFormat, typer.Option("--format", help="What is written.")] = "jsonl",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    engine: Engine = "auto",
    master: Master = None,
) -> None:
    """Write a graph out, as JSON lines that load back to an equal graph, or as Parquet, one directory per type.

    Example: omnigraph export graph.omni --to graph.jsonl
    """
    with call.read_branch() as graph:
        summary = graph.export(to, at=at, types=type, format=format, engine=engine, overwrite=overwrite)
    if to == "-":
        return
    if call.out.json:
        call.out.document(summary.to_json())
    else:
        call.out.say(f"wrote {counted(summary.rows, 'row')} to {to}")


def _mapping(texts: list[str]) -> dict[str, str] | None:
    found: dict[str, Any] = {}
    for text in texts:
        column, equals, property_ = text.partition("=")
        if not equals or not column or not property_:
            raise BadRequest(f"--map {text} is not understood: write column=property")
        found[column] = property_
    return found or None
