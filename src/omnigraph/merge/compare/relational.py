"""The relational engine that compares rows: DuckDB with a bound on its memory and a directory to spill to.

Rows stream into it from storage. DuckDB tells an error in such a stream as one of its own, with a Python traceback for
a message, so the engine remembers what went wrong, and that error is the one that is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.scratch import scratch_folder

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "1GB"
BATCH_ROWS = 8192


class RowEngine:
    """One comparison's engine."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._failures: list[BaseException] = []

    def execute(self, statement: str) -> None:
        """Run a statement."""
        with self._own_errors():
            self._connection.execute(statement)

    def table(self, query: str) -> pa.Table:
        """The result of a query, whole."""
        with self._own_errors():
            return self._connection.sql(query).to_arrow_table()

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The result of a query, streamed."""
        with self._own_errors():
            yield from self._connection.sql(query).to_arrow_reader(BATCH_ROWS)

    def count(self, relation: str) -> int:
        """How many rows a relation has."""
        found: int = self.table(f"select count(*) as n from {relation}").column("n")[0].as_py()
        return found

    def ids(self, query: str) -> pa.Array:
        """The ids that a query gives."""
        return self.column(query, "id").cast(pa.utf8())

    def column(self, query: str, name: str) -> pa.Array:
        """One column of what a query gives."""
        column = self.table(query).column(name)
        return (
            column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])
        )

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The result of a query as plain values."""
        found: list[dict[str, Any]] = self.table(query).to_pylist()
        return found

    def add_table(self, name: str, rows: pa.Table) -> None:
        """Make Arrow rows a relation, in the place of one of that name."""
        self._connection.register(name, rows)

    def add_stream(self, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        """Make a stream of rows a relation that can be read once."""
        self._connection.register(name, pa.RecordBatchReader.from_batches(schema, self._watched(batches)))

    def _watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException as error:
            self._failures.append(error)
            raise

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if self._failures:
                raise self._failures[0] from None
            raise


@contextmanager
def row_engine() -> Iterator[RowEngine]:
    """An engine that spills to a directory of its own, gone afterwards."""
    import duckdb

    with scratch_folder("rows") as spill:
        connection = duckdb.connect(config={"memory_limit": MEMORY_LIMIT, "temp_directory": str(spill)})
        try:
            connection.execute("set timezone = 'UTC'")
            yield RowEngine(connection)
        finally:
            connection.close()
