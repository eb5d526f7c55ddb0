"""`omnigraph commit …` and `omnigraph changes`: the history of a graph."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from omnigraph.cli.calling import Call, graph_command
from omnigraph.cli.options import CommitId, Kinds, Ops, Types
from omnigraph.errors import BadRequest
from omnigraph.times import shown, to_microseconds

commit = typer.Typer(help="Look at commits: list, show, changes, recoveries.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(commit, name="commit")
    graph_command(app, "changes", branch=True)(changes)


@graph_command(commit, "list", branch=True, draws=True)
def list_(
    call: Call,
    filter: Annotated[
        list[str] | None, typer.Option("--filter", help="actor=NAME, since=TIME or until=TIME (ISO, in UTC).")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many.", min=0)] = None,
    dag: Annotated[
        bool, typer.Option("--dag", "--graph", help="Draw the history. A switch without a value: the URI stands alone.")
    ] = False,
) -> None:
    """List the commits that a branch can reach, newest first.

    Example: omnigraph commit list graph.omni --branch review/1 --dag
    """
    wanted = _filters(filter or [])
    with call.read_branch() as graph:
        found = graph.log(by=wanted.get("actor"), since=wanted.get("since"), until=wanted.get("until"), limit=limit)
    if call.out.json:
        call.out.document({"commits": [c.to_json() for c in found]})
    elif dag:
        from omnigraph.cli.show.history_graph import draw

        for line in draw(found):
            call.out.say(line)
    else:
        rows = [(c.graph_commit_id, shown(c.created_at), c.kind.value, c.actor_id, c.branch) for c in found]
        call.out.table(("commit", "time", "kind", "actor", "branch"), rows, empty="no commits")


@graph_command(commit, "show")
def show(call: Call, id: CommitId) -> None:
    """Show one commit."""
    with call.read() as graph:
        found = graph.commit(id)
    if call.out.json:
        call.out.document(found.to_json())
        return
    call.out.say(f"commit {found.graph_commit_id}")
    for label, value in (
        ("branch", found.branch),
        ("kind", found.kind.value),
        ("about", found.about),
        ("actor", found.actor_id or "-"),
        ("time", shown(found.created_at)),
        ("parent", found.parent_commit_id or "-"),
        ("merged", found.merged_parent_commit_id),
        ("manifest", f"version {found.manifest_version} of {found.manifest_branch or 'the main line'}"),
        ("changes", "data" if found.changes_data else "layout only"),
    ):
        if value is not None:
            call.out.say(f"  {label:<9}{value}")


@graph_command(commit, "changes")
def commit_changes(call: Call, id: CommitId) -> None:
    """Show what one commit changed against its first parent."""
    from omnigraph.cli.show.changes import print_counts, print_json, print_rows
    from omnigraph.merge.changes import counted

    with call.read() as graph:
        counts = counted(graph.commit_changes(id))
        if call.out.json:
            print_json({"commit": graph.commit(id).to_json()}, counts, graph.commit_changes(id))
            return
        print_counts(counts)
        print_rows(graph.commit_changes(id))


def changes(
    call: Call,
    since: Annotated[str, typer.Option("--since", help="A cursor, a commit, beginning or now.")] = "beginning",
    kind: Kinds = None,
    type: Types = None,
    op: Ops = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many commits.", min=1)] = None,
) -> None:
    """The change feed of a branch, one block per commit. Keep the cursor at the end to go on from there."""
    from omnigraph.cli.show.changes import print_feed, print_feed_json

    with call.read_branch() as graph:
        page = graph.changes(since=since, kinds=kind, types=type, ops=op, limit=limit)
        if call.out.json:
            print_feed_json(page)
        else:
            print_feed(page)


@graph_command(commit, "recoveries")
def recoveries(call: Call) -> None:
    """List what recovery did: one row for each unfinished write that was resolved."""
    with call.read() as graph:
        rows = graph.recoveries()
    if call.out.json:
        call.out.document({"recoveries": [row.to_json() for row in rows]})
        return
    table = [(r.operation_id, r.kind, r.writer_kind, r.recovery_for_actor, r.graph_commit_id) for r in rows]
    headers = ("operation", "kind", "writer", "for actor", "commit")
    call.out.table(headers, table, empty="nothing was ever recovered")


def _filters(texts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in ("actor", "since", "until"):
            raise BadRequest(f"--filter {text} is not understood: use actor=NAME, since=TIME or until=TIME (ISO text)")
        found[name] = value if name == "actor" else to_microseconds(value, f"--filter {name}", in_utc=True)
    return found
