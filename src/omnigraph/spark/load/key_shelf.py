"""Keys on their way to the tasks that check them, put aside in files where all tasks share one machine.

Keys are most of what a load sends through Spark, and there every byte of them is copied again and again: into the JVM,
into rows, into a shuffle file and all the way back. On a local master the sender writes them to a file in Spark's own
temporary directory, the message says where they lie, and the task that checks them maps the file.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_BYTES = 256 << 10
"""Keys up to this size travel with their message: a file would cost more than it spares."""

_MARK = b"lies aside: "
"""No stream of Arrow begins like this."""

_ALIGNED = 64
"""Where a table begins in its file, so that its columns can be used where they lie."""


@contextmanager
def key_shelf(session: SparkSession) -> Iterator[str | None]:
    """A folder that all tasks of the session reach, gone afterwards; None where they run on other machines."""
    context = session.sparkContext
    place = getattr(context, "_temp_dir", None)
    if place is None or not runs_here(context.master):
        yield None
        return
    folder = tempfile.mkdtemp(prefix="omnigraph-keys-", dir=place)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def runs_here(master: str) -> bool:
    """Whether tasks run in this process's JVM, and their workers beside it."""
    return master == "local" or master.startswith("local[")


@dataclass(frozen=True, slots=True)
class _Aside:
    """Where a table lies."""

    path: str
    start: int
    end: int


class KeyFile:
    """The file of one attempt at a task. It is made with the first keys that are many."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder, f"{uuid.uuid4().hex}.keys")

    def put(self, keys: pa.Table) -> bytes:
        """Write keys, and tell where they are, in the form of a payload."""
        with self._path.open("ab") as file:
            start = -(-file.tell() // _ALIGNED) * _ALIGNED
            file.write(b"\0" * (start - file.tell()))
            with pa.ipc.new_stream(file, keys.schema) as writer:
                writer.write_table(keys)
            return _MARK + pickle.dumps(_Aside(str(self._path), start, file.tell()))


def brought(payload: bytes) -> pa.Buffer:
    """The table of a payload as a stream of Arrow, wherever it lies."""
    if not payload.startswith(_MARK):
        return pa.py_buffer(payload)
    aside: Any = pickle.loads(payload.removeprefix(_MARK))
    with pa.memory_map(aside.path) as file:
        return file.read_buffer(aside.end)[aside.start :]
