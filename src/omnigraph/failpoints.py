"""Named places where a test can make a crash happen.

Between any two steps that a crash could separate stands a call `failpoint("name")`. When nothing is switched on it
costs one check of a module-level flag. Switched on, it raises, kills the process, pauses or sleeps, so that every row
of the recovery table is tested by a real crash at the real place.

Each module declares its own names at import (`declare`), and a misspelt name is found out:
`OMNIGRAPH_FAILPOINTS="name=raise;other=kill:2;third=pause:/path/to/file"` with an unknown name is an error, raised the
first time that a failpoint is reached. A command imports only what it needs, so before a name counts as unknown the
other modules of the package are imported too.
"""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import BadRequest

ENVIRONMENT_VARIABLE = "OMNIGRAPH_FAILPOINTS"
PAUSE_LIMIT_SECONDS = 120.0

KNOWN: dict[str, str] = {}
"""Every declared failpoint and where it sits."""


class FailpointError(Exception):
    """Raised by an active failpoint with the action `raise`."""


class FailpointMisuse(BadRequest):
    """A failpoint name or action that does not exist."""


@dataclass(frozen=True, slots=True)
class Action:
    """What an active failpoint does: `argument` is a file to wait for or a number of seconds, `only_at` one hit."""

    verb: str
    argument: str | None = None
    only_at: int | None = None


_actions: dict[str, Action] = {}
_hits: dict[str, int] = {}
_lock = threading.Lock()
_enabled = False
_watcher: Callable[[str], None] | None = None
_unchecked_names: set[str] = set()


def declare(name: str, description: str) -> None:
    """Register a failpoint by name, with a sentence on where it sits. Declaring it again replaces the sentence."""
    KNOWN[name] = description


def failpoint(name: str) -> None:
    """Do what is switched on for `name`; nothing at all when no failpoint is switched on."""
    if _enabled:
        _reached(name)


@contextmanager
def active(name: str, action: str) -> Iterator[None]:
    """Switch one failpoint on for the duration of a `with` block, in this process."""
    if name not in KNOWN:
        _import_every_module()
    if name not in KNOWN:
        raise FailpointMisuse(_unknown(name))
    parsed = _parse_action(action)
    with _lock:
        before = _actions.get(name)
        _actions[name] = parsed
        _hits[name] = 0
        _refresh()
    try:
        yield
    finally:
        with _lock:
            if before is None:
                _actions.pop(name, None)
            else:
                _actions[name] = before
            _refresh()


@contextmanager
def watched(watcher: Callable[[str], None]) -> Iterator[None]:
    """Call `watcher` with the name of each failpoint that this process reaches, in the thread that reaches it.

    It may wait, so that a test can let threads go on one at a time, or raise.
    """
    global _watcher
    _watcher = watcher
    _refresh()
    try:
        yield
    finally:
        _watcher = None
        _refresh()


def hits(name: str) -> int:
    """How often `name` was reached since it was last switched on."""
    return _hits.get(name, 0)


def parse(text: str) -> dict[str, Action]:
    """Read the form of the environment variable."""
    actions: dict[str, Action] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        name, separator, action = entry.partition("=")
        if not separator:
            raise FailpointMisuse(f"{ENVIRONMENT_VARIABLE}: `{entry}` is not of the form name=action")
        actions[name.strip()] = _parse_action(action.strip())
    return actions


def _parse_action(text: str) -> Action:
    verb, _, argument = text.partition(":")
    if verb in ("raise", "kill") and not argument:
        return Action(verb)
    if verb in ("raise", "kill") and argument.isdigit() and int(argument) > 0:
        return Action(verb, only_at=int(argument))
    if verb == "pause" and argument:
        return Action(verb, argument)
    if verb == "sleep" and _is_seconds(argument):
        return Action(verb, argument)
    raise FailpointMisuse(
        f"`{text}` is not a failpoint action: use raise, kill, raise:N, kill:N, pause:FILE or sleep:SECONDS"
    )


def _is_seconds(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False


def _reached(name: str) -> None:
    if _watcher is not None:
        _watcher(name)
    with _lock:
        if _unchecked_names:
            if not _unchecked_names <= KNOWN.keys():
                _import_every_module()
            missing = sorted(_unchecked_names - KNOWN.keys())
            _unchecked_names.clear()
            if missing:
                raise FailpointMisuse(f"{ENVIRONMENT_VARIABLE}: " + "; ".join(map(_unknown, missing)))
        action = _actions.get(name)
        if action is None:
            return
        _hits[name] = _hits.get(name, 0) + 1
        if action.only_at is not None and _hits[name] != action.only_at:
            return
    _perform(name, action)


def _perform(name: str, action: Action) -> None:
    if action.verb == "raise":
        raise FailpointError(f"failpoint {name}")
    if action.verb == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action.verb == "sleep" and action.argument is not None:
        time.sleep(float(action.argument))
    if action.verb == "pause" and action.argument is not None:
        _pause(Path(action.argument))


def _pause(gate: Path) -> None:
    Path(f"{gate}.reached").touch()
    deadline = time.monotonic() + PAUSE_LIMIT_SECONDS
    while not gate.exists():
        if time.monotonic() > deadline:
            raise FailpointError(f"waited {PAUSE_LIMIT_SECONDS:.0f} s for {gate}, which never came")
        time.sleep(0.01)


def _import_every_module() -> None:
    package = importlib.import_module("omnigraph")
    for module in pkgutil.walk_packages(package.__path__, "omnigraph.", onerror=lambda name: None):
        # What cannot be imported here, for want of an optional package, is not reached here either.
        with suppress(ImportError):
            importlib.import_module(module.name)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, KNOWN, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(sorted(KNOWN)) or 'none'}"
    return f"no failpoint is called `{name}` ({hint})"


def _refresh() -> None:
    global _enabled
    _enabled = bool(_actions) or _watcher is not None


_actions.update(parse(os.environ.get(ENVIRONMENT_VARIABLE, "")))
_unchecked_names.update(_actions)
_refresh()
