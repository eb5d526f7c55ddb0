"""`omnigraph commit …` and `omnigraph changes`: the history of a graph."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from omnigraph.cli.options import Branch, Json, Store, Uri, graph_uri
from omnigraph.cli.show.output import Output
from omnigraph.errors import BadRequest

commit = typer.Typer(help="Look at commits: list, show, changes, recoveries.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(commit, name="commit")
    app.command("changes")(changes)


@commit.command("list")
def list_(
    uri: Uri = None,
    store: Store = None,
    branch: Branch = "main",
    filter: Annotated[list[str] | None, typer.Option("--filter", help="actor=NAME, since=TIME or until=TIME.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many.", min=0)] = None,
    graph_: Annotated[bool, typer.Option("--graph", help="Draw the history as a graph.")] = False,
    json: Json = False,
) -> None:
    """List the commits that a branch can reach, newest first."""
    import omnigraph as og

    wanted = _filters(filter or [])
    out = Output(json=json)
    with og.open(graph_uri(uri, store), read_only=True, branch=branch) as graph:
        found = graph.log(
            branch, by=wanted.get("actor"), since=wanted.get("since"), until=wanted.get("until"), limit=limit
        )
        if json:
            out.document({"commits": [c.to_json() for c in found]})
        elif graph_:
            from omnigraph.cli.show.history_graph import draw

            for line in draw(found):
                out.say(line)
        else:
            rows = [(c.graph_commit_id, _when(c.created_at), c.kind.value, c.actor_id, c.branch) for c in found]
            out.table(("commit", "time", "kind", "actor", "branch"), rows, empty="no commits")


@commit.command()
def show(
    id: Annotated[str, typer.Argument(help="The commit.")], uri: Uri = None, store: Store = None, json: Json = False
) -> None:
    """Show one commit."""
    import omnigraph as og

    out = Output(json=json)
    with og.open(graph_uri(uri, store), read_only=True) as graph:
        found = graph.commit(id)
        if json:
            out.document(found.to_json())
            return
        out.say(f"commit {found.graph_commit_id}")
        for label, value in (
            ("branch", found.branch),
            ("kind", found.kind.value),
            ("actor", found.actor_id or "-"),
            ("time", _when(found.created_at)),
            ("parent", found.parent_commit_id or "-"),
            ("merged", found.merged_parent_commit_id),
            ("manifest", f"version {found.manifest_version} of {found.manifest_branch or 'the main line'}"),
            ("changes", "data" if found.changes_data else "layout only"),
        ):
            if value is not None:
                out.say(f"  {label:<9}{value}")


@commit.command("changes")
def commit_changes(
    id: Annotated[str, typer.Argument(help="The commit.")], uri: Uri = None, store: Store = None, json: Json = False
) -> None:
    """Show what one commit changed against its first parent."""
    import omnigraph as og
    from omnigraph.cli.show.changes import print_counts, print_json, print_rows
    from omnigraph.merge.changes import counted

    with og.open(graph_uri(uri, store), read_only=True) as graph:
        counts = counted(graph.commit_changes(id))
        if json:
            print_json({"commit": graph.commit(id).to_json()}, counts, graph.commit_changes(id))
            return
        print_counts(counts)
        print_rows(graph.commit_changes(id))


def changes(
    uri: Uri = None,
    store: Store = None,
    branch: Branch = "main",
    since: Annotated[str, typer.Option("--since", help="A cursor, a commit, beginning or now.")] = "beginning",
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only node or edge.")] = None,
    type: Annotated[list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")] = None,
    op: Annotated[list[str] | None, typer.Option("--op", help="Only insert, update or delete.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many commits.", min=1)] = None,
    json: Json = False,
) -> None:
    """The change feed of a branch, one block per commit. Keep the cursor at the end to go on from there."""
    import omnigraph as og
    from omnigraph.cli.show.changes import print_feed, print_feed_json

    with og.open(graph_uri(uri, store), read_only=True, branch=branch) as graph:
        page = graph.changes(branch, since, kinds=kind, types=type, ops=op, limit=limit)
        if json:
            print_feed_json(page)
        else:
            print_feed(page)


@commit.command()
def recoveries(uri: Uri = None, store: Store = None, json: Json = False) -> None:
    """List what recovery did: one row for each unfinished write that was resolved."""
    import omnigraph as og

    out = Output(json=json)
    with og.open(graph_uri(uri, store), read_only=True) as graph:
        rows = graph.recoveries()
        if json:
            out.document({"recoveries": [row.to_json() for row in rows]})
            return
        shown = [(r.operation_id, r.kind, r.writer_kind, r.recovery_for_actor, r.graph_commit_id) for r in rows]
        out.table(("operation", "kind", "writer", "for actor", "commit"), shown, empty="nothing was ever recovered")


def _filters(texts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in ("actor", "since", "until"):
            raise BadRequest(f"--filter {text} is not understood: use actor=NAME, since=TIME or until=TIME (ISO text)")
        found[name] = value if name == "actor" else _time(value, text)
    return found


def _time(value: str, text: str) -> int:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise BadRequest(f"--filter {text}: {value} is not an ISO time such as 2026-01-02T03:04:05Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)


def _when(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
