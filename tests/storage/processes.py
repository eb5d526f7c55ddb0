"""What tests run in other processes. Apart from the tests, so that a child imports no more than it needs."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

from omnigraph.errors import StorageError
from omnigraph.storage.leases.leases import Leases
from omnigraph.storage.objects.object_errors import LostPrecondition
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root


def add_to_counter(uri: str, times: int) -> None:
    """Count up by compare and swap."""
    objects = open_objects(parse_root(uri))
    for _ in range(times):
        while True:
            data, token = objects.get("counter")
            try:
                objects.put_if_match("counter", str(int(data) + 1).encode(), token)
            except LostPrecondition:
                continue
            break


def try_without_permission(path: str, results: multiprocessing.Queue[str]) -> None:
    """Become nobody and try everything; report how each call failed."""
    os.seteuid(65534)
    objects = open_objects(parse_root(path))
    for call in (
        lambda: objects.get("a"),
        lambda: objects.put("b", b""),
        lambda: objects.list(""),
        lambda: objects.delete("a"),
    ):
        try:
            call()
            results.put("allowed")
        except StorageError as error:
            results.put(f"{error.storage_kind.value}: {error.message}")


def hold_lease(path: str, name: str, ready: str) -> None:
    """Take a lease and keep it until killed."""
    root = parse_root(path)
    Leases(root, open_objects(root)).acquire(name, "child", wait=0)
    Path(ready).touch()
    time.sleep(120)


def take_turns(path: str, turns: int) -> None:
    """Count up in a file under a lease, with a pause between reading and writing."""
    root = parse_root(path)
    leases = Leases(root, open_objects(root))
    for _ in range(turns):
        with leases.acquire("a", f"process {os.getpid()}", wait=60):
            counter = Path(path, "counter")
            value = int(counter.read_text())
            time.sleep(0.001)
            counter.write_text(str(value + 1))
