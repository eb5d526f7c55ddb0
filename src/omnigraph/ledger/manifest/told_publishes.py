"""The last publishes of a branch, told to the process that publishes next.

Each would otherwise open every version of the manifest that another process published, scan what it changed, and read
the ids of the rows that it brought, once for its write and once more to log their commits. What is told counts only for
versions that are there as they were published: the file that describes the version is compared. Whatever is not told is
read. A publish replaces rows of the manifest and adds some; it never takes one away (a table that goes leaves a
tombstone), so the rows that it changed say all.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from omnigraph.ledger.manifest.manifest_rows import Row
from omnigraph.storage.told_files import ToldFiles
from omnigraph.storage.values import TableVersion

KEPT_PUBLISHES = 12
"""Publishes that are told: as many as other processes make between two of one."""

_LONGEST = 65_536
"""A publish with more bytes than this (a combined commit lists its operations) is not told: reading it is quicker than
to hand it on again and again."""

Ids = Mapping[str, list[str]]
"""Of small data files, by name, the ids of their rows."""


@dataclass(frozen=True, slots=True)
class ToldPublish:
    """One publish: the version it made, what tells that from others, the rows it changed, the ids it brought."""

    version: int
    described: str
    rows: list[Row]
    ids: Ids


class ToldPublishes:
    """What this process has told or was told, by line of the manifest. Safe to share between threads."""

    def __init__(self, files: ToldFiles) -> None:
        self._files = files
        self._last: dict[str | None, list[ToldPublish]] = {}
        self._lock = threading.Lock()

    def tell(self, before: TableVersion, after: TableVersion, rows: list[Row], ids: Ids) -> None:
        """Tell a publish, together with those right before it. To be called by who holds the branch's window."""
        described = self._files.describes(after)
        if described is None or after.version != before.version + 1:
            return
        with self._lock:
            known = self._last.get(after.branch, [])
        if not known or known[-1].version != before.version:
            known = self._read(after.branch)
        follows = bool(known) and known[-1].version == before.version
        told = [*(known if follows else ()), ToldPublish(after.version, described, rows, ids)][-KEPT_PUBLISHES:]
        with self._lock:
            self._last[after.branch] = told
        content = orjson.dumps(told)
        if len(content) > _LONGEST:
            with self._lock:
                self._last.pop(after.branch, None)
        else:
            self._files.write(_name(after.branch), content)

    def since(self, before: TableVersion, after: TableVersion) -> list[ToldPublish] | None:
        """Every publish after one version of a line up to another, in order; None unless all were told and all are
        there as they were told."""
        if not before.version < after.version <= before.version + KEPT_PUBLISHES:
            return None
        told = self._read(after.branch)
        between = [one for one in told if before.version < one.version <= after.version]
        if [one.version for one in between] != list(range(before.version + 1, after.version + 1)):
            return None
        if any(self._files.describes(after.at(one.version)) != one.described for one in between):
            return None
        with self._lock:
            self._last[after.branch] = told
        return between

    def _read(self, line: str | None) -> list[ToldPublish]:
        content = self._files.read(_name(line))
        try:
            return [ToldPublish(**one) for one in orjson.loads(content)] if content else []
        except (ValueError, TypeError):
            # Told by a program that tells something else.
            return []


def _name(line: str | None) -> str:
    return f"published-{line}" if line else "published"
