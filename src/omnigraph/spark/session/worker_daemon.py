"""The process that Spark's Python workers are forked from, with the slow imports done once for all of them.

A worker that starts cold spends a second and more on importing pandas, Arrow and DuckDB before it looks at a row. Here
they are loaded before the fork, and so are those of our own modules that do without Lance. Lance is not: it starts
threads, which do not survive a fork.
"""

from __future__ import annotations

import gc
import importlib
import os
from functools import cache

PRELOADED = (
    "numpy",
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.json",
    "pyarrow.parquet",
    "duckdb",
    "obstore.store",
    "pyspark.worker",
    "omnigraph.spark.load.load_splits",
    "omnigraph.spark.load.known.known_ids",
    "omnigraph.ledger.commit.window",
    "omnigraph.ledger.history.publish_marks",
    "omnigraph.write.mutate.key_lookup",
    "omnigraph.write.rows.fill_vectors",
)
"""Modules without threads of their own. One that is missing is left to the worker that needs it. Ours are those that
bring most of what tasks import along, and not Lance."""


def preload() -> None:
    """Import what every worker will want."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    gc.collect()
    gc.freeze()


@cache
def settle_worker() -> None:
    """Once in a worker, when it has loaded what it needs: exempt all of that from garbage collection.

    Spark collects after every task and every step of planning, and going through the modules each time takes as long
    as reading 100 000 rows.
    """
    if "SPARK_REUSE_WORKER" in os.environ:
        gc.collect()
        gc.freeze()


if __name__ == "__main__":
    from pyspark import daemon

    preload()
    daemon.manager()
