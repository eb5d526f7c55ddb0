"""The input of a load as a stream of decoded rows: one function for every kind of data a caller may hand over."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, StorageError, StorageKind
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.ids.given_ids import own_forms
from omnigraph.write.decode.column_batches import ROWS_PER_BATCH, open_parquet, parquet_batches
from omnigraph.write.decode.files import InputFile, kept_file, named_files
from omnigraph.write.decode.frames import ColumnMapping, decode_frames
from omnigraph.write.decode.json_lines import LineDecoder
from omnigraph.write.decode.line_blocks import LineTooLong, line_blocks
from omnigraph.write.decode.records import decode_plain_rows, decode_records
from omnigraph.write.decode.sources import (
    DECOMPRESSION_ERRORS,
    TABLE_SUFFIXES,
    ByteSource,
    MemorySource,
    repeatable,
    rewindable,
)
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.collector import ViolationCollector

CSV_SUFFIXES = (".csv", ".tsv")
Decode = Callable[[Catalog, ViolationCollector], Iterator[Rows]]


@dataclass(frozen=True, slots=True)
class InputOptions:
    """How columns and plain rows are to be read: the type they are of, its ends, and columns by another name."""

    type: str | None = None
    src: str | None = None
    dst: str | None = None
    columns: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for name, given in (("type", self.type), ("src", self.src), ("dst", self.dst)):
            if given is not None and not isinstance(given, str):
                raise BadRequest(f"load: {name} is a text, not {type(given).__name__}")
        if self.columns is not None and not isinstance(self.columns, Mapping):
            raise BadRequest(
                f"load: columns maps names of columns to properties, and is no {type(self.columns).__name__}"
            )


def open_input(data: Any, options: InputOptions, stack: ExitStack) -> Decode:
    """A function that decodes `data` from its start each time it is called. `stack` owns temporary files."""
    files = named_files(data)
    if files is not None:
        return _files([kept_file(file, stack) for file in files], options)
    if isinstance(data, bytes | bytearray | memoryview):
        return _bytes([MemorySource(bytes(data))], options)
    if hasattr(data, "read"):
        return _bytes([stack.enter_context(rewindable(data))], options)
    columns = as_arrow(data)
    if columns is not None:
        return _arrow(columns, options)
    if isinstance(data, Mapping):
        raise BadRequest("a load takes a list of rows; put the one row into a list")
    if isinstance(data, Iterable):
        return _python_rows(stack.enter_context(repeatable(data)), options)
    raise BadRequest(f"a load does not know what to do with a {type(data).__name__}")


def find_graph_type(catalog: Catalog, options: InputOptions) -> GraphType:
    """The type that the caller named."""
    if options.type is None:
        raise BadRequest("rows of columns have no type of their own; name it with type=… (--type on the command line)")
    found = catalog.node(options.type) or catalog.edge(options.type) or catalog.table(options.type)
    if found is None:
        hint = did_you_mean(options.type, [type_.name for type_ in catalog.types()])
        raise BadRequest(f"the schema has no type `{options.type}`" + (f"; {hint}" if hint else ""))
    return found


def column_mapping(catalog: Catalog, type_: GraphType, options: InputOptions) -> ColumnMapping:
    """How columns are taken as rows of a type."""
    return ColumnMapping(type_, own_forms(catalog, type_), options.src, options.dst, options.columns or {})


def _mapping(catalog: Catalog, options: InputOptions) -> ColumnMapping:
    return column_mapping(catalog, find_graph_type(catalog, options), options)


# --- files and bytes ---------------------------------------------------------------------------------------------


def _files(files: list[InputFile], options: InputOptions) -> Decode:
    def decode(catalog: Catalog, violations: ViolationCollector) -> Iterator[Rows]:
        for file in files:
            if file.suffix in TABLE_SUFFIXES:
                yield from _table_file(file, catalog, options, violations)
            else:
                yield from _json(file, catalog, options, violations)

    return decode


def _bytes(sources: list[ByteSource], options: InputOptions) -> Decode:
    def decode(catalog: Catalog, violations: ViolationCollector) -> Iterator[Rows]:
        for source in sources:
            yield from _json(source, catalog, options, violations)

    return decode


def _json(
    source: ByteSource, catalog: Catalog, options: InputOptions, violations: ViolationCollector
) -> Iterator[Rows]:
    if options.type is not None:
        raise BadRequest(f"{source.name}: records of JSON say their type themselves; leave the type out")
    decoder = LineDecoder(catalog, source.name, violations)
    with source.open() as stream:
        try:
            for lines in line_blocks(stream):
                yield from decoder.decode(lines)
        except LineTooLong as error:
            raise BadRequest(f"{source.name}: {error.message}") from None
        except DECOMPRESSION_ERRORS as error:
            raise StorageError(
                f"{source.name} cannot be read to its end: {error}. Nothing was published", StorageKind.PERMANENT
            ) from error
    yield from decoder.finish()


def _table_file(
    file: InputFile, catalog: Catalog, options: InputOptions, violations: ViolationCollector
) -> Iterator[Rows]:
    mapping = _mapping(catalog, options)
    try:
        names, batches, is_text = _open_table(file)
        check_header(mapping, names, file)
        yield from decode_frames(mapping, batches, file.name, violations, text_values=is_text)
    except (pa.ArrowInvalid, pa.ArrowIOError) as error:
        raise BadRequest(f"{file.name} is not a readable {file.suffix.removeprefix('.')} file: {error}") from error


def check_header(mapping: ColumnMapping, names: Sequence[str], file: InputFile) -> None:
    """Refuse columns that mean nothing, also where no row follows them."""
    try:
        mapping.resolve(names)
    except BadRequest as error:
        first_line = " The first line of the file names its columns." if file.suffix in CSV_SUFFIXES else ""
        raise BadRequest(f"{file.name}: {error.message}.{first_line}") from None


def _open_table(file: InputFile) -> tuple[list[str], Iterable[pa.RecordBatch], bool]:
    """The names of the columns, the rows, and whether every value is text."""
    if file.suffix in CSV_SUFFIXES:
        return csv_header(file), read_csv(file), True
    if file.suffix == ".parquet":
        parquet = open_parquet(file.open_raw())
        return parquet.schema_arrow.names, parquet_batches(parquet), False
    reader = pyarrow.ipc.open_file(pa.memory_map(file.path) if file.bucket is None else file.open_raw())
    batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
    return reader.schema.names, batches, False


def _csv_options(file: InputFile) -> pyarrow.csv.ParseOptions:
    return pyarrow.csv.ParseOptions(delimiter="\t" if file.suffix == ".tsv" else ",", newlines_in_values=True)


def csv_header(file: InputFile) -> list[str]:
    """The names in the first line."""
    return _first_lines(file)[0]


def _first_lines(file: InputFile) -> list[list[str]]:
    """The first line and, if there is one, the second. Arrow's reader tells neither when no row follows."""
    with io.TextIOWrapper(file.open(), "utf-8-sig", newline="") as text:
        lines = csv.reader(text, delimiter=_csv_options(file).delimiter)
        try:
            first = list(islice((line for line in lines if line), 2))
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadRequest(f"{file.name}: the first lines cannot be read as text: {error}") from None
    if not first:
        raise BadRequest(f"{file.name} is empty: it has no line with the names of the columns")
    return first


