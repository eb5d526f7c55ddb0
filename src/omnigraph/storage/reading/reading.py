"""Reads of a pinned table version: scans, look-ups by id, counts. Nothing here reads a whole table unless asked to."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import ColumnOrdering, LanceDataset

from omnigraph.errors import BadRequest, StorageError, StorageKind
from omnigraph.storage.constants import FEW_LOOKUPS, ID_COLUMN, IDS_PER_INDEX_LOOKUP, LOOKUP_SCAN_SHARE, SCAN_SHARE
from omnigraph.storage.handles.fragment_ids import Narrowed, Place
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.handles.shared_lookups import by_id
from omnigraph.storage.lance_errors import FileDamaged, TableNotFound, lance_errors
from omnigraph.storage.objects.object_errors import is_passing
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.reading.filters import Filter, eq, is_in, to_sql, value_asked
from omnigraph.storage.reading.fitting_batches import fitting
from omnigraph.storage.reading.wanted_rows import members
from omnigraph.storage.staging.staged_files import line_directory
from omnigraph.storage.values import FragmentInfo, Ordering, TableVersion

_logger = logging.getLogger("omnigraph.storage")


def scan(
    handles: Handles,
    table: TableVersion,
    *,
    columns: Sequence[str] | None = None,
    filter: Filter | pc.Expression | None = None,
    limit: int | None = None,
    offset: int | None = None,
    order_by: Sequence[Ordering | str] | None = None,
    with_row_id: bool = False,
    with_row_address: bool = False,
    fragments: Sequence[int] | None = None,
    batch_size: int | None = None,
    blobs: Literal["descriptors", "bytes"] = "descriptors",
    nearest: Mapping[str, Any] | None = None,
    full_text: Any = None,
    prefilter: bool = True,
    use_index: bool = True,
    narrow: bool = True,
) -> pa.RecordBatchReader:
    """Stream rows of a table version.

    `columns` may name `_rowid`, `_row_created_at_version`, `_row_last_updated_at_version` too. `filter` is one of
    `storage.filters`, or an Arrow expression that Lance takes over Substrait (comparison, membership, null tests,
    arithmetic, prefix, substring, and, or, not; no unsigned columns, no lists, no functions of text). `nearest` and
    `full_text` are Lance's own search descriptions (a mapping; a text, a mapping or a query object); with `prefilter`
    the filter holds before the search takes its best rows, which is what callers mean. Without an `order_by` the order
    is that of the table's fragments. A condition that one id fulfils goes to the fragments that can hold it, unless
    `narrow` says that they were looked for before.
    """
    handle = handles.readable(table)
    if order_by is None and nearest is None and full_text is None:
        fragments = _holding(handles, table, filter) if fragments is None and narrow else fragments
        if fragments is not None and not fragments:
            kind = {"with_row_id": with_row_id, "with_row_address": with_row_address, "blobs": blobs}
            return _no_rows(handles, table, {"columns": columns, **kind}).to_reader()
    orderings = _orderings(order_by)
    names = list(columns) if columns is not None else None
    only_to_order: list[str] = []
    if names is not None:
        # Lance cannot order by a column that it does not give (a surface guard tells when it can).
        only_to_order = [entry.column_name for entry in orderings or () if entry.column_name not in names]
        names += only_to_order
        # A search gives its score even when a projection does not name it; Lance would stop doing so by itself.
        names += [name for name, used in (("_distance", nearest), ("_score", full_text)) if used and name not in names]

    is_plain = order_by is None and nearest is None and full_text is None

    def read(indexed: bool, rows: int | None = batch_size, behind: int = 0) -> _Started:
        with _read_errors(handles, table):
            reader: pa.RecordBatchReader = handle.scanner(
                columns=names,
                filter=lance_filter(handle, filter),
                limit=limit if limit is None else limit - behind,
                offset=(offset or 0) + behind if behind else offset,
                order_by=orderings,
                with_row_id=with_row_id or None,
                with_row_address=with_row_address or None,
                fragments=_fragments(handle, table, fragments),
                batch_size=rows,
                blob_handling="all_binary" if blobs == "bytes" else None,
                nearest=dict(nearest) if nearest is not None else None,
                full_text_query=full_text,
                prefilter=prefilter if filter is not None else None,
                use_scalar_index=None if indexed else False,
                disable_scoring_autoprojection=True if names is not None else None,
            ).to_reader()
        return reader.schema, _in_our_words(handles, reader, table)

    # Not one function that names itself: only the garbage collector would find what it holds.
    def start(indexed: bool) -> _Started:
        schema, batches = read(indexed)
        if is_plain:
            batches = fitting(batches, batch_size, lambda fewer, given: read(indexed, fewer, given)[1])
        return schema, batches

    may_use_index = use_index and filter is not None and nearest is None and full_text is None
    given, batches = _or_without_index(start, table) if may_use_index else start(use_index)
    if not only_to_order:
        return pa.RecordBatchReader.from_batches(given, batches)
    kept = [field for field in given if field.name not in only_to_order]
    return pa.RecordBatchReader.from_batches(
        pa.schema(kept, given.metadata), (batch.drop_columns(only_to_order) for batch in batches)
    )


def _holding(handles: Handles, table: TableVersion, filter: object) -> tuple[int, ...] | None:
    """The fragments that can hold the one row that a condition asks for by its id; None when it may be in all."""
    wanted = value_asked(filter, ID_COLUMN)
    if not isinstance(wanted, str):
        return None
    place = place_of_id(handles, table, wanted)
    return None if place is None else place.fragments


_Started = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def _or_without_index(start: Callable[[bool], _Started], table: TableVersion) -> _Started:
    """A read through indexes, or without them when one cannot be read: they are derived, and the rows are there.

    Indexes are asked before the first batch comes, so that one is waited for here.
    """
    try:
        given, batches = start(True)
        first = next(batches, None)
    except StorageError as error:
        if is_passing(error) or isinstance(error, TableNotFound):
            raise
        given, batches = start(False)
        first = next(batches, None)
        _logger.error("an index of %s is damaged and is not used; `omnigraph index` builds it anew: %s", table, error)
    return given, itertools.chain(() if first is None else (first,), batches)


def count(handles: Handles, table: TableVersion, filter: Filter | pc.Expression | None = None) -> int:
    """How many rows there are, or how many match. Without a filter it reads no data."""
    handle = handles.at(table) if filter is None else handles.readable(table)
    with lance_errors("counting", table):
        if filter is None:
            return int(handle.count_rows())
        scanner = handle.scanner(columns=[], with_row_id=True, filter=lance_filter(handle, filter))
        return int(scanner.count_rows())


def schema(handles: Handles, table: TableVersion) -> pa.Schema:
    """The table's Arrow schema; blob columns have Lance's blob type."""
    with lance_errors("reading the schema of", table):
        return handles.at(table).schema


def place_of_id(handles: Handles, table: TableVersion, wanted: str) -> Place | None:
    """Where the row with this id can be, and what decides what it is; None when that is not known."""
    return handles.fragment_ids.place(handles.at(table), table, wanted)


def row_of_id(
    handles: Handles,
    table: TableVersion,
    wanted: str,
    columns: Sequence[str] | None = None,
    *,
    place: Place | None = None,
    check: Callable[[], None] | None = None,
) -> pa.Table:
    """The row with an id, or none. Those who ask for one at the same time may be answered by one read.

    `place` is what `place_of_id` says of it, None when nothing is known; `check` raises who may not wait any longer.
    """
    fragments = place.fragments if place is not None else None
    names = tuple(columns) if columns is not None else None

    def ask(ids: Sequence[str]) -> pa.Table:
        return _rows_in(handles, table, ids, names, fragments)

    if (fragments is not None and not fragments) or (names is not None and ID_COLUMN not in names):
        return ask((wanted,))
    return handles.shared_lookups.get((table, names, fragments), wanted, ask, check)


def rows_of_ids(
    handles: Handles,
    table: TableVersion,
    ids: Sequence[str],
    columns: Sequence[str],
    fragments: tuple[int, ...] | None = None,
) -> dict[str, pa.Table]:
    """The row of each of some ids, as `row_of_id` gives it, by one read. The columns have the id among them."""
    return by_id(_rows_in(handles, table, ids, tuple(columns), fragments), ids, ID_COLUMN)


def _rows_in(
    handles: Handles,
    table: TableVersion,
    ids: Sequence[str],
    columns: tuple[str, ...] | None,
    fragments: tuple[int, ...] | None,
) -> pa.Table:
    condition = eq(ID_COLUMN, ids[0]) if len(ids) == 1 else is_in(ID_COLUMN, ids)
    names = list(columns) if columns is not None else None
    return scan(handles, table, columns=names, filter=condition, fragments=fragments, narrow=False).read_all()


def knows_ids(handles: Handles, table: TableVersion) -> bool:
    """Whether look-ups by id go to the one fragment that has it, without an index."""
    return handles.fragment_ids.knows_all(handles.at(table), table)


def metadata(handles: Handles, table: TableVersion) -> dict[str, str]:
    """The table's own key-value metadata."""
    with lance_errors("reading the metadata of", table):
        return dict(handles.at(table).metadata)


