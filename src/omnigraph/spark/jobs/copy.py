"""Copying a graph over executors: each task carries a share of the files straight from one store to the other.

The driver decides which files belong to the copy, and makes it a graph when all of them are there; no byte of a table
passes through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.maintain.copying.carriers import Carriers, carry_here
from omnigraph.spark.session.progress import run_job
from omnigraph.spark.session.session import spark_session
from omnigraph.spark.spread import spread
from omnigraph.storage.objects.objects import ObjectInfo, ObjectStore, open_objects
from omnigraph.storage.uri import parse_root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BYTES_PER_TASK = 256 << 20
FILES_PER_TASK = 1_000
"""A task carries no more than either; a larger file is a task of its own."""


@dataclass(frozen=True, slots=True)
class _Share:
    """What one task carries, and between which places."""

    source: str
    target: str
    files: tuple[ObjectInfo, ...]


def spark_carriers(session: SparkSession | None = None) -> Carriers:
    """Carriers on the executors of a session. Every executor must see both places."""
    return Carriers("spark", lambda source, target, files: _carry(session or spark_session(), source, target, files))


def _carry(
    session: SparkSession, source: ObjectStore, target: ObjectStore, files: Sequence[ObjectInfo]
) -> Iterator[bool]:
    shares = [
        _Share(source.root.uri, target.root.uri, tuple(share))
        for share in shares_of(files, session.sparkContext.defaultParallelism)
    ]
    with run_job(session, "copy", source=source.root.uri, place=target.root.uri) as job:
        job.step("carrying files")
        answers = spread(session, _carry_share, shares)
    for taken in answers:
        yield from taken


def _carry_share(share: _Share) -> list[bool]:
    return list(carry_here(open_objects(parse_root(share.source)), open_objects(parse_root(share.target)), share.files))


def shares_of(files: Sequence[ObjectInfo], at_once: int) -> list[list[ObjectInfo]]:
    """Files in shares for tasks: all executors have something to do, and none has the large files alone."""
    if not files:
        return []
    total = sum(file.size for file in files)
    most = max(1, min(BYTES_PER_TASK, total // max(1, at_once)))
    count = max(1, min(FILES_PER_TASK, -(-len(files) // max(1, at_once))))
    shares: list[list[ObjectInfo]] = [[]]
    held = 0
    for file in sorted(files, key=lambda file: -file.size):
        if shares[-1] and (held + file.size > most or len(shares[-1]) >= count):
            shares.append([])
            held = 0
        shares[-1].append(file)
        held += file.size
    return shares
