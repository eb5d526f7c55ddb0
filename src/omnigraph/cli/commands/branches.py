"""`omnigraph branch …`: create, list, delete, merge, diff."""

from __future__ import annotations

import json as json_module
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.options import Actor, Engine, Json, Quiet, Store, Uri, Yes, confirm_destructive, graph_uri
from omnigraph.cli.show.output import Output
from omnigraph.errors import NotFound

if TYPE_CHECKING:
    from omnigraph.merge.merge import MergeResult

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
        rows = []
        for ref in refs:
            # One that is deleted meanwhile is no branch any more.
            with suppress(NotFound):
                head = graph.head(ref.name).graph_commit_id
                rows.append((ref.name, ref.source_branch, _when(ref.created_at), head))
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


@branch.command()
def merge(
    source: Annotated[str, typer.Argument(help="The branch to merge.")],
    uri: Uri = None,
    into: Annotated[str, typer.Option("--into", help="The branch that takes the changes.")] = "main",
    strategy: Annotated[
        str | None, typer.Option("--strategy", help="ours or theirs, for rows that both sides changed.")
    ] = None,
    resolve: Annotated[
        Path | None,
        typer.Option("--resolve", help="A JSON file with answers for single rows; see the page on merging."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen and write nothing.")] = False,
    delete_branch: Annotated[bool, typer.Option("--delete-branch", help="Delete the source afterwards.")] = False,
    engine: Engine = "auto",
    store: Store = None,
    actor: Actor = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Merge a branch into another one: one commit, or every conflict and no effect."""
    import omnigraph as og
    from omnigraph.cli.show.changes import print_json

    out = Output(json=json, quiet=quiet)
    target = graph_uri(uri, store)
    out.echo_write(f"merge {source} into {into} of {target}{' (dry run)' if dry_run else ''}")
    with og.open(target, actor=actor, read_only=dry_run) as graph:
        result = graph.merge(
            source,
            into,
            strategy=strategy,
            resolutions=read_answers(resolve) if resolve else None,
            dry_run=dry_run,
            delete_source=delete_branch,
            engine=engine,
        )
        if json and dry_run:
            print_json(result.to_json(), result.tables, result.changes)
        elif json:
            out.document(result.to_json())
        else:
            show_merge(out, result)
    if result.conflicts:
        raise typer.Exit(3)


def read_answers(path: Path) -> dict[tuple[str, str], Any]:
    """Answers for single rows: a JSON object of table keys, each an object of row ids and what becomes of the row."""
    from omnigraph.errors import BadRequest

    try:
        found = json_module.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRequest(f"--resolve: {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadRequest(f"--resolve: {path} is no JSON: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(rows, dict) for rows in found.values()):
        raise BadRequest(
            f'--resolve: {path} is an object such as {{"node:Person": {{"ada": "theirs", "alan": {{"age": 40}}, '
            '"grace": null}}: ours, theirs, the values of a row, or null to delete it'
        )
    return {(table_key, row_id): answer for table_key, rows in found.items() for row_id, answer in rows.items()}


def show_merge(out: Output, result: MergeResult) -> None:
    """What a merge did, or would do, for people: a dry run shows the rows too."""
    from omnigraph.cli.show.changes import print_rows
    from omnigraph.merge.decide.conflicts import described

    out.table(
        ("table", "inserts", "updates", "deletes"),
        [(c.table_key, c.inserts, c.updates, c.deletes) for c in result.tables],
        empty="no rows change",
    )
    print_rows(result.changes)
    if result.conflicts:
        noun = "conflict" if len(result.conflicts) == 1 else "conflicts"
        out.say(f"{len(result.conflicts)} {noun}\n{described(result.conflicts)}")
    commit = f", commit {result.commit.graph_commit_id}" if result.commit else ""
    out.say(f"{result.outcome.value}{' (dry run)' if result.dry_run else ''}{commit}")
    if result.source_deleted:
        out.say(f"deleted branch {result.source}")
    elif result.source_kept_because:
        out.say(f"branch {result.source} stays: {result.source_kept_because}")


@branch.command()
def diff(
    a: Annotated[str, typer.Argument(help="A branch, commit or tag.")],
    b: Annotated[str, typer.Argument(help="The branch, commit or tag to compare it with.")],
    uri: Uri = None,
    store: Store = None,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only node or edge.")] = None,
    type: Annotated[list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")] = None,
    op: Annotated[list[str] | None, typer.Option("--op", help="Only insert, update or delete.")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only the counts.")] = False,
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Show what differs between two branches, commits or tags: counts first, then the changed rows."""
    import omnigraph as og
    from omnigraph.cli.show.changes import print_counts, print_json, print_rows

    with og.open(graph_uri(uri, store), read_only=True) as graph:
        found = graph.diff(a, b, kinds=kind, types=type, ops=op, engine=engine)
        counts = found.summary()
        if json:
            print_json({"from": a, "to": b}, counts, () if summary else found)
            return
        print_counts(counts)
        if not summary:
            print_rows(found)


def _when(microseconds: int) -> str | None:
    if not microseconds:
        return None
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
