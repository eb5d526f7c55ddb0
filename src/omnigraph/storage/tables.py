"""The tables of one graph: every read and every staged write, in one place.

`TableStore` holds the handles and hands over; each idea lives in its own module beside this one. There is no call that
writes and commits in one go, except `create`, which makes a table that nobody can know of yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.search_settings import Metric, TextSettings
from omnigraph.storage import index_search
from omnigraph.storage.clearing import abandoning
from omnigraph.storage.constants import HANDLE_CACHE_SIZE, ID_COLUMN
from omnigraph.storage.handles import creating, forks, table_history
from omnigraph.storage.handles.fragment_ids import Place
from omnigraph.storage.handles.handles import Handles, Hook
from omnigraph.storage.index_search import Coverage, TextQuestion, VectorQuestion
from omnigraph.storage.layout import compaction, index_damage, indexes
from omnigraph.storage.layout.compaction import CompactionOptions, CompactionWork, StagedCompaction
from omnigraph.storage.layout.indexes import IndexKind, IndexState, IndexWork, SearchSettings
from omnigraph.storage.published_files import Checksums, PublishedFiles
from omnigraph.storage.reading import blobs, changed_rows, reading
from omnigraph.storage.reading.filters import Filter
from omnigraph.storage.staging import (
    adopting,
    committing,
    distributed,
    filling,
    internal_tables,
    staging,
    table_columns,
)
from omnigraph.storage.staging.distributed import WriteTarget
from omnigraph.storage.staging.filling import Fill
from omnigraph.storage.staging.row_streams import Rows
from omnigraph.storage.staging.written_rows import WrittenRows
from omnigraph.storage.uri import Root
from omnigraph.storage.values import (
    ForkInfo,
    FragmentInfo,
    IndexInfo,
    StagedWrite,
    TableDelta,
    TableVersion,
    TransactionInfo,
    VersionInfo,
)

Ids: TypeAlias = Sequence[str] | pa.Array | pa.ChunkedArray


class TableStore:
    """The tables below a graph's root. Safe to share between threads; opening it reads nothing."""

    def __init__(self, root: Root, *, cache_size: int = HANDLE_CACHE_SIZE) -> None:
        self.root = root
        self.handles = Handles(root, cache_size)
        self.files = PublishedFiles(self.handles)
        self.handles.before_read = self.files.check

    @property
    def on_call(self) -> Hook | None:
        """Called with (`open` | `commit` | `fork`, location) for each such call to Lance; tests count with it."""
        return self.handles.on_call

    @on_call.setter
    def on_call(self, hook: Hook | None) -> None:
        self.handles.on_call = hook

    def create(
        self,
        location: str,
        schema: pa.Schema,
        *,
        rows: Rows | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableVersion:
        """A new table, empty or with rows; see `creating.create`."""
        return creating.create(self.handles, location, schema, rows, properties)

    def head(self, location: str, branch: str | None = None) -> TableVersion:
        """The newest version of one line, looked up afresh."""
        return creating.head(self.handles, location, branch)

    def exists(self, location: str) -> bool:
        """Whether there is a table."""
        return creating.exists(self.handles, location)

    def forget(self, location: str) -> None:
        """Let go of what is known of a table's main line that was moved away."""
        self.handles.forget(location, None)

    def schema(self, table: TableVersion) -> pa.Schema:
        """The table's Arrow schema."""
        return reading.schema(self.handles, table)

    def metadata(self, table: TableVersion) -> dict[str, str]:
        """The table's own key-value metadata."""
        return reading.metadata(self.handles, table)

    def count(self, table: TableVersion, filter: Filter | pc.Expression | None = None) -> int:
        """How many rows there are, or match."""
        return reading.count(self.handles, table, filter)

    def scan(self, table: TableVersion, **options: Any) -> pa.RecordBatchReader:
        """Stream rows; the options are those of `reading.scan`."""
        return reading.scan(self.handles, table, **options)

    def scan_table(self, table: TableVersion, **options: Any) -> pa.Table:
        """The rows of `scan`, all at once."""
        return reading.scan(self.handles, table, **options).read_all()

    def take_ids(self, table: TableVersion, ids: Ids, columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
        """Rows by id, in no particular order; see `reading.take_ids`."""
        return reading.take_ids(self.handles, table, ids, columns, **options)

    def place_of_id(self, table: TableVersion, wanted: str) -> Place | None:
        """Where the row with this id can be; see `Place`."""
        return reading.place_of_id(self.handles, table, wanted)

    def row_of_id(
        self, table: TableVersion, wanted: str, columns: Sequence[str] | None = None, **options: Any
    ) -> pa.Table:
        """The row with an id, perhaps by one read for several callers; see `reading.row_of_id`."""
        return reading.row_of_id(self.handles, table, wanted, columns, **options)

    def rows_of_ids(
        self, table: TableVersion, ids: Sequence[str], columns: Sequence[str], fragments: tuple[int, ...] | None = None
    ) -> dict[str, pa.Table]:
        """The row of each of some ids, by one read; see `reading.rows_of_ids`."""
        return reading.rows_of_ids(self.handles, table, ids, columns, fragments)

    def knows_ids(self, table: TableVersion) -> bool:
        """Whether look-ups by id go to the one fragment that has it, without an index."""
        return reading.knows_ids(self.handles, table)

    def ids_in(self, files: Iterable[str]) -> dict[str, list[str]]:
        """The ids of small data files that were just written; see `FragmentIds.of_files`."""
        return self.handles.fragment_ids.of_files(files)

    def note_ids(self, ids: Mapping[str, Sequence[str]]) -> None:
        """Know the ids of small data files that another process has written."""
        self.handles.fragment_ids.keep(ids)

    def take_rows(
        self, table: TableVersion, row_ids: Sequence[int] | pa.Array, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Rows by stable row id, with `_rowid`, in the order asked for."""
        return reading.take_rows(self.handles, table, row_ids, columns)

    def fragments(self, table: TableVersion) -> list[FragmentInfo]:
        """The fragments of a version."""
        return reading.fragments(self.handles, table)

    def blob_size(self, table: TableVersion, row_id: int, column: str) -> int | None:
        """The size of a blob, None when null."""
        return blobs.blob_size(self.handles, table, row_id, column)

    def read_blob(
        self, table: TableVersion, row_id: int, column: str, start: int = 0, end: int | None = None
    ) -> bytes | None:
        """Part of a blob; None when null."""
        return blobs.read_blob(self.handles, table, row_id, column, start, end)

    def stage_append(self, table: TableVersion, rows: Rows, *, written: WrittenRows | None = None) -> StagedWrite:
        """Stage new rows; see `WrittenRows` for `written`."""
        return staging.stage_append(self.handles, table, rows, written=written)

    def stage_again(self, table: TableVersion, write: StagedWrite) -> StagedWrite:
        """Stage the new rows of an append once more, on a later version."""
        return staging.stage_again(self.handles, table, write)

    def stage_upsert(
        self, table: TableVersion, rows: pa.Table, *, key: str = ID_COLUMN, there: pa.Table | None = None
    ) -> StagedWrite:
        """Stage whole rows by id; see `staging.stage_change` for `there`."""
        return staging.stage_upsert(self.handles, table, rows, key=key, there=there)

    def stage_delete(self, table: TableVersion, ids: Ids, *, key: str = ID_COLUMN) -> StagedWrite:
        """Stage the removal of rows by id."""
        return staging.stage_delete(self.handles, table, ids, key=key)

    def stage_change(
        self,
        table: TableVersion,
        upserts: pa.Table | None,
        delete_ids: Ids | None,
        *,
        key: str = ID_COLUMN,
        there: pa.Table | None = None,
        written: WrittenRows | None = None,
    ) -> StagedWrite:
        """Stage upserts and deletes as one transaction; see `staging.stage_change`."""
        return staging.stage_change(self.handles, table, upserts, delete_ids, key=key, there=there, written=written)

    def stage_overwrite(self, table: TableVersion, rows: Rows, schema: pa.Schema | None = None) -> StagedWrite:
        """Stage the replacement of the whole content."""
        return staging.stage_overwrite(self.handles, table, rows, schema)

    def stage_replace_fragments(
        self, table: TableVersion, fragment_ids: Sequence[int], rows: Rows, *, written: WrittenRows | None = None
    ) -> StagedWrite:
        """Stage rows in the place of whole fragments, for the graph's own logs."""
        return internal_tables.stage_replace_fragments(self.handles, table, fragment_ids, rows, written=written)

    def stage_schema_metadata(
        self,
        table: TableVersion,
        metadata: Mapping[str, str],
        field_metadata: Mapping[str, Mapping[str, str]] | None = None,
    ) -> StagedWrite:
        """Stage metadata of the schema and its fields, for the stamp of the graph's own tables."""
        return internal_tables.stage_schema_metadata(self.handles, table, metadata, field_metadata)

    def stage_fragments(self, table: TableVersion, new_fragments: Sequence[str], **options: Any) -> StagedWrite:
        """What workers wrote, as one staged write; see `distributed.stage_fragments`."""
        return distributed.stage_fragments(self.handles, table, new_fragments, **options)

    def adoptable(self, source: TableVersion, target: TableVersion, least_rows: int) -> dict[int, int]:
        """Fragments whose files another line can take as they are, with their rows; see `adopting`."""
        return adopting.adoptable(self.handles, source, target, least_rows)

    def adopt_fragments(
        self, source: TableVersion, target: TableVersion, fragment_ids: Collection[int]
    ) -> list[str] | None:
        """Copy the files of fragments to another line, for `stage_fragments`; None when the store cannot."""
        return adopting.adopt_fragments(self.handles, source, target, fragment_ids)

    def write_target(self, table: TableVersion) -> WriteTarget:
        """The address of a table for workers that call `distributed.write_fragments`."""
        return distributed.write_target(self.handles, table)

    def stage_columns(self, table: TableVersion, **changes: Any) -> StagedWrite:
        """Stage new, renamed, dropped or loosened columns; see `table_columns.stage_columns`."""
        return table_columns.stage_columns(self.handles, table, **changes)

    def stage_filled_columns(self, table: TableVersion, fill: Fill, **changes: Any) -> StagedWrite:
        """Stage new columns with values, and other changes of columns; see `filling.stage_filled_columns`."""
        return filling.stage_filled_columns(self.handles, table, fill, **changes)

    def stage_add_columns(self, table: TableVersion, fields: Sequence[pa.Field]) -> StagedWrite:
        """Stage new all-null columns."""
        return table_columns.stage_columns(self.handles, table, add=fields)

    def stage_rename_columns(self, table: TableVersion, names: Mapping[str, str]) -> StagedWrite:
        """Stage new names for columns."""
        return table_columns.stage_columns(self.handles, table, rename=names)

    def stage_drop_columns(self, table: TableVersion, names: Sequence[str]) -> StagedWrite:
        """Stage the removal of columns."""
        return table_columns.stage_columns(self.handles, table, drop=names)

    def list_indexes(self, table: TableVersion) -> list[IndexInfo]:
        """The indexes of a version and what they cover."""
        return indexes.list_indexes(self.handles, table)

    def lost_indexes(self, table: TableVersion) -> list[str]:
        """Indexes whose files are not where the table looks for them, which happens when a fork is compacted."""
        return indexes.lost_indexes(self.handles, table)

    def damaged_indexes(self, table: TableVersion, recorded: Checksums | None = None) -> dict[str, str]:
        """Indexes that cannot be read, or are not what was published, each with what is wrong."""
        return index_damage.damaged_indexes(
            self.handles, table, lambda directory: self.files.differing(directory, recorded or {})
        )

    def index_state(
        self, table: TableVersion, column: str, kind: IndexKind, settings: SearchSettings | None = None
    ) -> IndexState:
        """What is missing of an index."""
        return indexes.index_state(self.handles, table, column, kind, settings)

    def stage_index(
        self, table: TableVersion, column: str, kind: IndexKind, settings: SearchSettings | None = None
    ) -> StagedWrite | None:
        """Build what is missing of an index; None when nothing is, or too few vectors are there."""
        return indexes.stage_index(self.handles, table, column, kind, settings)

    def stage_indexes(
        self, table: TableVersion, wanted: Sequence[tuple[str, IndexKind, SearchSettings | None]]
    ) -> StagedWrite | None:
        """The same for several indexes, in one commit."""
        return indexes.stage_indexes(self.handles, table, wanted)

    def stage_indexes_again(self, table: TableVersion, write: StagedWrite) -> StagedWrite | None:
        """The segments of `stage_indexes` on a later version; None when they do not fit it."""
        return indexes.stage_indexes_again(self.handles, table, write)

    def plan_index(
        self,
        table: TableVersion,
        column: str,
        kind: IndexKind,
        parts: int = 1,
        settings: SearchSettings | None = None,
        *,
        anew: bool = False,
    ) -> list[IndexWork]:
        """The segments to build elsewhere by `indexes.run_index_task`; `anew` builds over everything."""
        return indexes.plan_index(self.handles, table, column, kind, parts, settings, anew=anew)

    def stage_index_segments(
        self, table: TableVersion, column: str, kind: IndexKind, segments: Sequence[bytes]
    ) -> StagedWrite:
        """Segments that were built elsewhere, as one staged write."""
        return indexes.stage_index_segments(self.handles, table, column, kind, segments)

    def stage_drop_index(self, table: TableVersion, name: str) -> StagedWrite | None:
        """Stage the removal of an index; None when there is none."""
        return indexes.stage_drop_index(self.handles, table, name)

    def text_coverage(self, table: TableVersion, column: str, settings: TextSettings) -> Coverage | None:
        """What the text index of a column covers; None when there is none to ask."""
        return index_search.text_coverage(self.handles, table, column, settings)

    def vector_coverage(self, table: TableVersion, column: str, metric: Metric) -> Coverage | None:
        """What the vector index of a column covers; None when there is none to ask."""
        return index_search.vector_coverage(self.handles, table, column, metric)

    def vector_centres(self, table: TableVersion, column: str, coverage: Coverage) -> npt.NDArray[np.float32] | None:
        """The centres of the partitions of a vector index; see `index_search.vector_centres`."""
        return index_search.vector_centres(self.handles, table, column, coverage)

    def indexed_texts(self, table: TableVersion, coverage: Coverage) -> tuple[int, int] | None:
        """How many texts and tokens a text index counts."""
        return index_search.indexed_texts(self.handles, table, coverage)

    def ask_text_index(
        self,
        table: TableVersion,
        question: TextQuestion,
        columns: Sequence[str],
        filter: Filter | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Rows of covered fragments that match; see `index_search.ask_text_index`."""
        return index_search.ask_text_index(self.handles, table, question, columns, filter, limit)

    def ask_vector_index(
        self, table: TableVersion, question: VectorQuestion, columns: Sequence[str], filter: Filter | None = None
    ) -> pa.Table:
        """The nearest rows of covered fragments; see `index_search.ask_vector_index`."""
        return index_search.ask_vector_index(self.handles, table, question, columns, filter)

    def plan_compaction(self, table: TableVersion, options: CompactionOptions | None = None) -> list[CompactionWork]:
        """The tasks to run elsewhere by `compaction.run_compaction_task`."""
        return compaction.plan_compaction(self.handles, table, options)

    def stage_compaction(
        self, table: TableVersion, options: CompactionOptions | None = None, *, spare_first: bool = False
    ) -> StagedCompaction | None:
        """Compact here; None when there is nothing to do. See `plan_compaction` for `spare_first`."""
        return compaction.stage_compaction(self.handles, table, options, spare_first=spare_first)

    def stage_compaction_again(self, staged: StagedCompaction, table: TableVersion) -> StagedCompaction | None:
        """A compaction on a later version; None when something that it rewrote has changed up to there."""
        return compaction.stage_again(self.handles, staged, table)

    def commit_compaction(self, staged: StagedCompaction) -> TableVersion:
        """Make a compaction the newest version: two versions on, untagged, no rows changed."""
        return compaction.commit_compaction(self.handles, staged)

    def abandon(self, write: StagedWrite | StagedCompaction) -> int:
        """Remove the files of a staged write that will not be committed, as far as possible; how many went."""
        return abandoning.abandon(self.handles, write)

    def commit_staged(
        self,
        write: StagedWrite | StagedCompaction,
        operation_id: str,
        *,
        extra_properties: Mapping[str, str] | None = None,
        looked: bool = False,
    ) -> TableVersion:
        """Move HEAD to exactly the next version, or raise `Conflict`; see `committing` and `compaction`."""
        if isinstance(write, StagedCompaction):
            return compaction.commit_compaction(self.handles, write)
        landed = committing.commit_staged(self.handles, write, operation_id, extra_properties, looked=looked)
        self.files.landed(write, landed)
        return landed

    def restore(self, target: TableVersion, expected_head: int, operation_id: str) -> TableVersion:
        """A new version with the content of an old one, right after `expected_head`."""
        return committing.restore(self.handles, target, expected_head, operation_id)

    def stage_restore(self, table: TableVersion, version: int) -> StagedWrite:
        """Stage the content of an older version of the same line; see `staging.stage_restore`."""
        return staging.stage_restore(self.handles, table, version)

    def create_fork(self, table: TableVersion, name: str) -> TableVersion:
        """A new line that starts at this version."""
        return forks.create_fork(self.handles, table, name)

    def delete_fork(self, location: str, name: str) -> bool:
        """Remove a line; False when there was none."""
        return forks.delete_fork(self.handles, location, name)

    def list_forks(self, location: str) -> list[ForkInfo]:
        """The lines of a table beside its main one."""
        return forks.list_forks(self.handles, location)

    def transactions(
        self, location: str, branch: str | None, after_version: int, to_version: int
    ) -> list[TransactionInfo]:
        """What made each version of a line after one up to another."""
        return table_history.transactions(self.handles, location, branch, after_version, to_version)

    def delta(self, location: str, branch: str | None, begin: int, end: int) -> TableDelta:
        """Rows inserted, updated and deleted between two versions of a line."""
        return table_history.delta(self.handles, location, branch, begin, end)

    def changed_rows(
        self, table: TableVersion, since: TableVersion, columns: Sequence[str], **options: Any
    ) -> pa.RecordBatchReader:
        """Rows that are new or updated since a version in the past; see `changed_rows.changed_rows`."""
        return changed_rows.changed_rows(self.handles, table, since, columns, **options)

    def forget_misplaced(self) -> None:
        """Open anew what named another place: the files that said so have been rewritten."""
        self.handles.forget_misplaced()

    def versions(self, location: str, branch: str | None = None) -> list[VersionInfo]:
        """The versions of a line that exist."""
        return table_history.versions(self.handles, location, branch)

    def remove_versions(self, location: str, branch: str | None, unwanted: Iterable[int]) -> int:
        """Remove exactly these versions; the bytes that became free."""
        return table_history.remove_versions(self.handles, location, branch, unwanted)
