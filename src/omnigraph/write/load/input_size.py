"""How large an input is, as far as that can be told without reading it: what the choice of an engine goes by."""

from __future__ import annotations

import glob
import os
from typing import Any

from omnigraph.errors import OmniGraphError

_PACKED = {".gz": 6, ".zst": 7}
"""How much larger JSON lines are than their compressed form, roughly."""

_ROW_BYTES = 512
"""What a Python row is taken for, when its size is to be guessed."""


def input_bytes(data: Any) -> int:
    """The size of files on disk, of bytes and of Arrow tables and frames; 0 when it cannot be told."""
    if isinstance(data, str | os.PathLike):
        return _paths_bytes(os.fspath(data))
    if isinstance(data, bytes | bytearray):
        return len(data)
    if isinstance(data, list | tuple) and data and all(isinstance(item, str | os.PathLike) for item in data):
        return sum(_paths_bytes(os.fspath(item)) for item in data)
    size = getattr(data, "nbytes", None)
    if isinstance(size, int):
        return size
    estimated = getattr(data, "estimated_size", None)
    return int(estimated()) if callable(estimated) else 0


def is_small(data: Any, most_bytes: int) -> bool:
    """Whether an input is known to be small and at hand: a pipe or a generator may take as long as it likes."""
    if isinstance(data, list | tuple) and not all(isinstance(item, str | os.PathLike) for item in data):
        return len(data) <= most_bytes // _ROW_BYTES
    return 0 < input_bytes(data) <= most_bytes


def is_spark_frame(data: Any) -> bool:
    """Whether this is a DataFrame of Spark, told without importing PySpark."""
    return type(data).__module__.startswith("pyspark.sql")


def _paths_bytes(path: str) -> int:
    if path.startswith(("s3://", "s3a://")):
        return _objects_bytes(path)
    if "://" in path and not path.startswith("file://"):
        return 0
    local = path.removeprefix("file://")
    if os.path.isdir(local):
        return sum(_file_bytes(os.path.join(folder, name)) for folder, _, names in os.walk(local) for name in names)
    return sum(_file_bytes(found) for found in glob.glob(local)) if glob.has_magic(local) else _file_bytes(local)


def _objects_bytes(path: str) -> int:
    from omnigraph.write.decode.files import find_files

    try:
        return sum(file.size * _PACKED.get(os.path.splitext(file.name)[1], 1) for file in find_files(path))
    except OmniGraphError:  # the load itself will say what is wrong
        return 0


def _file_bytes(path: str) -> int:
    try:
        return os.path.getsize(path) * _PACKED.get(os.path.splitext(path)[1], 1)
    except (OSError, ValueError):
        return 0
