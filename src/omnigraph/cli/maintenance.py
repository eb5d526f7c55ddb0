"""Commands for operators: optimize, index, tag."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.options import Actor, Branch, Engine, Json, Quiet, Store, Uri, graph_uri
from omnigraph.cli.output import Output

if TYPE_CHECKING:
    from omnigraph.maintain.optimize import MaintenanceResult

tag = typer.Typer(help="Name commits so that cleanup keeps them.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command("optimize")(optimize)
    app.command("index")(index)
    app.add_typer(tag, name="tag")


def optimize(
    uri: Uri = None,
    store: Store = None,
    branch: Branch = "main",
    table: Annotated[list[str] | None, typer.Option("--table", help="Only this table; may be repeated.")] = None,
    engine: Engine = "auto",
    actor: Actor = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compact small fragments and bring indexes up to date, in one commit. Changes no data."""
    import omnigraph as og

    out = Output(json=json, quiet=quiet)
    target = graph_uri(uri, store)
    out.echo_write(f"optimize branch {branch} of {target}")
    with og.open(target, actor=actor) as graph:
        _show(out, graph.optimize(branch, tables=table, engine=engine))


def index(
    uri: Uri = None,
    store: Store = None,
    branch: Branch = "main",
    engine: Engine = "auto",
    actor: Actor = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Build the declared indexes that are missing and extend those that lag, in one commit."""
    import omnigraph as og

    out = Output(json=json, quiet=quiet)
    target = graph_uri(uri, store)
    out.echo_write(f"build indexes of branch {branch} of {target}")
    with og.open(target, actor=actor) as graph:
        _show(out, graph.ensure_indices(branch, engine=engine))


def _show(out: Output, result: MaintenanceResult) -> None:
    if out.json:
        out.document(result.to_json())
        return
    rows = [
        (
            t.table_key,
            t.fragments_removed,
            t.fragments_added,
            len(t.indexes_built),
            ", ".join(t.pending_indexes) or None,
            t.skipped or ("yes" if t.committed else "nothing to do"),
        )
        for t in result.tables
    ]
    headers = ("table", "fragments removed", "added", "indexes built", "pending", "committed")
    out.table(headers, rows, empty="the branch owns no table")
    out.say(f"commit {result.commit.graph_commit_id}" if result.commit else "nothing to do, no commit")


@tag.command()
def create(
    name: Annotated[str, typer.Argument(help="The tag.")],
    target: Annotated[str, typer.Argument(help="The branch, commit or tag to name.")],
    uri: Uri = None,
    store: Store = None,
    actor: Actor = None,
    json: Json = False,
) -> None:
    """Name a commit."""
    import omnigraph as og

    out = Output(json=json)
    with og.open(graph_uri(uri, store), actor=actor) as graph:
        made = graph.tags.create(name, target)
    if json:
        out.document({"name": made.name, "graph_commit_id": made.graph_commit_id})
    else:
        out.say(f"tag {made.name} names commit {made.graph_commit_id}")


@tag.command("list")
def list_(uri: Uri = None, store: Store = None, json: Json = False) -> None:
    """List the tags."""
    import omnigraph as og

    out = Output(json=json)
    with og.open(graph_uri(uri, store), read_only=True) as graph:
        tags = graph.tags.list()
    if json:
        out.document({"tags": [{"name": t.name, "graph_commit_id": t.graph_commit_id} for t in tags]})
        return
    rows = [
        (
            t.name,
            t.graph_commit_id,
            t.created_by,
            f"{datetime.fromtimestamp(t.created_at / 1e6, UTC):%Y-%m-%d %H:%M:%S}",
        )
        for t in tags
    ]
    out.table(("tag", "commit", "made by", "made"), rows, empty="no tags")


@tag.command()
def delete(
    name: Annotated[str, typer.Argument(help="The tag.")], uri: Uri = None, store: Store = None, json: Json = False
) -> None:
    """Remove a tag. The commit stays until cleanup."""
    import omnigraph as og

    out = Output(json=json)
    with og.open(graph_uri(uri, store)) as graph:
        graph.tags.delete(name)
    if json:
        out.document({"name": name, "deleted": True})
    else:
        out.say(f"deleted tag {name}")
