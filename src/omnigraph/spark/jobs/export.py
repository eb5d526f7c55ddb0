"""Export on Spark: every task writes its fragments of one table to a file of its own, one directory per type."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.choices import Target
from omnigraph.errors import BadRequest
from omnigraph.ledger.snapshots import table_of
from omnigraph.read.export import ExportPart, ExportSummary, exported_types, part_path, write_part
from omnigraph.read.export_target import replacing_parts
from omnigraph.spark.fragment_groups import fragment_groups
from omnigraph.spark.session.job_end import end_job
from omnigraph.spark.session.progress import run_job
from omnigraph.spark.spread import spread
from omnigraph.write.progress import ProgressCallback

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.ledger.store import GraphStore

ROWS_PER_FILE = 500_000


def export_graph(
    session: SparkSession,
    store: GraphStore,
    path: str,
    *,
    at: Target = None,
    branch: str = "main",
    types: Sequence[str] | None = None,
    format: str = "jsonl",
    rows_per_file: int = ROWS_PER_FILE,
    progress: ProgressCallback | bool | None = None,
) -> ExportSummary:
    """Write a snapshot below a directory or a prefix of an object store. Every executor must see the same place."""
    if path == "-":
        raise BadRequest("Spark writes many files at once, not standard output; export with engine='local' for that.")
    # Executors work in directories of their own.
    place = path if "://" in path else os.path.abspath(path)
    snapshot = store.snapshot(at, branch=branch)
    parts: list[ExportPart] = []
    for type_ in exported_types(store, snapshot, types, format):
        table = table_of(snapshot.pin(type_.table_key))
        groups = fragment_groups(store.tables.fragments(table), rows_per_file)
        parts += [
            ExportPart(store.uri, type_, table, tuple(group), part_path(place, type_, number, format), format)
            for number, group in enumerate(groups)
        ]
    with (
        replacing_parts(place, [part.target for part in parts]),
        run_job(session, "export", progress, source=store.uri, place=place) as job,
    ):
        job.step("writing files")
        try:
            rows = spread(session, write_part, parts)
        except BaseException:
            end_job(job, were_running=True)
            raise
    counts: dict[str, int] = {type_.table_key: 0 for type_ in exported_types(store, snapshot, types, format)}
    for part, count in zip(parts, rows, strict=True):
        counts[part.type.table_key] += count
    return ExportSummary(path, format, tuple(counts.items()), snapshot.head.graph_commit_id, engine="spark")
