"""Why a session did not start, in words: Spark's own say which call failed, and seldom what of it."""

from __future__ import annotations

import socket
from collections.abc import Sequence

PATIENCE = 2.0
"""Seconds that a master has to take a connection."""

_SCHEME = "spark://"
_NOISE = ("WARNING: Using incubator modules", "Setting default log level", "To adjust logging level")
"""What Java and Spark print at every start."""


def why_not_started(master: str, problem: BaseException, printed: str) -> str:
    """The reason, with the last lines that the JVM printed below it where they say something."""
    lines = [line.strip() for line in printed.splitlines() if line.strip() and not line.strip().startswith(_NOISE)]
    silent = silent_masters(master)
    if silent:
        reason = f"no master answers at {', '.join(silent)}"
    else:
        reason = _innermost(problem)
    return "\n  ".join([reason, *lines[-5:]])


def silent_masters(master: str) -> list[str]:
    """The masters of a standalone cluster that take no connection; none if one of them does."""
    if not master.startswith(_SCHEME):
        return []
    addresses = master.removeprefix(_SCHEME).split(",")
    return [] if any(_answers(address) for address in addresses) else addresses


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE):
            return True
    except (OSError, ValueError):
        return False


def _innermost(problem: BaseException) -> str:
    """The last cause that the error of a call into Java names, or its first line."""
    lines: Sequence[str] = [line.strip() for line in str(problem).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    if causes:
        return causes[-1].removeprefix("Caused by: ")
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else type(problem).__name__
