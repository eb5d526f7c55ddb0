"""The input of a load as pieces that tasks decode on their own.

Files of JSON lines are cut at line ends; Parquet files between row groups; compressed files, CSV and streams of
pretty-printed values are one piece each, since where a record begins is not known before the ones before it are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from omnigraph.errors import BadRequest, StorageError, StorageKind
from omnigraph.schema.catalog import Catalog
from omnigraph.write.decode.column_batches import open_parquet, parquet_batches
from omnigraph.write.decode.files import InputFile
from omnigraph.write.decode.frames import decode_frames
from omnigraph.write.decode.inputs import (
    CSV_SUFFIXES,
    InputOptions,
    check_header,
    column_mapping,
    csv_header,
    find_graph_type,
    read_csv,
)
from omnigraph.write.decode.json_lines import LineDecoder
from omnigraph.write.decode.json_text import RecordReader
from omnigraph.write.decode.line_blocks import line_blocks
from omnigraph.write.decode.sources import DECOMPRESSION_ERRORS, TABLE_SUFFIXES
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.collector import ViolationCollector

SMALLEST_SPLIT = 8 << 20
LARGEST_SPLIT = 256 << 20
ENOUGH_COLUMNS = 32 << 20
"""Columns that are worth a task of their own before there are four for each core: each looks at committed nodes."""

BLOCK_BYTES = 8 << 20
COLUMNAR = 4
"""How many bytes of JSON lines a byte of a compressed file or of columns is worth."""

_HEAD = 1 << 16
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of one file: bytes `start` to `end`, or some row groups; `end` None means the whole file.

    `number` counts through the whole input. Within a split records are counted from `first_record`; for bytes out of
    the middle of a file that is 1, and the driver adds what came before.
    """

    number: int
    file: InputFile
    start: int = 0
    end: int | None = None
    row_groups: tuple[int, ...] | None = None
    first_record: int = 1
    columns: tuple[tuple[str, str], ...] | None = None
    """Of a file of columns, which of them are read, each with the name it goes by; None: all as they are."""

    @property
    def bytes(self) -> int:
        """How much of the file it is; the first of several groups of rows stands for all of them."""
        if self.row_groups is not None and 0 not in self.row_groups:
            return 0
        return (self.file.size if self.end is None else self.end) - self.start

    def __str__(self) -> str:
        if self.row_groups is not None:
            return f"{self.file.name}, from record {self.first_record}"
        return self.file.name if self.end is None else f"{self.file.name}, bytes {self.start} to {self.end}"

    @property
    def is_part(self) -> bool:
        """Whether other splits have the rest of the file."""
        return self.end is not None


@dataclass(frozen=True, slots=True)
class SplitOutcome:
    """What a task learned about its split: how many records there were, and whether it ended inside one."""

    number: int
    records: int
    cut_a_record: bool = False


def plan_splits(files: Sequence[InputFile], cores: int, whole: frozenset[str] = frozenset()) -> list[Split]:
    """Cut files into splits, about four for each core. Files named in `whole` stay whole."""
    size = _split_size((file.size for file in files), cores)
    splits: list[Split] = []
    for file in files:
        splits += [replace(split, number=0) for split in _cut(file, size, cores, file.name in whole)]
    return [replace(split, number=number) for number, split in enumerate(splits)]