def fragments(handles: Handles, table: TableVersion) -> list[FragmentInfo]:
    """The fragments of a table version, in order. Reads no data."""
    with lance_errors("reading the fragments of", table):
        found = [fragment.metadata for fragment in handles.at(table).get_fragments()]
    return [FragmentInfo(f.id, f.num_rows, f.physical_rows, f.num_deletions) for f in found]


def take_ids(
    handles: Handles,
    table: TableVersion,
    ids: Sequence[str] | pa.Array | pa.ChunkedArray,
    columns: Sequence[str] | None = None,
    *,
    key: str = ID_COLUMN,
    with_row_id: bool = False,
    with_row_address: bool = False,
    blobs: Literal["descriptors", "bytes"] = "descriptors",
) -> pa.Table:
    """The rows with these ids, in no particular order; ids that are not there are left out.

    Few ids go to the fragments that can hold them, through the index where there is one, in batches. Many, measured
    against the table, are found by one streaming scan.
    """
    wanted = unique_ids(ids)
    options: dict[str, Any] = {
        "columns": columns,
        "with_row_id": with_row_id,
        "with_row_address": with_row_address,
        "blobs": blobs,
    }
    if len(wanted) == 0:
        return scan(handles, table, filter=is_in(key, ()), **options).read_all()
    few, share = (IDS_PER_INDEX_LOOKUP, SCAN_SHARE) if key == ID_COLUMN else (FEW_LOOKUPS, LOOKUP_SCAN_SHARE)
    if len(wanted) > few and len(wanted) > share * count(handles, table):
        return _take_by_scan(handles, table, wanted, key, options)
    narrowed = handles.fragment_ids.narrow(handles.at(table), table, wanted) if key == ID_COLUMN else None
    if narrowed is not None:
        return _take_from(handles, table, wanted, narrowed, options)
    parts = [
        scan(handles, table, filter=is_in(key, wanted.slice(start, IDS_PER_INDEX_LOOKUP)), **options).read_all()
        for start in range(0, len(wanted), IDS_PER_INDEX_LOOKUP)
    ]
    return pa.concat_tables(parts)


