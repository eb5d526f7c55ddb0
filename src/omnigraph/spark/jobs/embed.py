"""Embedding of stored texts over executors: tasks ask the provider and put vectors on the shelf, the driver commits.

What a task does is the in-process code on some fragments of a table. A task that runs again finds on the shelf what
its first attempt has made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.choices import EmbedMode
from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.embed.text_vectors import TextVectors
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot
from omnigraph.spark.fragment_groups import fragment_groups
from omnigraph.spark.session.progress import run_job
from omnigraph.spark.spread import spread
from omnigraph.spark.task_vectors import for_tasks, task_vectors
from omnigraph.spark.worker_tables import worker_tables
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion
from omnigraph.write.embedding.embed_results import EmbedResult
from omnigraph.write.embedding.embed_texts import embed_texts, shelves_of
from omnigraph.write.embedding.embed_work import TableWork, Told, due_rows, fill_shelf
from omnigraph.write.embedding.shelf import Shelves
from omnigraph.write.progress import ProgressCallback

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.ledger.store import GraphStore

ROWS_PER_TASK = 20_000
"""Rows that one task looks at: minutes of work for a provider, so that few are lost with a task."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some fragments of a table, for one task."""

    uri: str
    incarnation: str
    table: TableVersion
    work: TableWork
    mode: EmbedMode
    fragments: tuple[int, ...]
    settings: EmbeddingSettings


def embed_on_spark(session: SparkSession, store: GraphStore, **options: Any) -> EmbedResult:
    """`embed_texts` with the vectors made by tasks."""
    return embed_texts(store, **options, fill=partial(_fill, session, options.get("progress")), engine="spark")


def _fill(
    session: SparkSession,
    progress: ProgressCallback | None,
    store: GraphStore,
    snapshot: Snapshot,
    work: TableWork,
    mode: EmbedMode,
    vectors: TextVectors,
    shelves: Shelves,
    told: Told,
) -> None:
    table = table_of(snapshot.pin(work.type.table_key))
    settings = for_tasks(session, vectors.settings)
    parts = [
        _Part(store.uri, snapshot.branch.incarnation, table, work, mode, tuple(group), settings)
        for group in fragment_groups(store.tables.fragments(table), ROWS_PER_TASK)
    ]
    # The end of these tasks is not the end of the run: the commit is still to come.
    told_of = None if progress is None else lambda now: progress(replace(now, finished=False))
    with run_job(session, "embed", told_of, place=f"{snapshot.branch.name} of {store.uri}") as job:
        job.step("making vectors")
        for made in spread(session, _make, parts):
            told(made)
    shelves.look()


def _make(part: _Part) -> int:
    """Make the vectors of some fragments; how many rows have theirs now."""
    tables = worker_tables(part.uri, part.incarnation)
    vectors = task_vectors(part.settings)
    assert vectors is not None
    shelves = shelves_of(Shelves(open_objects(parse_root(part.uri))), part.work)
    counts: list[int] = []
    batches = due_rows(tables, part.table, part.work, part.mode, part.fragments)
    fill_shelf(batches, part.work, shelves, vectors, counts.append)
    return sum(counts)
