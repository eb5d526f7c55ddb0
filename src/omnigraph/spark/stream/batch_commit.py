"""Publish one micro-batch: fetch what its tasks have put, load it as one commit, and clear away.

Free of PySpark, so that a process can be killed at each step of it without a JVM.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from omnigraph.errors import OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.store import open_store
from omnigraph.ledger.values import StreamBatch
from omnigraph.scratch import scratch_folder
from omnigraph.spark.stream.sink_options import SinkOptions
from omnigraph.spark.stream.staged_records import Piece, clear, fetch
from omnigraph.spark.stream.succession import check_succession
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from omnigraph.write.load.load_batch import BatchResult, load_batch, pass_batch

_logger = logging.getLogger("omnigraph.spark")

declare("stream.received", "All tasks of a micro-batch are done; its commit has not begun")
declare("stream.committed", "A micro-batch is published; its staged records are there and Spark does not know yet")
declare("stream.cleared", "A micro-batch is published and its staged records are gone; Spark does not know yet")


def publish_batch(uri: str, options: SinkOptions, batch: StreamBatch, run: str, pieces: Sequence[Piece]) -> BatchResult:
    """Publish what the tasks of a run of a batch have put. One that changes nothing is recorded: the next one asks."""
    failpoint("stream.received")
    with scratch_folder("stream") as directory, open_store(uri) as store:
        check_succession(store, options.branch, batch, options.missing_batches)
        result: BatchResult | None = None
        if pieces:
            result = load_batch(
                store,
                fetch(store.objects, pieces, directory),
                batch,
                mode=options.mode,
                type=options.type,
                src=options.src,
                dst=options.dst,
                columns=options.columns or None,
                branch=options.branch,
                actor=options.actor,
                bad_records=options.bad_records,
            )
        if result is None or (result.load.commit is None and not result.load.skipped):
            passed = pass_batch(store, batch, branch=options.branch, actor=options.actor)
            result = BatchResult(passed, result.bad_records if result is not None else 0)
    failpoint("stream.committed")
    forget(uri, batch, run)
    failpoint("stream.cleared")
    return result


def forget(uri: str, batch: StreamBatch, run: str) -> None:
    """Remove what the tasks of a batch have put."""
    try:
        clear(open_objects(parse_root(uri)), batch, run)
    except OmniGraphError as error:
        _logger.warning("staged records of %s stay until cleanup: %s", batch, error)
