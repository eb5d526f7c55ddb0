"""`omnigraph cluster …`: validate, plan, apply, approve, status, refresh, import, force-unlock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.old_configuration import guidance
from omnigraph.cli.options import Actor, Json, Profile
from omnigraph.cli.show import cluster_report as show
from omnigraph.cli.show.output import Output
from omnigraph.cli.user_config import read_user_config
from omnigraph.errors import NotFound

cluster = typer.Typer(
    help="Run graphs as code: declare them in a folder, see what would change, apply it.", no_args_is_help=True
)

Config = Annotated[
    str | None,
    typer.Option(
        "--config", "-c", help="The folder with cluster.yaml, or a cluster of your configuration.", show_default="."
    ),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(cluster, name="cluster")


@cluster.command("validate")
def validate(config: Config = None, profile: Profile = None, json: Json = False, actor: Actor = None) -> None:
    """Check everything that can be checked without the store. All problems at once; exits with 1 when there are any."""
    from omnigraph.cluster import operations

    desired, problems = operations.validate(_folder(config, profile))
    out = Output(json=json)
    if json:
        out.document(
            {
                "valid": not problems,
                "cluster": desired.name or None,
                "resources": sorted(desired.resources),
                "config_digest": desired.config_digest if not problems else None,
                "problems": [problem.to_json() for problem in problems],
            }
        )
    else:
        show.validation(out, desired, problems)
    if problems:
        raise typer.Exit(1)


@cluster.command("plan")
def plan(config: Config = None, profile: Profile = None, json: Json = False, actor: Actor = None) -> None:
    """Show what apply would do: every change, its migration steps, what it waits for, the approvals it needs.

    Writes nothing. Exits with 1 when something is blocked.
    """
    from omnigraph.cluster import operations

    planned = operations.plan(_folder(config, profile))
    out = Output(json=json)
    if json:
        out.document(planned.to_json())
    else:
        show.plan(out, planned)
    if planned.blocked:
        raise typer.Exit(1)


@cluster.command("apply")
def apply(config: Config = None, profile: Profile = None, json: Json = False, actor: Actor = None) -> None:
    """Make what the folder asks for what is applied. A second run does nothing.

    Exits with 1 when something is left to do: it was blocked, it failed, or it waits for an approval.
    """
    from omnigraph.cluster import operations

    result = operations.apply(_folder(config, profile), _actor(actor, profile))
    out = Output(json=json)
    if json:
        out.document(result.to_json())
    else:
        show.applied(out, result)
    if not result.converged:
        raise typer.Exit(1)


@cluster.command("approve")
def approve(
    address: Annotated[str, typer.Argument(help="What is approved, as the plan names it: graph.ID or schema.ID.")],
    config: Config = None,
    profile: Profile = None,
    json: Json = False,
    actor: Actor = None,
) -> None:
    """Approve the deletion of a graph, or that a migration drops data for good.

    It is good for one apply, and for the folder and the ledger as they are now: any later change makes it stale.
    """
    from omnigraph.cluster import operations

    approval = operations.approve(_folder(config, profile), address, _actor(actor, profile))
    out = Output(json=json)
    if json:
        out.document(approval.to_json())
    else:
        by = f" by {approval.approved_by}" if approval.approved_by else ""
        out.say(f"approved{by}: {address}, {approval.effect}")
        out.say("good for the next apply, as long as neither the folder nor the ledger changes before it")


@cluster.command("status")
def status(config: Config = None, profile: Profile = None, json: Json = False, actor: Actor = None) -> None:
    """Show the ledger as it is, the lock, and whether every payload is there and unchanged. Reads only.

    Exits with 1 when a payload is missing or damaged, or a step was cut off.
    """
    from omnigraph.cluster import operations

    found = operations.status(_folder(config, profile))
    out = Output(json=json)
    if json:
        out.document(found.to_json())
    else:
        show.status(out, found)
    if not found.sound:
        raise typer.Exit(1)


@cluster.command("refresh")
def refresh(config: Config = None, profile: Profile = None, json: Json = False, actor: Actor = None) -> None:
    """Look at the real graphs and payloads, and record where they are not as they were applied.

    What is missing is planned again. Exits with 1 when something cannot be read; that is left alone.
    """
    from omnigraph.cluster import operations

    found = operations.refresh(_folder(config, profile), _actor(actor, profile))
    out = Output(json=json)
    if json:
        out.document(found.to_json())
    else:
        show.refreshed(out, found)
    if found.has_errors:
        raise typer.Exit(1)


@cluster.command("import")
def take_in(config: Config = None, profile: Profile = None, json: Json = False, actor: Actor = None) -> None:
    """Make the first ledger from graphs that exist; later, take in graphs that the ledger does not know."""
    from omnigraph.cluster import operations

    found = operations.take_in_graphs(_folder(config, profile), _actor(actor, profile))
    out = Output(json=json)
    if json:
        out.document(found.to_json())
    else:
        show.imported(out, found)
    if found.refused:
        raise typer.Exit(1)


@cluster.command("force-unlock")
def force_unlock(
    id: Annotated[str, typer.Argument(help="The id of the lock, as the refused command or `status` names it.")],
    config: Config = None,
    profile: Profile = None,
    json: Json = False,
    actor: Actor = None,
) -> None:
    """Take the lock away from its holder, who stops before its next step. A wrong id changes nothing."""
    from omnigraph.cluster import operations

    taken = operations.force_unlock(_folder(config, profile), id)
    out = Output(json=json)
    if json:
        out.document({"unlocked": True, "lock": taken.to_json()})
    else:
        out.say(f"took the lock from {taken.text}")


def _folder(config: str | None, profile: str | None) -> Path:
    """The folder that a command is about: a path, a name of the configuration, or where one stands."""
    folder = read_user_config().cluster_folder(config, profile)
    if not (folder / "cluster.yaml").is_file():
        told = guidance(folder) if folder != Path() else None
        more = f"\n\n{told}" if told else ""
        raise NotFound(f"there is no cluster.yaml in {folder.resolve()}: name its folder with --config{more}")
    return folder


def _actor(actor: str | None, profile: str | None) -> str | None:
    return read_user_config().acting(actor, profile)
