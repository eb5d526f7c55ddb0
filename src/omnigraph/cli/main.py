"""The `omnigraph` program: finds the command, turns errors into one readable paragraph and the right exit code."""

from __future__ import annotations

import copy
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.exceptions

from omnigraph.cli.commands import (
    blob,
    branches,
    clusters,
    commits,
    data,
    graphs,
    languages,
    maintenance,
    policies,
    schemas,
    servers,
    stored_queries,
    undo,
)
from omnigraph.cli.old_configuration import guidance
from omnigraph.cli.quick_start import start_without_pandas
from omnigraph.cli.show.output import Output, console, dump_json
from omnigraph.errors import LanguageError, OmniGraphError

app = typer.Typer(
    name="omnigraph",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_ROOMS = (
    graphs,
    data,
    blob,
    branches,
    undo,
    commits,
    schemas,
    languages,
    maintenance,
    policies,
    servers,
    stored_queries,
    clusters,
)

for room in _ROOMS:
    room.register(app)


_CANCELLED = 130


@app.callback(invoke_without_command=True)
def program(
    version: Annotated[bool, typer.Option("--version", help="Show the versions and exit.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error came from; works after a command too.")
    ] = False,
) -> None:
    """A typed, versioned property graph with branches, on Lance tables and Apache Spark.

    Every command has --help, and --json for programs.

    OMNIGRAPH_STORE names the graph, and OMNIGRAPH_ACTOR the actor, where a command is given none.
    """
    if version:
        Output().say(graphs.versions_text(graphs.installed_versions()))
        raise typer.Exit


def run() -> None:
    """The entry point of the console script."""
    start_without_pandas()
    sys.exit(main(sys.argv[1:]))


def main(argv: list[str]) -> int:
    """Run one command and return its exit code. With `--debug`, an error shows its traceback."""
    debug = "--debug" in argv
    argv = [word for word in argv if word != "--debug"]
    command = _described(argv[0] if argv else None)
    moved = guidance(Path())
    if moved is not None:
        console(stderr=True).print(moved, style="yellow", markup=False, highlight=False, soft_wrap=True)
    try:
        outcome = command.main(args=argv or ["--help"], prog_name="omnigraph", standalone_mode=False)
    except typer.exceptions.TyperException as error:
        if not error.format_message():
            # A group without its command: its help is printed, and nothing is wrong.
            return 0
        _report_usage(error)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        outcome = _CANCELLED
    except BrokenPipeError:
        return 0
    except OmniGraphError as error:
        if debug:
            raise
        _report(error, json="--json" in argv)
        return error.outcome.exit_code
    except Exception as error:
        if debug:
            raise
        _report_unexpected(error)
        return 1
    if outcome == _CANCELLED:  # the framework has turned Ctrl-C into an exit code by itself
        console(stderr=True).print("cancelled", style="yellow")
    return outcome if isinstance(outcome, int) else 0


@cache
def _described(word: str | None) -> Any:
    """The commands as the framework wants them described: the one that is called alone, where the first word names one.

    To describe them all takes longer than many of them run.
    """
    called = copy.copy(app)
    called.registered_commands = [command for command in app.registered_commands if command.name == word]
    called.registered_groups = [group for group in app.registered_groups if group.name == word]
    return typer.main.get_command(called if called.registered_commands or called.registered_groups else app)


def _report(error: OmniGraphError, *, json: bool) -> None:
    if json:
        sys.stdout.write(dump_json(error.to_json()) + "\n")
        return
    out = console(stderr=True)
    if not isinstance(error, LanguageError):
        out.print("error: ", style="bold red", end="")
    out.print(error.message, markup=False, highlight=False, soft_wrap=True)


def _report_usage(error: typer.exceptions.TyperException) -> None:
    out = console(stderr=True)
    out.print("error: ", style="bold red", end="")
    # The framework's own prefix says nothing to whoever typed the command.
    out.print(error.format_message().replace("Value error, ", ""), markup=False, highlight=False, soft_wrap=True)
    out.print("Run the command with --help to see how it is used.", style="dim")


def _report_unexpected(error: Exception) -> None:
    out = console(stderr=True)
    out.print("error: ", style="bold red", end="")
    text = f"unexpected {type(error).__name__}: {error}. Run the command again with --debug to see where it came from."
    out.print(text, markup=False, highlight=False, soft_wrap=True)
