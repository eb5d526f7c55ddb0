"""Which version of a line is its newest, at a cost that does not grow with its history.

Lance finds out by listing the line's manifests. On an object store the newest one comes first in the listing; on a
local disk all of them are listed, which takes milliseconds once there are thousands. There we start from what is known:
our own last look, when the directory has not changed since, or else the hint that Lance leaves after each commit, when
it is as fresh as the directory. From that version on the next ones are looked for by name, since times have a
granularity and a hint may lag. In any doubt Lance is asked.

A commit changes the directory several times before it is over. Who looks while this process makes one starts from the
version that it is made on, which was just seen to be the newest, and need not read the hint.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import orjson

from omnigraph.storage.uri import Root
from omnigraph.storage.values import manifest_name

_FRESH_NANOSECONDS = 1_000_000_000
_STEPS = 64
_COMMIT_SECONDS = 0.1
"""Commits that take longer are no place to start from: meanwhile others could have made versions and removed them."""


@dataclass(frozen=True, slots=True)
class _Look:
    changed: int
    version: int


@dataclass(frozen=True, slots=True)
class _Commit:
    base: int
    until: float


class NewestVersions:
    """What was newest when each line of a graph on local disk was last looked at."""

    def __init__(self, root: Root) -> None:
        self._watches = root.is_local
        self._looks: dict[str, _Look] = {}
        self._commits: dict[str, _Commit] = {}
        self._lock = threading.Lock()

    def changed(self, line: str) -> int | None:
        """When the line last got or lost a version; None where that cannot be known. To be asked before a look."""
        if not self._watches:
            return None
        try:
            return os.stat(_directory(line)).st_mtime_ns
        except OSError:
            return None

    def note(self, line: str, changed: int | None, version: int) -> None:
        """Remember what a look found."""
        if changed is not None:
            with self._lock:
                self._looks[line] = _Look(changed, version)

    @contextmanager
    def committing(self, line: str, base: int) -> Iterator[None]:
        """While it is open, this process commits to a line whose newest version was seen to be `base` just before."""
        commit = _Commit(base, time.monotonic() + _COMMIT_SECONDS)
        self._commits[line] = commit
        try:
            yield
        finally:
            if self._commits.get(line) is commit:
                self._commits.pop(line, None)

    def _base(self, line: str) -> int | None:
        """The version that a commit is just made on, while it is there."""
        commit = self._commits.get(line)
        if commit is None or time.monotonic() > commit.until or not os.path.exists(_manifest(line, commit.base)):
            return None
        return commit.base

    def known(self, line: str) -> int | None:
        """The newest version, if it can be told without listing the line."""
        changed = self.changed(line)
        if changed is None:
            return None
        look = self._looks.get(line)
        if look is not None and look.changed == changed:
            version: int | None = look.version
        else:
            version = self._base(line) or _hinted(line, changed)
        if version is None:
            return None
        for candidate in range(version, version + _STEPS):
            if not os.path.exists(_manifest(line, candidate + 1)):
                self.note(line, changed, candidate)
                return candidate
        return None


def _hinted(line: str, changed: int) -> int | None:
    """The version that Lance's hint names, if the directory has not changed since the hint was written."""
    path = f"{_directory(line)}/latest_version_hint.json"
    try:
        if abs(changed - os.stat(path).st_mtime_ns) > _FRESH_NANOSECONDS:
            return None
        with open(path, "rb") as hint:
            version = orjson.loads(hint.read())["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) and os.path.exists(_manifest(line, version)) else None


def _manifest(line: str, version: int) -> str:
    return f"{_directory(line)}/{manifest_name(version)}"


def _directory(line: str) -> str:
    return f"{line}/_versions"
