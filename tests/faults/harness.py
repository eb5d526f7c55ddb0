"""Killing a real child process at a failpoint, quickly.

Children come from a fork server that has imported everything and used nothing of it but the languages, so one costs
some milliseconds instead of the second that the imports take. A child is a process of its own: it dies by SIGKILL,
without a `finally`.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from omnigraph import failpoints

ROOMS = [
    "omnigraph.write.mutate.mutate",
    "omnigraph.write.mutate.combined",
    "omnigraph.write.load.load",
    "omnigraph.write.embedding.embed_texts",
    "omnigraph.write.schema.schema_apply",
    "omnigraph.merge.merge",
    "omnigraph.merge.undo.revert",
    "omnigraph.maintain.optimize.optimize",
    "omnigraph.maintain.optimize.tail",
]
PRELOADED = [
    "pytest",
    "hypothesis",
    "omnigraph.maintain.cleanup",
    "omnigraph.maintain.copying.copy",
    "omnigraph.spark.stream.batch_commit",
    "omnigraph.write.decode.json_lines",
    "tests.faults.scenarios",
    "tests.faults.graph_writers",
    "tests.faults.harness",
    "tests.ledger.processes",
    "tests.cluster.operators",
    "tests.faults.languages_at_hand",
    *ROOMS,
]
CHILD_SECONDS = 180.0

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


class NotReached(AssertionError):
    """The child came to its end without meeting the failpoint."""


def run_killed(function: Callable[..., object], *args: Any, at: str, hit: int = 1) -> int:
    """Run `function(*args)` in a child that is killed at the `hit`-th time it reaches the failpoint `at`; its id.

    `function` must be a top-level function of an importable module. `NotReached` when it ends by itself.
    """
    child = start_child(function, *args, failpoints_on={at: f"kill:{hit}"})
    end = join(child)
    if end == 0:
        raise NotReached(f"{function.__qualname__} never reached {at} for the {hit}. time")
    assert end == -signal.SIGKILL, f"the child ended with {end} instead of being killed at {at}"
    assert child.pid is not None
    return child.pid


def run_child(function: Callable[..., object], *args: Any, failpoints_on: dict[str, str] | None = None) -> None:
    """Run `function(*args)` in a child to its end."""
    end = join(start_child(function, *args, failpoints_on=failpoints_on))
    assert end == 0, f"{function.__qualname__} ended with {end}"


def answers_of(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run `function` once per call, each in a child of its own and all at the same time; what each returned."""
    children = []
    for args in calls:
        ours, theirs = _context.Pipe(duplex=False)
        child = _context.Process(target=_answer, args=(theirs, function, args, _environment()), daemon=True)
        child.start()
        theirs.close()
        children.append((child, ours))
    answers = []
    for child, ours in children:
        with contextlib.suppress(EOFError):
            if ours.poll(CHILD_SECONDS):
                answers.append(ours.recv())
        end = join(child)
        assert end == 0, f"{function.__qualname__} ended with {end}"
    return answers


def failpoints_met(function: Callable[..., object], *args: Any) -> dict[str, int]:
    """Run `function(*args)` here and count how often it reaches each failpoint."""
    for room in ROOMS:
        # A room declares its failpoints when it is imported, and the graph imports it at its first use.
        importlib.import_module(room)
    with contextlib.ExitStack() as stack:
        for name in sorted(failpoints.KNOWN):
            stack.enter_context(failpoints.active(name, "sleep:0"))
        function(*args)
        return {name: failpoints.hits(name) for name in sorted(failpoints.KNOWN) if failpoints.hits(name)}


def start_child(
    function: Callable[..., object], *args: Any, failpoints_on: dict[str, str] | None = None
) -> BaseProcess:
    """Start a child that runs `function(*args)` with these failpoints switched on."""
    child = _context.Process(target=_run, args=(function, args, failpoints_on or {}, _environment()), daemon=True)
    child.start()
    return child


def join(child: BaseProcess) -> int:
    """Wait for a child; its exit code."""
    child.join(CHILD_SECONDS)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise AssertionError(f"a child process did not end within {CHILD_SECONDS:.0f} s")
    return child.exitcode


def wait_for(path: Path, seconds: float = CHILD_SECONDS) -> None:
    """Wait until a file is there, such as the one by which a paused failpoint says that it was reached."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come within {seconds:.0f} s"
        time.sleep(0.005)


def _environment() -> dict[str, str]:
    """What a child must be told: the fork server keeps the environment it was started with."""
    return {name: value for name, value in os.environ.items() if name.startswith(("AWS_", "OMNIGRAPH_"))}


def _answer(
    answer: Connection, function: Callable[..., Any], args: tuple[Any, ...], environment: dict[str, str]
) -> None:
    os.environ.update(environment)
    answer.send(function(*args))


def _run(
    function: Callable[..., object], args: tuple[Any, ...], actions: dict[str, str], environment: dict[str, str]
) -> None:
    os.environ.update(environment)
    with contextlib.ExitStack() as stack:
        for name, action in actions.items():
            stack.enter_context(failpoints.active(name, action))
        function(*args)