def _take_from(
    handles: Handles, table: TableVersion, wanted: pa.Array, narrowed: Narrowed, options: Mapping[str, Any]
) -> pa.Table:
    """The rows of a few ids of which it is known where they can be."""
    only_ids = options["columns"] is not None and list(options["columns"]) == [ID_COLUMN]
    if only_ids and not options["with_row_id"] and not options["with_row_address"]:
        field = handles.at(table).schema.field(ID_COLUMN)
        present = pa.table([pa.array(sorted(narrowed.present), field.type)], schema=pa.schema([field]))
        if not narrowed.fragments:
            return present
        left = wanted.filter(pc.invert(pc.is_in(wanted, value_set=present[ID_COLUMN].combine_chunks())))
        found = scan(handles, table, filter=is_in(ID_COLUMN, left), fragments=narrowed.fragments, **options).read_all()
        return pa.concat_tables([present, found])
    if not narrowed.candidates:
        return _no_rows(handles, table, options)
    return scan(handles, table, filter=is_in(ID_COLUMN, wanted), fragments=narrowed.candidates, **options).read_all()


def _no_rows(handles: Handles, table: TableVersion, options: Mapping[str, Any]) -> pa.Table:
    """What a read with these options gives when nothing matches, without reading."""
    handle = handles.at(table)
    columns = tuple(options["columns"]) if options["columns"] is not None else None
    # As text: a schema with a blob in it has no hash.
    key = (str(handle.schema), columns, options["with_row_id"], options["with_row_address"], options["blobs"])
    with _no_rows_lock:
        known = _no_rows_of.get(key)
        if known is not None:
            return known
    with lance_errors("reading", table):
        scanner = handle.scanner(
            columns=options["columns"],
            with_row_id=options["with_row_id"] or None,
            with_row_address=options["with_row_address"] or None,
            blob_handling="all_binary" if options["blobs"] == "bytes" else None,
        )
        empty: pa.Table = scanner.projected_schema.empty_table()
    with _no_rows_lock:
        if len(_no_rows_of) >= _NO_ROWS_KEPT:
            _no_rows_of.clear()
        _no_rows_of[key] = empty
    return empty