def read_csv(file: InputFile) -> Iterator[pa.RecordBatch]:
    """Every column as text: what a cell means is decided by the property it is for, not guessed."""
    parse, (header, *rows) = _csv_options(file), _first_lines(file)
    if not rows:
        return
    with file.open() as stream:
        yield from pyarrow.csv.open_csv(
            stream,
            parse_options=parse,
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in header},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


# --- columns and rows in memory ----------------------------------------------------------------------------------


def as_arrow(data: Any) -> pa.Table | None:
    """Columns of Arrow, pandas or Polars, or of anything else that speaks Arrow's stream; None for other data."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    module = type(data).__module__.split(".", 1)[0]
    if module == "pandas":
        twice = [str(name) for name, is_again in zip(data.columns, data.columns.duplicated(), strict=True) if is_again]
        if twice:
            raise BadRequest(f"the frame has more than one column `{twice[0]}`; give each its own name")
        # NaN and NaT are how pandas writes that there is no value.
        return pa.Table.from_pandas(data, preserve_index=False)
    if module == "polars":
        return (data.collect() if hasattr(data, "collect") else data).to_arrow()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    return None


def _arrow(table: pa.Table, options: InputOptions) -> Decode:
    def decode(catalog: Catalog, violations: ViolationCollector) -> Iterator[Rows]:
        mapping = _mapping(catalog, options)
        if table.column_names or table.num_rows:
            mapping.resolve(table.column_names)
        yield from decode_frames(mapping, table.to_batches(max_chunksize=ROWS_PER_BATCH), "<table>", violations)

    return decode


def _python_rows(rows: Iterable[Any], options: InputOptions) -> Decode:
    def decode(catalog: Catalog, violations: ViolationCollector) -> Iterator[Rows]:
        numbered = enumerate(rows, 1)
        while batch := list(islice(numbered, ROWS_PER_BATCH)):
            if options.type is None:
                yield from decode_records(catalog, batch, "<rows>", violations)
                continue
            type_ = find_graph_type(catalog, options)
            renamed = [(record, _renamed(row, options.columns)) for record, row in batch]
            ends = {"src": options.src, "dst": options.dst}
            yield decode_plain_rows(catalog, type_, renamed, "<rows>", violations, **ends)

    return decode


def _renamed(row: Any, columns: Mapping[str, str] | None) -> Any:
    if not columns or not isinstance(row, Mapping):
        return row
    return {columns.get(name, name): value for name, value in row.items()}
