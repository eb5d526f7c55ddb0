"""Whether a micro-batch is the one that comes next on its branch.

Spark numbers the batches of a query one by one, and of those that are through it repeats the last one at most. The sink
records every batch on the branch, one without records too. So a number that does not fit tells of a checkpoint that is
not this branch's: of another graph, of one that was made anew or put back from a backup, or an older copy of its own.
To load on would leave a hole that nobody sees, and to skip would drop records that were never loaded.
"""

from __future__ import annotations

from omnigraph.errors import NotFound, StaleCheckpoint
from omnigraph.ledger.store import GraphStore
from omnigraph.ledger.values import StreamBatch

ERROR, ACCEPT = "error", "accept"
MISSING_BATCHES = (ERROR, ACCEPT)
"""What to do when batches before this one are not on the branch."""


def check_succession(store: GraphStore, branch: str, batch: StreamBatch, missing: str) -> None:
    """Refuse a batch that is neither the next one of its stream on the branch nor the last one once more."""
    last = store.manifest.read(store.branch(branch, "load")).last_batch(batch.stream)
    if last is not None and batch.batch < last:
        raise StaleCheckpoint(
            f"{batch} cannot be loaded into {branch} of {store.uri}: the branch has this stream up to batch {last}, "
            "and Spark repeats none but the last one. The checkpoint is an older copy, or another driver runs the same "
            "stream. Nothing was loaded. Start the stream with its own checkpoint, or with a new one and mode merge, "
            "which loads again what its source has."
        )
    first = 0 if last is None else last + 1
    if batch.batch <= first or missing == ACCEPT:
        return
    lacking = f"batches {first} to {batch.batch - 1} of that stream are"
    if first == batch.batch - 1:
        lacking = f"batch {first} of that stream is"
    raise StaleCheckpoint(
        f"{batch} cannot be loaded into {branch} of {store.uri}: {lacking} not there. The checkpoint says "
        "otherwise, so it was used with another graph or branch, or this one was made anew or put back from "
        f"a backup. Nothing was loaded. {_advice(store, branch, batch)}To load on without them, set the option "
        "missingBatches to accept (missing_batches of load_stream) for one run."
    )


def _advice(store: GraphStore, branch: str, batch: StreamBatch) -> str:
    """The branch that has what is lacking, if there is one; otherwise how to get it from the source."""
    before = StreamBatch(batch.stream, batch.batch - 1)
    for name in store.refs.names():
        if name != branch and _has(store, name, before):
            return f"The branch {name} has them: merge it into {branch} and start again, or load into it. "
    return (
        "Use the graph and branch that have them, or a new checkpoint, with which the stream begins at the start of "
        "its source. "
    )


def _has(store: GraphStore, name: str, batch: StreamBatch) -> bool:
    try:
        return store.manifest.read(store.branch(name, "load")).has_batch(batch)
    except NotFound:
        return False  # deleted meanwhile
