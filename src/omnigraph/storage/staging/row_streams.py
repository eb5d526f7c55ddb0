"""Rows on their way into a table: any form of Arrow rows as a stream in the table's own columns and types.

Lance pulls the stream from native code and tells an error in it as a failure of its own, with a Python traceback for a
message. So the stream remembers what went wrong, and its own error is the one that is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.storage.lance_errors import lance_errors

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch]


@contextmanager
def row_stream(doing: str, what: object, rows: Rows, schema: pa.Schema) -> Iterator[pa.RecordBatchReader]:
    """The rows as a reader for Lance, inside a block whose errors are in our words."""
    failures: list[BaseException] = []
    reader = pa.RecordBatchReader.from_batches(schema, _batches(rows, schema, failures))
    with lance_errors(doing, what):
        try:
            yield reader
        except BaseException:
            if failures:
                raise failures[0] from None
            raise


def _batches(rows: Rows, schema: pa.Schema, failures: list[BaseException]) -> Iterator[pa.RecordBatch]:
    try:
        if isinstance(rows, pa.Table):
            rows = rows.to_batches()
        for batch in [rows] if isinstance(rows, pa.RecordBatch) else rows:
            yield _aligned(batch, schema)
    except BaseException as error:
        failures.append(error)
        raise


def _aligned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    missing = [name for name in schema.names if name not in batch.schema.names]
    unknown = [name for name in batch.schema.names if name not in schema.names]
    if missing or unknown:
        words = [f"lacks {', '.join(missing)}"] if missing else []
        words += [f"has the unknown {', '.join(unknown)}"] if unknown else []
        raise BadRequest(f"a batch of rows does not fit its table: it {' and '.join(words)}")
    columns = []
    for field in schema:
        column = batch.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowException as error:
            raise BadRequest(
                f"the column `{field.name}` of a batch is of type {column.type} and cannot be stored as {field.type}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
