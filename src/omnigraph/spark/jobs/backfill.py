"""Fill a property of many rows by a function of their other columns: one commit on a branch.

Rows are read through the data source, computed in the tasks, and written back by a merging load, which touches nothing
but the named property and keeps the rows' stable ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.ledger.snapshots import find_type
from omnigraph.ledger.values import MAIN
from omnigraph.schema.catalog import EdgeType, GraphType, Property
from omnigraph.spark.load.load import load
from omnigraph.spark.types import spark_type_name, to_travelling, travelling_type
from omnigraph.write.progress import ProgressCallback
from omnigraph.write.results import LoadResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.ledger.store import GraphStore

Compute = Callable[[pa.Table], pa.Array]
"""The property's values for a table of the input columns, one for each row. It runs in the tasks, so it pickles."""


def backfill(
    session: SparkSession,
    store: GraphStore,
    type: str,
    property: str,
    compute: Compute,
    *,
    inputs: Sequence[str],
    only_missing: bool = True,
    branch: str = MAIN,
    from_: str | None = None,
    actor: str | None = None,
    progress: ProgressCallback | bool | None = None,
) -> LoadResult:
    """Set `property` to what `compute` makes of the `inputs`; with `only_missing`, where it has no value yet."""
    from pyspark.sql import functions as f

    graph_type, target = _property(store, from_ or branch, type, property)
    source = from_ if from_ is not None and store.refs.get(branch) is None else branch
    frame = _rows(session, store, graph_type, target, inputs, source, only_missing=only_missing)
    kept = identity(graph_type)
    schema = frame.select(*kept, f.lit(None).cast(spark_type_name(target.type)).alias(target.name)).schema
    names = list(dict.fromkeys(inputs))
    crossing = travelling_type(_arrow_type(target))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = compute(pa.Table.from_batches([batch]).select(names))
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            arrays = [*(batch.column(name) for name in kept), values.cast(crossing)]
            made = pa.RecordBatch.from_arrays(arrays, names=[*kept, target.name])
            yield to_travelling(made, made.schema)

    return write_back(
        session,
        store,
        frame.mapInArrow(task, schema),
        graph_type.table_key,
        branch=branch,
        from_=from_,
        actor=actor,
        progress=progress,
    )


def write_back(
    session: SparkSession,
    store: GraphStore,
    frame: DataFrame,
    type: str,
    *,
    branch: str = MAIN,
    from_: str | None = None,
    actor: str | None = None,
    progress: ProgressCallback | bool | None = None,
) -> LoadResult:
    """Merge computed columns into the rows of a type, by their ids: the result of an analysis as a property.

    `frame` has `id` and the properties to set. Columns that identify rows (key properties, the ends of edges) are added
    where they are missing.
    """
    source = from_ if from_ is not None and store.refs.get(branch) is None else branch
    snapshot = store.snapshot(branch=source)
    graph_type = find_type(store.catalog(snapshot.schema_digest), type)
    missing = [name for name in identity(graph_type) if name not in frame.columns]
    if missing:
        from omnigraph.spark.source.datasource import to_spark

        known = to_spark(session, store, graph_type.table_key, columns=["id", *missing], branch=source)
        frame = frame.join(known, "id")
    return load(
        session,
        store,
        frame,
        mode="merge",
        type=graph_type.table_key,
        branch=branch,
        from_=from_,
        actor=actor,
        progress=progress,
    )


def identity(graph_type: GraphType) -> list[str]:
    """The columns that say which row is meant."""
    ends = ["src", "dst"] if isinstance(graph_type, EdgeType) else []
    return list(dict.fromkeys(["id", *ends, *graph_type.key]))


def _rows(
    session: SparkSession,
    store: GraphStore,
    graph_type: GraphType,
    target: Property,
    inputs: Sequence[str],
    branch: str,
    *,
    only_missing: bool,
) -> DataFrame:
    from omnigraph.spark.source.datasource import to_spark

    columns = list(dict.fromkeys([*identity(graph_type), *inputs, *([target.name] if only_missing else [])]))
    frame = to_spark(session, store, graph_type.table_key, columns=columns, branch=branch)
    return frame.where(frame[target.name].isNull()) if only_missing else frame


def _property(store: GraphStore, branch: str, type_name: str, name: str) -> tuple[GraphType, Property]:
    snapshot = store.snapshot(branch=branch)
    graph_type = find_type(store.catalog(snapshot.schema_digest), type_name)
    found = graph_type.by_name.get(name)
    if found is None:
        raise BadRequest(f"{graph_type.name} has no property `{name}`; it has {', '.join(graph_type.by_name)}.")
    if name in graph_type.key:
        raise BadRequest(f"`{name}` is part of the key of {graph_type.name} and cannot be changed.")
    return graph_type, found


def _arrow_type(target: Property) -> pa.DataType:
    from omnigraph.schema.arrow import arrow_type

    return arrow_type(target.type)
