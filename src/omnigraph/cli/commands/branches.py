"""`omnigraph branch …`: create, list, delete, merge, diff."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from omnigraph.cli.calling import Call, graph_command
from omnigraph.cli.options import DryRun, Engine, Kinds, MergeGranularity, MergeStrategy, Ops, Resolve, Types
from omnigraph.cli.show.output import Output
from omnigraph.errors import NotFound, StorageError
from omnigraph.times import shown

if TYPE_CHECKING:
    from omnigraph.merge.merge import MergeResult

branch = typer.Typer(help="Create, list, delete, compare and merge branches.", no_args_is_help=True)

_WOULD = {
    "merged": "would go through",
    "fast_forward": "would be a fast forward",
    "already_up_to_date": "would change nothing, the target is up to date",
    "conflicts": "would be refused, because of conflicts",
}

Name = Annotated[str, typer.Argument(help="The branch.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(branch, name="branch")


@graph_command(branch, "create", writes=True)
def create(
    call: Call,
    name: Name,
    from_: Annotated[str, typer.Option("--from", help="The branch (or commit, or tag) to start from.")] = "main",
) -> None:
    """Make a branch. It costs nothing: no table is copied."""
    with call.open() as graph:
        made = graph.branch_create(name, from_=from_)
    if call.out.json:
        call.out.document(made.to_json())
    else:
        call.out.say(f"made branch {made.name} from {from_} at commit {made.source_commit}")


@graph_command(branch, "list")
def list_(call: Call) -> None:
    """List the branches with where they started, who made them and their newest commit."""
    found: list[tuple[Any, str | None]] = []
    damage: dict[str, str] = {}
    with call.read() as graph:
        for ref in graph.branches.list():
            head = None
            try:
                head = graph.head(ref.name).graph_commit_id
            except NotFound:
                continue  # One that is deleted meanwhile is no branch any more.
            except StorageError as error:
                # The others are there all the same, and who looks for what is left needs their names.
                damage[ref.name] = error.message
            found.append((ref, head))
    if call.out.json:
        listed: list[dict[str, Any]] = [{**ref.to_json(), "head": head} for ref, head in found]
        call.out.document({"branches": [row | _told(damage.get(row["name"])) for row in listed]})
    else:
        rows = [
            (ref.name, ref.source_branch, ref.created_by, shown(ref.created_at) if ref.created_at else None, head)
            for ref, head in found
        ]
        call.out.table(("branch", "from", "made by", "made", "head"), rows)
        for name, message in damage.items():
            call.out.say(f"the newest commit of {name} cannot be read: {message}")
    if damage:
        raise typer.Exit(1)


def _told(damage: str | None) -> dict[str, str]:
    return {"error": damage} if damage is not None else {}


@graph_command(branch, "delete", writes=True, destroys=True)
def delete(
    call: Call,
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Also when other branches were made from it; they stay as they are.")
    ] = False,
) -> None:
    """Delete a branch. What a merge base of live branches needs stays until cleanup."""
    call.confirm(f"delete branch {name}")
    with call.open() as graph:
        graph.branch_delete(name, force=force)
    if call.out.json:
        call.out.document({"name": name, "deleted": True})
    else:
        call.out.say(f"deleted branch {name}")


@graph_command(branch, "merge", writes=True)
def merge(
    call: Call,
    source: Annotated[str, typer.Argument(help="The branch to merge.")],
    into: Annotated[str, typer.Option("--into", help="The branch that takes the changes.")] = "main",
    strategy: MergeStrategy = None,
    granularity: MergeGranularity = None,
    resolve: Resolve = None,
    dry_run: DryRun = False,
    delete_branch: Annotated[bool, typer.Option("--delete-branch", help="Delete the source afterwards.")] = False,
    engine: Engine = "auto",
) -> None:
    """Merge a branch into another one: one commit, or every conflict and no effect."""
    from omnigraph.cli.show.changes import print_json

    out = call.out
    out.echo_write(f"merge {source} into {into} of {call.uri}{' (dry run)' if dry_run else ''}")
    with call.open(read_only=dry_run) as graph:
        result = graph.merge(
            source,
            into,
            strategy=strategy,
            resolutions=read_answers(resolve) if resolve else None,
            dry_run=dry_run,
            delete_source=delete_branch,
            granularity=granularity,
            engine=engine,
        )
        if out.json and dry_run:
            print_json(result.to_json(), result.tables, result.changes)
        elif out.json:
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
    from omnigraph.cli.show.changes import print_outcome

    print_outcome(out, result)
    for one in result.reverted:
        out.say(
            f"commit {one.graph_commit_id} of {result.source} was reverted on {result.target} by {one.by}: the merge "
            "does not bring it again; revert that to have it back"
        )
    if result.dry_run:
        out.say(f"dry run, nothing was written: the merge {_WOULD[result.outcome.value]}")
    else:
        commit = f", commit {result.commit.graph_commit_id}" if result.commit else ""
        out.say(f"{result.outcome.value}{commit}")
    if result.source_deleted:
        out.say(f"deleted branch {result.source}")
    elif result.source_kept_because:
        out.say(f"branch {result.source} stays: {result.source_kept_because}")


@graph_command(branch, "granularity", writes=True)
def granularity(
    call: Call,
    wanted: Annotated[
        Literal["row", "property", "default"], typer.Argument(help="What two changes collide in: a row, or a property.")
    ],
) -> None:
    """Choose for the whole graph how fine the changes are that can collide in merges; default leaves it to settings."""
    with call.open() as graph:
        graph.set_granularity(None if wanted == "default" else wanted)
        chosen = graph.granularity
    if call.out.json:
        call.out.document({"granularity": chosen})
    else:
        call.out.say(f"merges of this graph go by {chosen}, where they are not told otherwise")


@graph_command(branch, "diff")
def diff(
    call: Call,
    a: Annotated[str, typer.Argument(help="A branch, commit or tag.")],
    b: Annotated[str, typer.Argument(help="The branch, commit or tag to compare it with.")],
    kind: Kinds = None,
    type: Types = None,
    op: Ops = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only the counts.")] = False,
    engine: Engine = "auto",
) -> None:
    """Show what differs between two branches, commits or tags: counts first, then the changed rows."""
    from omnigraph.cli.show.changes import print_counts, print_json, print_rows

    with call.read() as graph:
        found = graph.diff(a, b, kinds=kind, types=type, ops=op, engine=engine)
        counts = found.summary()
        if call.out.json:
            print_json({"from": a, "to": b}, counts, () if summary else found)
            return
        print_counts(counts)
        if not summary:
            print_rows(found)
