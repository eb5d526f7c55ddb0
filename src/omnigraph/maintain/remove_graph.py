"""Remove a graph with all its data. Whoever calls this has asked: nothing of it can be brought back."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

from omnigraph.config import settings
from omnigraph.errors import Busy
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.refs import branch_path
from omnigraph.ledger.values import MAIN
from omnigraph.storage.leases.leases import Leases, LeaseTimes
from omnigraph.storage.objects.object_errors import storage_errors
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import Root

_REMOVERS = 16

declare("remove_graph.unreferenced", "The ref object of main is gone: there is no graph; its files are still there")


def remove_graph(root: Root) -> None:
    """Remove everything below a graph's root. `Busy` while somebody writes to it; once begun it can be run again.

    The ref object of `main` goes first: from then on there is no graph at this place, only files.
    """
    objects = open_objects(root)
    times = LeaseTimes(settings().lease_seconds, settings().lease_renewal_seconds)
    leases = Leases(root, objects, times).list_live()
    if leases:
        holder = leases[0]
        raise Busy(
            f"{root.uri} is being written to: `{holder.name}` is held by {holder.owner} (process {holder.process} on "
            f"{holder.host}). Nothing was removed; try again when that is done"
        )
    objects.delete(branch_path(MAIN))
    failpoint("remove_graph.unreferenced")
    with ThreadPoolExecutor(_REMOVERS, thread_name_prefix="omnigraph-remove") as removers:
        list(removers.map(lambda entry: objects.delete(entry.path), objects.list()))
    # What a branch or the lock of a migration left on an object store is listed by nobody, and lies there all the same.
    objects.remove_tombstones("", float("-inf"))
    if root.is_local:
        with storage_errors("removing", root.uri):
            shutil.rmtree(root.path, ignore_errors=False)
