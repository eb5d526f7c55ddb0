"""Files of attempts at tasks that nobody reported: a worker was killed, a copy of a task lost, a load was cancelled."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.commit.attempts import WRITER_LEASE_PREFIX
from omnigraph.ledger.commit.staging_marks import any_marked
from omnigraph.storage.clearing.attempt_files import recent_files, remove_files, unreferenced
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

CLOCK_SKEW = timedelta(seconds=2)
"""How much earlier than this process the clock of the store may be."""

_logger = logging.getLogger("omnigraph.spark")


def sweep_lost_files(
    store: GraphStore,
    lines: Mapping[str, TableVersion],
    since: datetime,
    reported: Iterable[str],
    *,
    own_leases: int,
) -> None:
    """Remove files that attempts left below these lines since then. `reported` are the fragments that are to stay.

    Files are listed first and writers looked for second: a file in the list that is another writer's belongs to one
    that is still registered, or is referred to by a version by now. With another writer about, all is left to
    `cleanup`. `own_leases` is how many leases of writers the caller holds itself.
    """
    kept = set(reported)
    handles = store.tables.handles
    try:
        found = {key: recent_files(handles, line, since) for key, line in lines.items()}
        if len(store.leases.list_live(WRITER_LEASE_PREFIX)) > own_leases or any_marked(store.objects):
            return
        for key, line in lines.items():
            orphans = unreferenced(handles, line, found[key])
            remove_files(handles, [path for path in orphans if not any(_stem(path) in text for text in kept)])
    except OmniGraphError as error:
        _logger.warning("files of lost tasks stay until cleanup: %s", error)


def _stem(path: str) -> str:
    return path.split("/data/", 1)[1].split("/", 1)[0].removesuffix(".lance")
