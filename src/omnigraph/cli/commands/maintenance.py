"""Commands for operators: optimize, index, repair, cleanup, verify, salvage, relocate, tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.calling import Call, graph_command
from omnigraph.cli.options import Engine
from omnigraph.cli.show.output import Output
from omnigraph.times import shown

if TYPE_CHECKING:
    from omnigraph.maintain.cleanup import CleanupResult
    from omnigraph.maintain.optimize.optimize import MaintenanceResult
    from omnigraph.maintain.repair import RepairReport
    from omnigraph.maintain.verify import VerifyReport

tag = typer.Typer(help="Name commits so that cleanup keeps them.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    graph_command(app, "optimize", branch=True, writes=True)(optimize)
    graph_command(app, "index", branch=True, writes=True)(index)
    graph_command(app, "repair", writes=True)(repair)
    graph_command(app, "cleanup", writes=True, destroys=True)(cleanup)
    graph_command(app, "verify")(verify)
    graph_command(app, "salvage")(salvage)
    graph_command(app, "relocate", writes=True)(relocate)
    app.add_typer(tag, name="tag")


def optimize(
    call: Call,
    table: Annotated[list[str] | None, typer.Option("--table", help="Only this table; may be repeated.")] = None,
    engine: Engine = "auto",
) -> None:
    """Compact small fragments and bring indexes up to date, in one commit. Changes no data."""
    call.out.echo_write(f"optimize branch {call.branch} of {call.uri}")
    with call.open() as graph:
        _show(call.out, graph.optimize(call.branch, tables=table, engine=engine))


def index(call: Call, engine: Engine = "auto") -> None:
    """Build the declared indexes that are missing and extend those that lag, in one commit."""
    call.out.echo_write(f"build indexes of branch {call.branch} of {call.uri}")
    with call.open() as graph:
        _show(call.out, graph.ensure_indices(call.branch, engine=engine))


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


def repair(
    call: Call,
    confirm: Annotated[bool, typer.Option("--confirm", help="Publish drift that changes no data.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --confirm: publish everything else as it stands, too.")
    ] = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="With --force: put it back to what is published instead.")
    ] = False,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="With --confirm: move away unfinished writes that recovery refuses.")
    ] = False,
) -> None:
    """Show tables that moved without being published, and writes that recovery refused; mend them on request.

    Changes nothing without --confirm. Exits with 1 when something was refused.
    """
    if confirm:
        call.out.echo_write(f"repair {call.uri}")
    with call.open(read_only=not confirm) as graph:
        report = graph.repair(confirm=confirm, force=force, restore=restore, set_aside=set_aside)
    if call.out.json:
        call.out.document(report.to_json())
    else:
        _show_repair(call.out, report)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _show_repair(out: Output, report: RepairReport) -> None:
    out.table(
        ("branch", "table", "published", "newest", "verdict", "transactions", "action"),
        [
            (
                t.drift.branch,
                t.drift.table_key,
                t.drift.pinned,
                t.drift.head,
                t.drift.verdict.value,
                ", ".join(t.drift.transactions),
                f"{t.action}: {t.error}" if t.error else t.action,
            )
            for t in report.tables
        ],
        empty="no drift",
    )
    for one in report.pending:
        classes = ", ".join(f"{key} {class_}" for key, class_ in one.classes)
        out.say(f"unfinished {one.kind} {one.operation_id} on branch {one.branch} ({classes or 'no tables'})")
        out.say(f"  {one.action}{f': {one.reason}' if one.reason else ''}")
    for head in report.heads:
        out.say(f"{head.lost}")
        out.say(f"  {head.action}{f': {head.error}' if head.error else ''}")
    if report.log:
        out.say(str(report.log))
    for commit in report.commits:
        out.say(f"commit {commit.graph_commit_id}")


def cleanup(
    call: Call,
    keep: Annotated[
        int | None, typer.Option("--keep", help="Commits of each branch that stay; 10 when no age is given.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", help="Remove only what is older than this, such as 30d or 12h.")
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Remove it; without this it is only shown.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Allow to keep fewer than 3 commits.")] = False,
) -> None:
    """Remove old history and what crashed writers left. Shows what would go unless --confirm is given.

    What a branch, a tag, a merge base or a live writer needs always stays. Exits with 1 when something could not be
    removed; run it again then.
    """
    kept = 10 if keep is None and older_than is None else keep
    if confirm:
        call.confirm("remove old history")
        call.out.echo_write(f"clean up {call.uri}")
    with call.open(read_only=not confirm) as graph:
        result = graph.cleanup(keep_versions=kept, older_than=older_than, confirm=confirm, force=force)
    if call.out.json:
        call.out.document(result.to_json())
    else:
        _show_cleanup(call.out, result)
    if result.failed:
        raise typer.Exit(1)


def _show_cleanup(out: Output, result: CleanupResult) -> None:
    rows = [
        (t.table_key, t.old_versions_removed, t.forks_removed, t.files_removed, t.bytes_removed, t.error)
        for t in result.tables
    ]
    out.table(("table", "old versions", "forks", "files", "bytes", "error"), rows)
    if result.preview:
        out.say(f"nothing was removed: this is a preview. {result.commits_kept} commits stay; add --confirm to remove")
    else:
        out.say(f"{result.commits_kept} commits stay readable")


def verify(
    call: Call,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also compare every file with the checksum that its commit recorded.")
    ] = False,
) -> None:
    """Read everything and check it. Changes nothing; exits with 1 when something is wrong."""
    with call.read() as graph:
        report = graph.verify(deep=deep)
    if call.out.json:
        call.out.document(report.to_json())
    else:
        _show_verify(call.out, report)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def salvage(
    call: Call,
    to: Annotated[str, typer.Option("--to", help="A new directory for what can be read.")],
    branch: Annotated[list[str] | None, typer.Option("--branch", help="Only this branch; may be repeated.")] = None,
    commit: Annotated[
        list[str] | None, typer.Option("--commit", help="This commit, by its id; may be repeated.")
    ] = None,
) -> None:
    """Write out all that can be read of a damaged graph, as JSON lines with its schema, and list what cannot.

    Changes nothing. Exits with 1 when something could not be read; `report.json` says what.
    """
    from omnigraph.maintain.salvage import salvage as take_out

    call.require_admin()
    out = call.out
    report = take_out(call.store_uri, to, at=commit or (), branches=branch or ())
    if out.json:
        out.document(report.to_json())
    else:
        rows = [
            (state.name, table.table_key, table.rows, table.published_rows, "; ".join(table.lost) or None)
            for state in report.states
            for table in state.tables
        ]
        out.table(("branch", "table", "rows written", "published", "lost"), rows)
        for text in (*report.lost, *(f"{state.name}: {one}" for state in report.states for one in state.lost)):
            out.say(f"lost: {text}")
        out.say(f"{report.rows} rows are in {report.path}")
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def relocate(
    call: Call,
    confirm: Annotated[bool, typer.Option("--confirm", help="Write it down; without this it is only counted.")] = False,
) -> None:
    """After a graph was moved or copied: write down where it lies now. It works without; some comparisons get quicker.

    Exits with 1 when a file is damaged; it is left as it is.
    """
    if confirm:
        call.out.echo_write(f"relocate {call.uri}")
    with call.open(read_only=not confirm) as graph:
        report = graph.relocate(confirm=confirm)
    if call.out.json:
        call.out.document(report.to_json())
    else:
        done = "name another place; add --confirm to correct them" if report.preview else "were corrected"
        call.out.say(f"{report.versions} versions in {report.tables} tables {done}")
        for path in report.damaged:
            call.out.say(f"damaged: {path}; `omnigraph verify --deep` says more")
    if report.damaged:
        raise typer.Exit(1)


def _show_verify(out: Output, report: VerifyReport) -> None:
    rows = [(f.rule.value, f.branch, f.table_key, f.row_id, f.message) for f in report.findings]
    if rows:
        out.table(("rule", "branch", "table", "row", "finding"), rows)
    state = "sound" if report.ok else f"{len(report.findings)} findings"
    out.say(
        f"{state}: {report.branches} branches, {report.tables} table versions, {report.rows} rows, "
        f"{report.commits} commits"
    )


@graph_command(tag, "create", writes=True)
def create(
    call: Call,
    name: Annotated[str, typer.Argument(help="The tag.")],
    target: Annotated[str, typer.Argument(help="The branch, commit or tag to name.")],
) -> None:
    """Name a commit."""
    with call.open() as graph:
        made = graph.tags.create(name, target)
    if call.out.json:
        call.out.document(made.to_json())
    else:
        call.out.say(f"tag {made.name} names commit {made.graph_commit_id}")


@graph_command(tag, "list")
def list_(call: Call) -> None:
    """List the tags."""
    with call.read() as graph:
        tags = graph.tags.list()
    if call.out.json:
        call.out.document({"tags": [found.to_json() for found in tags]})
        return
    rows = [(t.name, t.graph_commit_id, t.created_by, shown(t.created_at)) for t in tags]
    call.out.table(("tag", "commit", "made by", "made"), rows, empty="no tags")


@graph_command(tag, "delete", writes=True)
def delete(call: Call, name: Annotated[str, typer.Argument(help="The tag.")]) -> None:
    """Remove a tag. The commit stays until cleanup."""
    with call.open() as graph:
        graph.tags.delete(name)
    if call.out.json:
        call.out.document({"name": name, "deleted": True})
    else:
        call.out.say(f"deleted tag {name}")
