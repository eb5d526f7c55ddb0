"""Options that commands share, defined once so that help and behaviour are the same everywhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from omnigraph import choices
from omnigraph.errors import BadRequest

Uri = Annotated[str | None, typer.Argument(help="The graph: a local path, file:// or s3:// URI.", show_default=False)]
Store = Annotated[
    str | None, typer.Option("--store", envvar="OMNIGRAPH_STORE", help="The graph, instead of the positional URI.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not echo what the command will touch.")]
Actor = Annotated[
    str | None,
    typer.Option("--as", envvar="OMNIGRAPH_ACTOR", help="Who asks: commits are recorded for it, a policy allows it."),
]
Policy = Annotated[
    Path | None,
    typer.Option("--policy", envvar="OMNIGRAPH_POLICY", help="A policy file: what it does not allow is refused."),
]
Server = Annotated[
    str | None,
    typer.Option("--server", envvar="OMNIGRAPH_SERVER", help="A server, by its name in the configuration or its URL."),
]
GraphId = Annotated[str | None, typer.Option("--graph", "--graph-id", help="Which graph of the server.")]
OtherGraphId = Annotated[str | None, typer.Option("--graph-id", help="Which graph of the server.")]
Profile = Annotated[
    str | None, typer.Option("--profile", envvar="OMNIGRAPH_PROFILE", help="A profile of the configuration.")
]
Branch = Annotated[str, typer.Option("--branch", "-b", help="The branch to work on.")]
Engine = Annotated[choices.Engine, typer.Option("--engine", help="What runs bulk work; auto decides by size.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        "--snapshot",
        help="Read an older state: a commit (or its beginning), a tag, a manifest version, a time.",
    ),
]
IfCommit = Annotated[
    str | None, typer.Option("--if-commit", help="Only if no data changed on the branch since this commit.")
]
Kinds = Annotated[list[str] | None, typer.Option("--kind", help="Only node or edge; may be repeated.")]
Types = Annotated[list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")]
Ops = Annotated[list[str] | None, typer.Option("--op", help="Only insert, update or delete; may be repeated.")]
SchemaFile = Annotated[Path, typer.Option("--schema", "-s", help="The schema file (.pg); - is standard input.")]
CommitId = Annotated[str, typer.Argument(help="The commit: its id or the beginning of it, a tag, a time.")]
CommitSpan = Annotated[str, typer.Argument(help="The commit, or a range a..b: the commits after a, up to b.")]
MergeStrategy = Annotated[
    choices.Strategy | None, typer.Option("--strategy", help="Which side wins where both sides changed a row.")
]
MergeGranularity = Annotated[
    choices.Granularity | None,
    typer.Option("--granularity", help="Whether two changes of one row collide, or only those of one property."),
]
Resolve = Annotated[
    Path | None,
    typer.Option("--resolve", help="A JSON file with answers for single rows; see the page on merging."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen and write nothing.")]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        envvar="OMNIGRAPH_SPARK_MASTER",
        help="The Spark master: local[*], spark://…, yarn, k8s://….",
        callback=lambda value: use_master(value),
        expose_value=True,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before destroying something on a remote store.")]


def use_master(master: str | None) -> str | None:
    """Make a Spark session of this process, should one be built, use this master."""
    if master:
        os.environ["OMNIGRAPH_SPARK_MASTER"] = master
    return master


def graph_uri(uri: str | None, store: str | None) -> str:
    """The one graph that a command is about."""
    chosen = uri or store
    if not chosen:
        raise BadRequest("no graph was named: give its URI as the last argument, or --store URI")
    return chosen


def is_local(uri: str) -> bool:
    """Whether the graph lies on this machine's disk."""
    return "://" not in uri or uri.startswith(("file://", "memory://"))


def confirm_destructive(uri: str, yes: bool, what: str) -> None:
    """On a store that is not local, destroying something needs `--yes` or an answer at the prompt."""
    import sys

    if yes or is_local(uri):
        return
    if sys.stdin.isatty() and typer.confirm(f"{what} on {uri}?"):
        return
    raise BadRequest(f"{what} on {uri} needs --yes, because the store is not local")
