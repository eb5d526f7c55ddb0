"""Places for graphs on every kind of store: fresh ones with a new graph in them, and what is stored at one.

Making a graph takes many requests, so each kind of new graph is made once per store and copied, object by object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import obstore

from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.storage.constants import LOCKS_DIRECTORY
from omnigraph.storage.leases.lease_values import decode_info, encode_info
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore, open_objects
from omnigraph.storage.uri import parse_root

Maker = Callable[[str], GraphStore]
"""Makes a graph at a place. Functions of this kind are what new graphs are remembered by."""

_new_graphs: dict[tuple[Maker, bool], Mapping[str, bytes]] = {}


def is_on_s3(uri: str) -> bool:
    """Whether a place is on the S3 server, where each request costs milliseconds."""
    return uri.startswith("s3://")


def new_graph_at(uri: str, make: Maker, elsewhere: Callable[[], str]) -> GraphStore:
    """A graph at `uri` as `make` makes it. The first of its kind is made at `elsewhere`, a place on the same store."""
    objects = open_objects(parse_root(uri))
    kind = (make, is_on_s3(uri))
    if kind not in _new_graphs:
        _new_graphs[kind] = _content(make(elsewhere()).objects)
    content = _new_graphs[kind]
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda path: objects.put(path, content[path]), content))
    return open_store(uri)


def everything_at(uri: str, below: str = "") -> Mapping[str, object]:
    """Everything stored at a place: on local disk every file with its content, on S3 every key with its ETag."""
    root = parse_root(uri)
    if root.is_local:
        top = Path(root.path, below)
        return {str(file.relative_to(top)): file.read_bytes() for file in sorted(top.rglob("*")) if file.is_file()}
    found = obstore.list(open_objects(root)._store(), below or None).collect()
    return {str(meta["path"]): meta["e_tag"] for meta in found}


def let_leases_run_out(uri: str, process: int) -> None:
    """Let the time pass for a process that died: its leases on an object store are over, as they soon would be."""
    root = parse_root(uri)
    if root.is_local:
        return
    objects = open_objects(root)
    for entry in objects.list(f"{LOCKS_DIRECTORY}/leases"):
        try:
            info = decode_info(objects.get(entry.path)[0])
        except ObjectNotFound:
            continue  # Somebody else has just given it back.
        if info is not None and info.process == process:
            objects.put(entry.path, encode_info(replace(info, expires_at=0.0)))


def _content(objects: ObjectStore) -> Mapping[str, bytes]:
    return {
        entry.path: objects.get(entry.path)[0]
        for entry in objects.list("")
        if not entry.path.startswith(f"{LOCKS_DIRECTORY}/")
    }
