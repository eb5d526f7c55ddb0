"""`omnigraph branch …`: create, list, delete, merge, diff."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from omnigraph.cli.options import Actor, Json, Quiet, Store, Uri, Yes, confirm_destructive, graph_uri
from omnigraph.cli.output import Output

branch = typer.Typer(help="Create, list, delete, compare and merge branches.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The branch.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(branch, name="branch")


@branch.command()
def create(
    name: Name,
    uri: Uri = None,
    from_: Annotated[str, typer.Option("--from", help="The branch (or commit, or tag) to start from.")] = "main",
    store: Store = None,
    actor: Actor = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a branch. It costs nothing: no table is copied."""
    import omnigraph as og

    out = Output(json=json, quiet=quiet)
    with og.open(graph_uri(uri, store), actor=actor) as graph:
        made = graph.branch_create(name, from_=from_)
        if json:
            out.document({"name": made.name, "source_branch": made.source_branch, "source_commit": made.source_commit})
        else:
            out.say(f"made branch {made.name} from {from_} at commit {made.source_commit}")


@branch.command("list")
def list_(uri: Uri = None, store: Store = None, json: Json = False) -> None:
    """List the branches with where they started and their newest commit."""
    import omnigraph as og

    out = Output(json=json)
    with og.open(graph_uri(uri, store), read_only=True) as graph:
        refs = graph.branches()
        if json:
            out.document({"branches": [ref.name for ref in refs]})
            return
        rows = [(r.name, r.source_branch, _when(r.created_at), graph.head(r.name).graph_commit_id) for r in refs]
        out.table(("branch", "from", "made", "head"), rows)


@branch.command()
def delete(
    name: Name, uri: Uri = None, store: Store = None, actor: Actor = None, json: Json = False, yes: Yes = False
) -> None:
    """Delete a branch. What a merge base of live branches needs stays until cleanup."""
    import omnigraph as og

    out = Output(json=json)
    target = graph_uri(uri, store)
    confirm_destructive(target, yes, f"delete branch {name}")
    with og.open(target, actor=actor) as graph:
        graph.branch_delete(name)
    if json:
        out.document({"name": name, "deleted": True})
    else:
        out.say(f"deleted branch {name}")


def _when(microseconds: int) -> str | None:
    if not microseconds:
        return None
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
