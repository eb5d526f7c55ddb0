"""What a query returns: one object, many forms. Arrow is the native one; everything else is made from it on demand.

A large result is not made as a whole: the rows are known, their values are fetched batch by batch when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.query.ir import ResultColumn
from omnigraph.read.result import formats
from omnigraph.read.result.explain import Explanation

if TYPE_CHECKING:
    from omnigraph.ledger.values import Snapshot

BATCH_ROWS = 65_536
"""Rows whose values are fetched at a time."""

Frame = TypeVar("Frame")


class Result:
    """The rows of a read, in their order."""

    to_spark_hook: Callable[[Result], Any] | None = None
    """Set by the Spark package when it is in use."""

    def __init__(
        self,
        columns: Sequence[ResultColumn],
        schema: pa.Schema,
        length: int,
        make_rows: Callable[[int, int], pa.RecordBatch] | None,
        explanation: Callable[[], Explanation] | None = None,
    ) -> None:
        """`make_rows(start, stop)` gives a stretch of the rows; None where they are all there already."""
        self._columns = tuple(columns)
        self._schema = schema
        self._length = length
        self._make_rows = make_rows
        self._table: pa.Table | None = None
        self._explanation = explanation
        self.query_name: str | None = None
        self.snapshot: Snapshot | None = None
        self.told: dict[str, Any] | None = None

    @classmethod
    def from_table(cls, columns: Sequence[ResultColumn], table: pa.Table) -> Result:
        """A result whose rows are there already."""
        result = cls(columns, table.schema, table.num_rows, None)
        result._table = table
        return result

    def read_by(self, query_name: str, snapshot: Snapshot) -> Result:
        """This result, which remembers the query that made it and the state that it was read from."""
        self.query_name, self.snapshot = query_name, snapshot
        return self

    def head_json(self) -> dict[str, Any]:
        """What a response says about a result beside its rows; the same on the command line and over HTTP."""
        if self.told is not None:
            return self.told  # a server has said it
        state = self.snapshot
        return {
            "query_name": self.query_name,
            "target": {"branch": state.branch.name, "manifest_version": state.manifest_version} if state else None,
            "columns": [{"name": c.name, "type": str(c.type), "nullable": c.nullable} for c in self._columns],
            "row_count": self._length,
            "graph_commit_id": state.head.graph_commit_id if state else None,
        }

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """Names and types of the columns, in order."""
        return self._columns

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self._columns)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._schema

    def explain(self) -> Explanation | None:
        """The plan that made this result, with the real row counts and times."""
        return self._explanation() if self._explanation is not None else None

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: int) -> dict[str, Any]:
        """The row at a place; from the end when it is negative."""
        place = at + self._length if at < 0 else at
        if not 0 <= place < self._length:
            raise IndexError(f"row {at} of a result of {self._length} rows")
        table = self._table.slice(place, 1) if self._table is not None else [self._made(place, place + 1)]
        batches = table.to_batches() if isinstance(table, pa.Table) else table
        return next(row for batch in batches for row in formats.python_rows(batch, self._columns))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            yield from formats.python_rows(batch, self._columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream, for whoever speaks the Arrow PyCapsule protocol (DuckDB, Polars, pandas)."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with its rows; the plan stays behind."""
        return Result.from_table, (self._columns, self.to_arrow())

    def __repr__(self) -> str:
        return f"<Result: {self._length} rows, columns {', '.join(self.column_names)}>"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return formats.html_table(self.head(formats.HTML_ROWS), self._columns, self._length)

    # --- columnar forms -----------------------------------------------------------------------------------------

    def _made(self, start: int, stop: int) -> pa.RecordBatch:
        """A stretch of rows that are not there yet."""
        assert self._make_rows is not None
        return self._make_rows(start, stop)

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, made one at a time."""
        for start in range(0, self._length, rows):
            stop = min(start + rows, self._length)
            if self._table is not None:
                yield from self._table.slice(start, stop - start).to_batches()
            else:
                yield self._made(start, stop)

    def part(self, start: int, stop: int) -> Result:
        """The rows from `start` to before `stop`, as a result of their own."""
        if self._table is not None:
            return Result.from_table(self._columns, self._table.slice(start, stop - start))
        return Result.from_table(self._columns, pa.Table.from_batches([self._made(start, stop)], self._schema))

    def to_arrow(self) -> pa.Table:
        """All rows as one Arrow table."""
        if self._table is None:
            self._table = pa.Table.from_batches(list(self.batches()), schema=self._schema)
        return self._table

    def reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self._schema, self.batches())

    def head(self, count: int) -> pa.Table:
        """The first rows as an Arrow table."""
        if self._table is not None:
            return self._table.slice(0, count)
        stop = min(count, self._length)
        return pa.Table.from_batches([self._made(0, stop)] if stop else [], schema=self._schema)

    def to_pandas(self) -> Any:
        """A pandas frame whose columns keep their Arrow types, so that no value is rounded and none loses its kind."""
        pandas = _require("pandas")
        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def to_polars(self) -> Any:
        """A Polars frame."""
        polars = _require("polars")
        return polars.from_arrow(self.to_arrow())

    def to_spark(self) -> Any:
        """A Spark frame, when the graph was opened with a Spark session."""
        hook = type(self).to_spark_hook
        if hook is None:
            raise BadRequest(
                "this result has no Spark session to go to; import omnigraph.spark and start a session first, "
                "or use to_arrow() or to_pandas()"
            )
        return hook(self)

    # --- row and text forms -------------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """All rows as Python dictionaries."""
        return list(self)

    def one(self) -> dict[str, Any]:
        """The only row. An error when there is none or more than one."""
        if self._length != 1:
            raise BadRequest(f"expected exactly one row and got {self._length}; use rows() or add `limit 1`")
        return next(iter(self))

    def scalar(self) -> Any:
        """The only value of the only row."""
        if len(self._columns) != 1:
            raise BadRequest(
                f"expected exactly one column and got {len(self._columns)}: {', '.join(self.column_names)}"
            )
        return next(iter(self.one().values()))

    def to_json(self, *, js_safe_ints: bool = False, indent: bool = False) -> str:
        """A JSON array of objects. `js_safe_ints`: integers that JavaScript would round are written as text."""
        return formats.json_array(self.batches(), self._columns, js_safe_ints=js_safe_ints, indent=indent)

    def jsonl(self, *, js_safe_ints: bool = False) -> Iterator[str]:
        """One JSON object for each row, without line ends, made as they are asked for."""
        for batch in self.batches():
            yield from formats.json_lines(batch, self._columns, js_safe_ints=js_safe_ints)

    def to_jsonl(self, *, js_safe_ints: bool = False) -> str:
        """One JSON object on each line."""
        return "".join(line + "\n" for line in self.jsonl(js_safe_ints=js_safe_ints))

    def csv(self) -> Iterator[str]:
        """Lines of CSV with their ends, the header first, made as they are asked for."""
        yield from formats.csv_lines(self.batches(), self._columns)

    def to_csv(self) -> str:
        """CSV with a header. Nulls are empty, lists and objects are JSON."""
        return "".join(self.csv())

    def to_text(self, width: int | None = None, max_rows: int | None = None) -> str:
        """A text table that fits the terminal (or `width`)."""
        shown = self._length if max_rows is None else min(max_rows, self._length)
        return formats.text_table(self.head(shown), self._columns, self._length, width)

    def to_kv(self) -> str:
        """A block of `key: value` lines for each row."""
        return formats.key_value_blocks(self.batches(), self._columns)


def _require(package: str) -> Any:
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError:
        raise BadRequest(f"{package} is not installed; install omnigraph[frames], or use to_arrow()") from None
