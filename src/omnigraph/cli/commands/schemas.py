"""`omnigraph schema …`: show, plan, apply, diagram."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.given_texts import read_text
from omnigraph.cli.options import Actor, Json, Quiet, Store, Uri, Yes, confirm_destructive, graph_uri
from omnigraph.cli.show.output import Output

schema = typer.Typer(help="Show, plan, apply and draw schemas.", no_args_is_help=True)

SchemaFile = Annotated[Path, typer.Option("--schema", "-s", help="The schema file (.pg).")]
AllowDataLoss = Annotated[bool, typer.Option("--allow-data-loss", help="Make drops hard: the data goes at once.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(schema, name="schema")


@schema.command()
def show(
    uri: Uri = None,
    store: Store = None,
    branch: Annotated[str, typer.Option("--branch", "-b")] = "main",
    at: Annotated[str | None, typer.Option("--at", help="A commit, a tag or a manifest version.")] = None,
    json: Json = False,
) -> None:
    """Print the accepted schema of a graph."""
    import omnigraph as og

    out = Output(json=json)
    with og.open(graph_uri(uri, store), read_only=True, branch=branch) as graph:
        source, digest = graph.schema_source(at), graph.snapshot(at).schema_digest
    if json:
        out.document({"schema_source": source, "schema_digest": digest})
    else:
        out.say(source.rstrip("\n"))


@schema.command()
def plan(
    desired: SchemaFile,
    uri: Uri = None,
    from_: Annotated[Path | None, typer.Option("--from", help="Compare with this file instead of a graph.")] = None,
    store: Store = None,
    allow_data_loss: AllowDataLoss = False,
    json: Json = False,
) -> None:
    """Show the migration steps from a graph's schema (or from another file) to a new one. Changes nothing."""
    out = Output(json=json)
    source = read_text(desired, "schema")
    if from_ is not None:
        from omnigraph.schema.compiler.compile import compile_schema
        from omnigraph.schema.migration.migrate import plan as plan_migration

        accepted = compile_schema(read_text(from_, "schema"), filename=str(from_))
        wanted = compile_schema(source, previous=accepted, filename=str(desired))
        migration = plan_migration(accepted, wanted, allow_data_loss=allow_data_loss)
    else:
        import omnigraph as og

        with og.open(graph_uri(uri, store), read_only=True) as graph:
            migration = graph.plan_schema(source, allow_data_loss=allow_data_loss)
    if json:
        out.document(migration.to_json())
    else:
        out.say(migration.render())


@schema.command()
def apply(
    desired: SchemaFile,
    uri: Uri = None,
    store: Store = None,
    allow_data_loss: AllowDataLoss = False,
    actor: Actor = None,
    json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Make a file the schema of a graph, in one commit with the tables that change."""
    import omnigraph as og

    out = Output(json=json, quiet=quiet)
    target = graph_uri(uri, store)
    if allow_data_loss:
        confirm_destructive(target, yes, "drop data for good")
    out.echo_write(f"apply {desired} to {target}")
    with og.open(target, actor=actor) as graph:
        result = graph.apply_schema(read_text(desired, "schema"), allow_data_loss=allow_data_loss)
    if json:
        out.document(result.to_json())
        return
    out.say(result.plan.render())
    out.say(f"commit {result.commit.graph_commit_id}" if result.commit else "the graph has this schema already")


@schema.command()
def diagram(
    uri: Uri = None,
    file: Annotated[Path | None, typer.Option("--schema", "-s", help="Draw this file instead of a graph.")] = None,
    store: Store = None,
) -> None:
    """Draw the types and edges of a schema as a Mermaid diagram."""
    from omnigraph.schema.diagram import schema_diagram

    if file is not None:
        from omnigraph.schema.compiler.compile import compile_schema

        catalog = compile_schema(read_text(file, "schema"), filename=str(file))
    else:
        import omnigraph as og

        with og.open(graph_uri(uri, store), read_only=True) as graph:
            catalog = graph.catalog()
    Output().say(schema_diagram(catalog))