def groups_of(splits: Sequence[Split], cores: int) -> list[list[Split]]:
    """Splits that one task decodes: files that are small come together, in their order, everything else by itself.

    A task for each of thousands of small files would cost more than what is in them, and leave a fragment of each.
    About four groups for each core stay, however small the files are.
    """
    parts = Counter(split.file.name for split in splits)
    groups: list[list[Split]] = []
    room, most = 0, -(-len(splits) // max(4 * cores, 1))
    size = _split_size([weight_of(split.file) for split in splits if parts[split.file.name] == 1], cores)
    for split in splits:
        weight = weight_of(split.file) if parts[split.file.name] == 1 else size
        if not groups or weight > room or len(groups[-1]) >= most:
            groups.append([])
            room = size
        groups[-1].append(split)
        room -= weight
    return groups


def weight_of(file: InputFile) -> int:
    """How many bytes of JSON lines a file is worth: one of columns, or a compressed one, a few for each byte."""
    return file.size * (COLUMNAR if file.name.endswith((".gz", ".zst", ".parquet")) else 1)


def _split_size(sizes: Iterable[int], cores: int) -> int:
    return min(max(sum(sizes) // max(4 * cores, 1), SMALLEST_SPLIT), LARGEST_SPLIT)


def _cut(file: InputFile, size: int, cores: int, keep_whole: bool) -> Iterator[Split]:
    if file.suffix == ".parquet":
        yield from _row_groups(file, size, cores)
        return
    if keep_whole or file.suffix in TABLE_SUFFIXES or file.size <= size or not _is_json_lines(file):
        yield Split(0, file)
        return
    start = 0
    while start < file.size:
        end = _next_line(file, start + size)
        yield Split(0, file, start, end)
        start = end


def _row_groups(file: InputFile, size: int, cores: int) -> Iterator[Split]:
    with file.open_raw() as stream:
        metadata = pyarrow.parquet.ParquetFile(stream).metadata
    every = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    # Columns are read fast: two splits for each core do, until they are large. Groups of rows differ by a little.
    size = max(size, min(every * 7 // (16 * cores), ENOUGH_COLUMNS))
    groups: list[int] = []
    group_bytes, first, rows = 0, 1, 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        groups.append(number)
        group_bytes += group.total_byte_size
        rows += group.num_rows
        if group_bytes >= size or number == metadata.num_row_groups - 1:
            yield Split(0, file, row_groups=tuple(groups), first_record=first)
            groups, group_bytes, first, rows = [], 0, first + rows, 0
    if metadata.num_row_groups == 0:
        yield Split(0, file)


def _is_json_lines(file: InputFile) -> bool:
    head = file.read(0, _HEAD)
    if head.startswith(_COMPRESSED):
        return False
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:-1]]
    full = [line for line in lines if line]
    return bool(full) and all(line.startswith(b"{") and line.endswith(b"}") for line in full)


def _next_line(file: InputFile, position: int) -> int:
    """Where the first line that begins at or after `position` begins; the end of the file when there is none."""
    at = position - 1
    while at < file.size:
        found = file.read(at, min(at + _HEAD, file.size)).find(b"\n")
        if found >= 0:
            return at + found + 1
        at += _HEAD
    return file.size


def decode_split(
    split: Split, source: str, catalog: Catalog, options: InputOptions, violations: ViolationCollector
) -> Iterator[Rows | SplitOutcome]:
    """The rows of a split, piece by piece, and at the end what was learned about it."""
    if split.file.suffix in TABLE_SUFFIXES:
        yield from _table_rows(split, source, catalog, options, violations)
    else:
        yield from _json_rows(split, source, catalog, options, violations)


def _json_rows(
    split: Split, source: str, catalog: Catalog, options: InputOptions, violations: ViolationCollector
) -> Iterator[Rows | SplitOutcome]:
    if options.type is not None:
        raise BadRequest(f"{split.file.name}: records of JSON say their type themselves; leave type=… out")
    reader = RecordReader()
    decoder = LineDecoder(catalog, source, violations, use_threads=False, _reader=reader)
    with split.file.open(split.start, split.end) as stream:
        try:
            for lines in line_blocks(stream, BLOCK_BYTES):
                yield from decoder.decode(lines)
        except DECOMPRESSION_ERRORS as error:
            raise StorageError(
                f"{split.file.name} cannot be read to its end: {error}. Nothing was published", StorageKind.PERMANENT
            ) from error
    cut = split.is_part and split.end != split.file.size and reader.unfinished
    yield from decoder.finish()
    yield SplitOutcome(split.number, reader.next_record - 1, cut)


def _table_rows(
    split: Split, source: str, catalog: Catalog, options: InputOptions, violations: ViolationCollector
) -> Iterator[Rows | SplitOutcome]:
    mapping = column_mapping(catalog, find_graph_type(catalog, options), options)
    file = split.file
    try:
        with file.open_raw() as stream:
            names, batches, is_text = _batches(file, stream, split)
            check_header(mapping, names, file)
            yield from decode_frames(
                mapping, batches, source, violations, text_values=is_text, first_record=split.first_record
            )
    except (pa.ArrowInvalid, pa.ArrowIOError) as error:
        raise BadRequest(f"{file.name} is not a readable {file.suffix.removeprefix('.')} file: {error}") from error
    yield SplitOutcome(split.number, 0)


def _batches(file: InputFile, stream: Any, split: Split) -> tuple[list[str], Iterator[pa.RecordBatch], bool]:
    """The names of the columns, the rows, and whether every value is text."""
    if file.suffix in CSV_SUFFIXES:
        return csv_header(file), read_csv(file), True
    if file.suffix == ".parquet":
        parquet = open_parquet(stream)
        groups = list(split.row_groups) if split.row_groups is not None else None
        if split.columns is not None:
            return [name for _, name in split.columns], _chosen(parquet, groups, split.columns), False
        names = parquet.schema_arrow.names
        return names, parquet_batches(parquet, groups), False
    reader = pa.ipc.open_file(stream)
    return reader.schema.names, (reader.get_batch(number) for number in range(reader.num_record_batches)), False


def _chosen(
    parquet: pyarrow.parquet.ParquetFile, groups: list[int] | None, columns: Sequence[tuple[str, str]]
) -> Iterator[pa.RecordBatch]:
    """Some columns of some groups of rows, under other names."""
    wanted = list(dict.fromkeys(column for column, _ in columns))
    for batch in parquet_batches(parquet, groups, wanted):
        yield pa.RecordBatch.from_arrays([batch.column(column) for column, _ in columns], [name for _, name in columns])
