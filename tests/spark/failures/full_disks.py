"""A load on a store, and then with a scratch directory, that are full: run where both are small file systems of their
own (`python -m tests.spark.failures.full_disks STORE SCRATCH DATA`). Says as JSON what came of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.spark.load.load import load
from omnigraph.spark.session.session import spark_session
from tests.spark.failures.graph_files import SCHEMA, counted, left_over


@contextmanager
def full(place: Path, leaving: int) -> Iterator[None]:
    """A file that takes all room but for some bytes."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    size = ballast.stat().st_size
    with ballast.open("r+b") as file:
        file.truncate(max(0, size - leaving))
    try:
        yield
    finally:
        ballast.unlink()


def refused(session: Any, store: GraphStore, data: str) -> str:
    """What a load says that must fail."""
    head = store.snapshot().head
    try:
        load(session, store, data, mode="append")
    except OmniGraphError as error:
        assert store.snapshot().head == head
        return error.message
    raise AssertionError("the load had room enough")


def main(store_place: str, scratch: str, data: str) -> None:
    """Refused twice, for want of room in either place; done when there is room."""
    session = spark_session("local[2]", {"spark.driver.memory": "600m", "spark.local.dir": scratch})
    with create_store(f"{store_place}/g.omni", SCHEMA) as store:
        with full(Path(store_place), 100_000):
            on_the_store = refused(session, store, data)
        left = left_over(store)
        with full(Path(scratch), 0):
            on_scratch = refused(session, store, data)
        left += left_over(store)
        load(session, store, data, mode="append")
        told = {"store": on_the_store, "scratch": on_scratch, "left over": left, "rows": counted(store)}
    session.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
