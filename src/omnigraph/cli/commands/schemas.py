"""`omnigraph schema …`: show, plan, apply, diagram."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.calling import Call, graph_command
from omnigraph.cli.given_texts import read_text
from omnigraph.cli.options import At, SchemaFile
from omnigraph.errors import BadRequest
from omnigraph.sources import named_in_errors

if TYPE_CHECKING:
    from omnigraph.schema.migration.migrate import MigrationPlan

schema = typer.Typer(help="Show, plan, apply and draw schemas.", no_args_is_help=True)

AllowDataLoss = Annotated[bool, typer.Option("--allow-data-loss", help="Make drops hard: the data goes at once.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(schema, name="schema")


@graph_command(schema, "show", branch=True)
def show(call: Call, at: At = None) -> None:
    """Print the accepted schema of a graph."""
    with call.read_branch() as graph:
        source, digest = graph.schema_source(at), graph.snapshot(at).schema_digest
    if call.out.json:
        call.out.document({"schema_source": source, "schema_digest": digest})
    else:
        call.out.say(source.rstrip("\n"))


@graph_command(schema, "plan", branch=True)
def plan(
    call: Call,
    desired: SchemaFile,
    from_: Annotated[Path | None, typer.Option("--from", help="Compare with this file instead of a graph.")] = None,
    allow_data_loss: AllowDataLoss = False,
) -> None:
    """Show the migration steps from a graph's schema (or from another file) to a new one. Changes nothing.

    Exits with 1 when the plan cannot be applied.
    """
    source = read_text(desired, "schema")
    if from_ is not None:
        from omnigraph.schema.compiler.compile import compile_schema
        from omnigraph.schema.migration.migrate import plan as plan_migration

        accepted = compile_schema(read_text(from_, "schema"), filename=str(from_))
        wanted = compile_schema(source, previous=accepted, filename=str(desired))
        migration = plan_migration(accepted, wanted, allow_data_loss=allow_data_loss)
    else:
        with call.read() as graph, named_in_errors(str(desired)):
            migration = graph.plan_schema(source, branch=call.branch, allow_data_loss=allow_data_loss)
    if call.out.json:
        call.out.document(migration.to_json())
    else:
        call.out.say(migration.render())
    if not migration.supported:
        raise typer.Exit(1)


@graph_command(schema, "apply", branch=True, writes=True, destroys=True)
def apply(call: Call, desired: SchemaFile, allow_data_loss: AllowDataLoss = False) -> None:
    """Make a file the schema of a branch, in one commit with the tables that change.

    Asks first when rows or values are dropped; where there is nobody to ask, `--yes` is needed.
    """
    out = call.out
    source = read_text(desired, "schema")
    if allow_data_loss:
        call.confirm("drop data for good")
    out.echo_write(f"apply {desired} to branch {call.branch} of {call.uri}")
    with call.open() as graph, named_in_errors(str(desired)):
        if not call.yes:
            _confirm_drops(graph.plan_schema(source, branch=call.branch, allow_data_loss=allow_data_loss))
        result = graph.apply_schema(source, branch=call.branch, allow_data_loss=allow_data_loss)
    if out.json:
        out.document(result.to_json())
        return
    out.say(result.plan.render())
    out.say(f"commit {result.commit.graph_commit_id}" if result.commit else "the graph has this schema already")


def _confirm_drops(planned: MigrationPlan) -> None:
    """Ask before rows or values are dropped. A plan that cannot be applied is left for the apply to refuse."""
    from omnigraph.schema.migration.migration_steps import step_text

    lost = planned.drops_of_data
    if not lost or not planned.supported:
        return
    shown = "\n".join(f"  {step_text(step)}" for step in lost)
    if sys.stdin.isatty() and typer.confirm(f"this drops data:\n{shown}\napply it?", err=True):
        return
    raise BadRequest(f"schema apply: this drops data, nothing was changed; confirm it with --yes:\n{shown}")


@graph_command(schema, "diagram")
def diagram(
    call: Call,
    file: Annotated[Path | None, typer.Option("--schema", "-s", help="Draw this file instead of a graph.")] = None,
) -> None:
    """Draw the types and edges of a schema as a Mermaid diagram."""
    from omnigraph.schema.diagram import schema_diagram

    if file is not None:
        from omnigraph.schema.compiler.compile import compile_schema

        catalog = compile_schema(read_text(file, "schema"), filename=str(file))
    else:
        with call.read() as graph:
            catalog = graph.catalog()
    drawn = schema_diagram(catalog)
    if call.out.json:
        call.out.document({"mermaid": drawn})
    else:
        call.out.say(drawn)
