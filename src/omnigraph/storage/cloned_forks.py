"""Forks below a root with a `?` in its path, where Lance cannot find its own branches.

Lance looks for the root of a branch in the text of a path and takes a `?` for its end, so a branch there can neither be
written to nor branched again. The same clone that Lance makes for a branch works when it bears no branch name: it is
put where the branch would be, and the reference that lists it is written beside it, as Lance writes it. Opening,
reading, writing and cleaning up then know no difference, since every line of a table is opened by its own address.
"""

from __future__ import annotations

import time
import uuid

import orjson
from lance.dataset import LanceDataset

from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.values import TableVersion


def clone_as_fork(handles: Handles, line: LanceDataset, table: TableVersion, name: str) -> None:
    """Make the fork `name` of exactly this version: its files first, then the reference, as Lance does."""
    line.shallow_clone(handles.uri(table.location, name), table.version, storage_options=handles.storage_options)
    forks = handles.newest(table.location, None).branches.list()
    origin = forks[table.branch]["branch_identifier"] if table.branch else []
    reference = {
        "parentBranch": table.branch,
        "identifier": {"version_mapping": [*origin, (table.version, uuid.uuid4().hex)]},
        "parentVersion": table.version,
        "createAt": int(time.time()),
        "manifestSize": 0,
        "metadata": {},
    }
    objects = open_objects(handles.root)
    objects.put_if_absent(f"{table.location}/_refs/branches/{name}.json", orjson.dumps(reference))


def remove_clone(handles: Handles, location: str, name: str) -> None:
    """Remove the files of a fork whose reference is gone: Lance looks for them in the wrong place."""
    open_objects(handles.root).delete_prefix(f"{location}/tree/{name}")