# To ask Lance for the columns of a read plans the read, which takes longer than most look-ups of a new id.
_no_rows_of: dict[tuple[Any, ...], pa.Table] = {}
_NO_ROWS_KEPT = 256
_no_rows_lock = threading.Lock()


def take_rows(
    handles: Handles, table: TableVersion, row_ids: Sequence[int] | pa.Array, columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows with these stable row ids, with `_rowid`, in the order asked for. Missing ones are left out."""
    handle = handles.readable(table)
    wanted = row_ids if isinstance(row_ids, pa.Array) else pa.array(row_ids, pa.uint64())
    names = list(columns) if columns is not None else list(handle.schema.names)
    with lance_errors("reading rows of", table):
        # Lance drops missing ids silently, so the row id travels along.
        return handle._take_rows(wanted, [*[name for name in names if name != "_rowid"], "_rowid"])


def unique_ids(ids: Sequence[str] | pa.Array | pa.ChunkedArray) -> pa.Array:
    """Ids as one Arrow array without repeats and nulls."""
    array = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids, pa.string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return pc.unique(array).drop_null()


def lance_filter(handle: LanceDataset, filter: Filter | pc.Expression | None) -> Any:
    """A condition in the form that Lance takes."""
    if filter is None or isinstance(filter, pc.Expression):
        return filter
    return to_sql(filter, handle.schema)


def _take_by_scan(
    handles: Handles, table: TableVersion, wanted: pa.Array, key: str, options: Mapping[str, Any]
) -> pa.Table:
    columns = options["columns"]
    names = None if columns is None or key in columns else [*columns, key]
    reader = scan(handles, table, **{**options, "columns": names if names is not None else columns})
    rows = members(reader, key, wanted)
    return rows.drop_columns([key]) if names is not None else rows


def _fragments(handle: LanceDataset, table: TableVersion, wanted: Sequence[int] | None) -> Any:
    if wanted is None:
        return None
    found = []
    for number in wanted:
        fragment = handle.get_fragment(number)
        if fragment is None:
            raise BadRequest(f"{table} has no fragment {number}")
        found.append(fragment)
    return found


def _orderings(order_by: Sequence[Ordering | str] | None) -> list[ColumnOrdering] | None:
    if order_by is None:
        return None
    orderings = [Ordering(entry) if isinstance(entry, str) else entry for entry in order_by]
    return [ColumnOrdering(entry.column, entry.ascending, entry.nulls_first) for entry in orderings]


@contextmanager
def _read_errors(handles: Handles, table: TableVersion) -> Iterator[None]:
    """Errors in our words. A file that is missing because cleanup has removed the version is no damage."""
    try:
        with lance_errors("reading", table):
            yield
    except FileDamaged:
        versions = f"{line_directory(table)}/_versions"
        names = (f"{2**64 - 1 - table.version:020d}.manifest", f"{table.version}.manifest")
        if any(open_objects(handles.root).head(f"{versions}/{name}") is not None for name in names):
            raise
        raise TableNotFound(
            f"{table} has been removed, by cleanup or with its branch: read a newer state", StorageKind.NOT_FOUND
        ) from None


def _in_our_words(handles: Handles, reader: pa.RecordBatchReader, table: TableVersion) -> Iterator[pa.RecordBatch]:
    """The reader's batches, with errors that come while reading told in our words too."""
    while True:
        with _read_errors(handles, table):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        yield batch
