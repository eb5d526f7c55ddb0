"""`omnigraph revert`, `restore` and `cherry-pick`: undo, each one new commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.calling import Call, graph_command
from omnigraph.cli.commands.branches import read_answers
from omnigraph.cli.options import CommitSpan, DryRun, Engine, MergeGranularity, MergeStrategy, Resolve

if TYPE_CHECKING:
    from omnigraph.merge.undo.undo_result import UndoResult

_WOULD = {
    "done": "would go through",
    "nothing_to_do": "would change nothing",
    "conflicts": "would be refused, because of conflicts",
}


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    graph_command(app, "revert", branch=True, writes=True)(revert)
    graph_command(app, "restore", branch=True, writes=True)(restore)
    graph_command(app, "cherry-pick", writes=True)(cherry_pick)


def revert(
    call: Call,
    commit: CommitSpan,
    strategy: MergeStrategy = None,
    granularity: MergeGranularity = None,
    resolve: Resolve = None,
    dry_run: DryRun = False,
    engine: Engine = "auto",
) -> None:
    """Take back what a commit changed. What was changed again since is a conflict.

    Example: omnigraph revert 01J9ZX4Q graph.omni --dry-run
    """
    call.out.echo_write(f"revert {commit} on {call.branch} of {call.uri}{' (dry run)' if dry_run else ''}")
    with call.open(read_only=dry_run) as graph:
        result = graph.revert(
            commit,
            branch=call.branch,
            strategy=strategy,
            granularity=granularity,
            resolutions=read_answers(resolve) if resolve else None,
            dry_run=dry_run,
            engine=engine,
        )
        show(call, result)


def restore(
    call: Call,
    to: Annotated[str, typer.Argument(help="The state to go back to: a commit, a tag or a time.")],
    dry_run: DryRun = False,
    engine: Engine = "auto",
) -> None:
    """Make an older state the state of a branch again, whatever happened between.

    Example: omnigraph restore "2 hours ago" graph.omni --dry-run
    """
    call.out.echo_write(f"restore {call.branch} of {call.uri} to {to}{' (dry run)' if dry_run else ''}")
    with call.open(read_only=dry_run) as graph:
        show(call, graph.restore(to, branch=call.branch, dry_run=dry_run, engine=engine))


def cherry_pick(
    call: Call,
    commit: CommitSpan,
    into: Annotated[str, typer.Option("--into", help="The branch that takes the changes.")] = "main",
    strategy: MergeStrategy = None,
    granularity: MergeGranularity = None,
    resolve: Resolve = None,
    dry_run: DryRun = False,
    engine: Engine = "auto",
) -> None:
    """Bring what one commit changed to another branch.

    Example: omnigraph cherry-pick 01J9ZX4Q graph.omni --into release
    """
    call.out.echo_write(f"cherry-pick {commit} into {into} of {call.uri}{' (dry run)' if dry_run else ''}")
    with call.open(read_only=dry_run) as graph:
        result = graph.cherry_pick(
            commit,
            into=into,
            strategy=strategy,
            granularity=granularity,
            resolutions=read_answers(resolve) if resolve else None,
            dry_run=dry_run,
            engine=engine,
        )
        show(call, result)


def show(call: Call, result: UndoResult) -> None:
    """What was done, or would be."""
    from omnigraph.cli.show.changes import print_json, print_outcome

    out = call.out
    if out.json and result.dry_run:
        print_json(result.to_json(), result.tables, result.changes)
    elif out.json:
        out.document(result.to_json())
    else:
        print_outcome(out, result, counts=bool(result.tables) or result.dry_run)
        name = result.operation.replace("_", "-")
        if result.dry_run:
            out.say(f"dry run, nothing was written: the {name} {_WOULD[result.outcome.value]}")
        elif result.commit is None:
            out.say(f"nothing to do: {result.branch} is as it would be")
        else:
            out.say(f"{name} of {result.about} on {result.branch}, commit {result.commit.graph_commit_id}")
    if result.conflicts:
        raise typer.Exit(3)
