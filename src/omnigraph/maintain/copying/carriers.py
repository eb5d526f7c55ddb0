"""Who carries the files of a copy from one store to the other: threads of this process, or tasks of Spark.

A file is read and written by one and the same function, wherever that runs. What is there whole already stays, so a
file that is carried twice (a task that ran again, a copy that was interrupted) is the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectInfo, ObjectStore

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Carriers:
    """`carry` takes files from one store to another and tells, for each that is through with, whether it was there."""

    engine: str
    carry: Callable[[ObjectStore, ObjectStore, Sequence[ObjectInfo]], Iterator[bool]]


def carry_here(source: ObjectStore, target: ObjectStore, files: Sequence[ObjectInfo]) -> Iterator[bool]:
    """Carry files by threads of this process: they wait for the stores, not for the processor."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="omnigraph-copy") as threads:
        yield from threads.map(lambda file: _carry(source, target, file.path), files)


def _carry(source: ObjectStore, target: ObjectStore, path: str) -> bool:
    try:
        target.write_stream(path, source.read_stream(path))
    except ObjectNotFound:
        return False
    return True


LOCAL = Carriers("local", carry_here)
