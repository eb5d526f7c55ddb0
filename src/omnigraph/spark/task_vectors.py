"""The embedding provider in tasks: its settings travel without the key, and all tasks together keep its limit.

The key is taken from the worker's own environment: nothing that Spark moves, keeps or logs holds it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.embed.provider_settings import EmbeddingSettings, from_environment
from omnigraph.embed.text_vectors import TextVectors, text_vectors
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.ledger.store import GraphStore
    from omnigraph.schema.catalog import Catalog

KEY_VARIABLE = "OMNIGRAPH_EMBEDDING_API_KEY"
_IN_THE_WORKER = "(in the worker's environment)"


def vectors_for_tasks(session: SparkSession, store: GraphStore, catalog: Catalog) -> EmbeddingSettings | None:
    """The provider that the tasks of a load ask; None when no property is embedded, or writes are not to ask."""
    if not any(one.embed for type_ in catalog.types() for one in type_.properties):
        return None
    chosen = store.embedding if store.embedding is not None else from_environment()
    return for_tasks(session, chosen) if chosen is not None and chosen.on_write else None


def for_tasks(session: SparkSession, settings: EmbeddingSettings) -> EmbeddingSettings:
    """A provider as one task of many asks it: with its share of the calls, and without the key."""
    slots = max(1, int(session.sparkContext.defaultParallelism))
    limit = settings.calls_per_second
    return replace(
        settings,
        api_key=None if settings.api_key is None else _IN_THE_WORKER,
        calls_per_second=None if limit is None else limit / slots,
        parallel=max(1, settings.parallel // slots),
    )


def task_vectors(settings: EmbeddingSettings | None) -> TextVectors | None:
    """In a task: what makes vectors, with the key of this machine."""
    if settings is None:
        return None
    if settings.api_key == _IN_THE_WORKER:
        key = os.environ.get(KEY_VARIABLE, "").strip()
        if not key:
            raise BadRequest(
                f"the Spark workers have no key for the embedding provider: set spark.executorEnv.{KEY_VARIABLE}"
            )
        settings = replace(settings, api_key=key)
    return text_vectors(settings)
