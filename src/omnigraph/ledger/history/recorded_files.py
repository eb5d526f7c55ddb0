"""The checksums that files of a graph were published with, and those that some got later.

A version of a fork names the place of its parents, so its file changes when `relocate` brings a moved graph into order.
The checksum of the file as it is then is kept beside the one of its commit: either is right.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from omnigraph.ledger.parts import GraphParts
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore

RELOCATED = "__relocated.json"


def relocated_files(objects: ObjectStore) -> dict[str, str]:
    """The checksums of the files that were relocated."""
    try:
        return dict(orjson.loads(objects.get(RELOCATED)[0]))
    except (ObjectNotFound, ValueError):
        return {}


def note_relocated(objects: ObjectStore, files: Mapping[str, str]) -> None:
    """Keep the checksums that files are about to have."""
    objects.put(RELOCATED, orjson.dumps({**relocated_files(objects), **files}))


def recorded_files(store: GraphParts) -> dict[str, str]:
    """What the log recorded, by path; where there are two checksums, both, with a blank between."""
    recorded = store.commits.files()
    for path, checksum in relocated_files(store.objects).items():
        if path in recorded and recorded[path] != checksum:
            recorded[path] = f"{recorded[path]} {checksum}"
    return recorded
