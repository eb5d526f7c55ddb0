"""Indexes: derived, never needed for a right answer, built over fragments and committed as a tagged transaction.

An index is one name with one or more segments, each over some fragments. Fragments that no segment covers are scanned
by Lance, so an index may lag. Building what is missing adds a segment for the uncovered fragments; when segments pile
up, all are replaced by one. Segments may be built in other processes: tasks and results are plain values that pickle.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import lance
from lance.dataset import Index, LanceDataset, LanceOperation

from omnigraph.schema.search_settings import Metric, TextSettings
from omnigraph.storage.handles.base_paths import open_line
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors, raise_ours
from omnigraph.storage.reading.analysis import analysis_parameters
from omnigraph.storage.reading.filters import is_null, not_
from omnigraph.storage.reading.reading import scan
from omnigraph.storage.staging.staging import staged
from omnigraph.storage.values import IndexInfo, StagedWrite, TableVersion

FEWEST_VECTORS = 256
"""With fewer vectors there is nothing to train on, and a scan is as fast."""

ROWS_PER_PARTITION = 4096
MOST_SEGMENTS = 8
"""More segments than this are replaced by one: each is a look-up of its own."""


CODED_DIMENSIONS = 32
"""Vectors of so many numbers and more are kept in the index as codes; shorter ones as they are."""


class IndexKind(StrEnum):
    """What an index is good for: equality, order and prefix; words; nearest vectors."""

    BTREE = "BTREE"
    TEXT = "INVERTED"
    VECTOR = "IVF"


SearchSettings: TypeAlias = TextSettings | Metric
"""What the schema says about searching a column: how texts become tokens, or how vectors are compared."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """What is missing for an index to cover a table version. `trainable` is False for too few vectors."""

    name: str
    column: str
    kind: IndexKind
    segments: int
    uncovered_fragments: tuple[int, ...]
    trainable: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing to build."""
        return not self.uncovered_fragments and self.segments <= MOST_SEGMENTS


@dataclass(frozen=True, slots=True)
class IndexWork:
    """One segment to build, ready to be sent somewhere."""

    uri: str
    branch: str | None
    version: int
    storage_options: dict[str, str] | None
    column: str
    kind: IndexKind
    name: str
    fragments: tuple[int, ...]
    partitions: int
    settings: SearchSettings | None = None


def index_name(column: str, kind: IndexKind) -> str:
    """The name under which the index of a column is kept."""
    return f"{column}_{IndexKind(kind).name.lower()}"


def list_indexes(handles: Handles, table: TableVersion) -> list[IndexInfo]:
    """The indexes of a table version, sorted by name, with what they cover."""
    handle = handles.at(table)
    with lance_errors("listing the indexes of", table):
        everything = _fragment_ids(handle)
        found = [
            IndexInfo(
                description.name,
                description.field_names[0],
                description.index_type,
                tuple(sorted(_covered(description) & everything)),
                tuple(sorted(everything - _covered(description))),
            )
            for description in handle.describe_indices()
            if not description.name.startswith("__")
        ]
    return sorted(found, key=lambda index: index.name)


def lost_indexes(handles: Handles, table: TableVersion) -> list[str]:
    """The names of indexes whose files are not where the table looks for them.

    A compaction of a fork rewrites the indexes that the fork has from its parent, but Lance goes on looking for them in
    the parent's place (a surface guard tells when it does not).
    """
    handle = handles.at(table)
    lost = []
    for index in list_indexes(handles, table):
        try:
            handle.stats.index_stats(index.name)
        except Exception as error:
            if "not found" not in str(error).lower():
                raise_ours("reading the indexes of", table, error)
            lost.append(index.name)
    return lost


def index_state(
    handles: Handles, table: TableVersion, column: str, kind: IndexKind, settings: SearchSettings | None = None
) -> IndexState:
    """What is missing for this index to cover the table version. One of other settings covers nothing."""
    handle = handles.at(table)
    kind = IndexKind(kind)
    name = index_name(column, kind)
    with lance_errors("reading the indexes of", table):
        found = [description for description in handle.describe_indices() if description.name == name]
        covered = _covered(found[0]) if found and _is_built_so(handle, name, kind, settings) else set()
        uncovered = tuple(sorted(_fragment_ids(handle) - covered))
        segments = len(found[0].segments) if found else 0
    trainable = True
    if kind is IndexKind.VECTOR and uncovered:
        # Each segment is trained on its own vectors; too few are scanned until a compaction brings them together.
        rows = scan(handles, table, columns=["_rowid"], filter=not_(is_null(column)), fragments=uncovered)
        trainable = sum(batch.num_rows for batch in rows) >= FEWEST_VECTORS
    return IndexState(name, column, kind, segments, uncovered, trainable)


def plan_index(
    handles: Handles,
    table: TableVersion,
    column: str,
    kind: IndexKind,
    parts: int = 1,
    settings: SearchSettings | None = None,
    *,
    anew: bool = False,
) -> list[IndexWork]:
    """The segments to build so that the index covers everything; none when it does or cannot be trained yet.

    `anew` builds all of it, whatever is there: for one that cannot be read.
    """
    state = index_state(handles, table, column, kind, settings)
    if (state.is_complete and not anew) or not state.trainable:
        return []
    handle = handles.at(table)
    fragments = list(state.uncovered_fragments)
    if anew or state.segments >= MOST_SEGMENTS or not fragments:
        fragments = sorted(_fragment_ids(handle))
    size = math.ceil(len(fragments) / max(1, parts))
    shares = [fragments[start : start + size] for start in range(0, len(fragments), size)]
    rows = {fragment.fragment_id: fragment.count_rows() for fragment in handle.get_fragments()}
    return [
        IndexWork(
            handles.uri(table.location, table.branch),
            table.branch,
            table.version,
            handles.storage_options,
            column,
            state.kind,
            state.name,
            tuple(share),
            max(1, sum(rows[fragment] for fragment in share) // ROWS_PER_PARTITION),
            settings,
        )
        for share in shares
    ]


def run_index_task(work: IndexWork) -> bytes:
    """Build one segment; its description, for `stage_index_segments`. Moves nothing; runs in any process."""
    with lance_errors(f"building the index `{work.name}` of", work.uri):
        handle = open_line(work.uri, work.branch, work.version, work.storage_options)
        return pickle.dumps(_build(handle, work))


def stage_index_segments(
    handles: Handles, table: TableVersion, column: str, kind: IndexKind, segments: Sequence[bytes]
) -> StagedWrite:
    """Built segments as one staged write. Older segments whose fragments are covered anew are replaced."""
    handle = handles.at(table)
    built: list[Index] = [pickle.loads(segment) for segment in segments]
    with lance_errors(f"merging segments of the index of `{column}` of", table):
        if len(built) > 1 and kind != IndexKind.VECTOR:
            built = [handle.merge_existing_index_segments(built)]
        fresh = {fragment for index in built for fragment in index.fragment_ids}
        replaced = [old for old in _segments(handle, index_name(column, kind)) if fresh & set(old.fragment_ids)]
    return staged(table, LanceOperation.CreateIndex(built, replaced))


def stage_index(
    handles: Handles, table: TableVersion, column: str, kind: IndexKind, settings: SearchSettings | None = None
) -> StagedWrite | None:
    """Build what is missing of an index here; None when there is nothing to do or too few vectors to train on."""
    work = plan_index(handles, table, column, kind, settings=settings)
    if not work:
        return None
    return stage_index_segments(handles, table, column, kind, [run_index_task(task) for task in work])


def stage_indexes(
    handles: Handles, table: TableVersion, wanted: Sequence[tuple[str, IndexKind, SearchSettings | None]]
) -> StagedWrite | None:
    """Build what is missing of several indexes here, as one staged write; None when there is nothing to do."""
    built = [stage_index(handles, table, *index) for index in wanted]
    operations = [one.transaction.operation for one in built if one is not None]
    new = [index for operation in operations for index in operation.new_indices]
    replaced = [index for operation in operations for index in operation.removed_indices]
    return staged(table, LanceOperation.CreateIndex(new, replaced)) if new else None


def stage_indexes_again(handles: Handles, table: TableVersion, write: StagedWrite) -> StagedWrite | None:
    """Segments that `stage_indexes` built, once more on a later version of the line; None when they do not fit it.

    They do while the fragments that they cover have the same files, and no index has changed. Rows that were deleted
    or updated since are where Lance looks for them after any index was built: in the deletion vectors, and elsewhere.
    """
    operation = write.transaction.operation
    covered = {fragment for index in operation.new_indices for fragment in index.fragment_ids}
    before, now = handles.at(write.base), handles.at(table)
    with lance_errors("comparing the indexes of", table):
        if not covered <= _fragment_ids(now) or all_segments(before) != all_segments(now):
            return None
        if any(_files(before, number) != _files(now, number) for number in covered):
            return None
    return staged(table, operation)


def all_segments(handle: LanceDataset) -> set[tuple[str, str]]:
    """Every segment of every index of a version, by the name of the index and its own."""
    return {(one.name, str(segment.uuid)) for one in handle.describe_indices() for segment in one.segments}


def _files(handle: LanceDataset, fragment: int) -> list[str]:
    return [str(file.path) for file in handle.get_fragment(fragment).metadata.files]


def stage_drop_index(handles: Handles, table: TableVersion, name: str) -> StagedWrite | None:
    """Stage the removal of an index by name; None when there is none."""
    with lance_errors("reading the indexes of", table):
        old = _segments(handles.at(table), name)
    return staged(table, LanceOperation.CreateIndex([], old)) if old else None


def _build(handle: LanceDataset, work: IndexWork) -> Index:
    fragments = list(work.fragments)
    if work.kind is IndexKind.VECTOR:
        dimension = handle.schema.field(work.column).type.list_size
        # Codes of one bit for each number: a tenth of the time of full vectors, and the best are measured again.
        coded = dimension >= CODED_DIMENSIONS and dimension % 8 == 0
        return handle.create_index_uncommitted(
            work.column,
            "IVF_RQ" if coded else "IVF_FLAT",
            name=work.name,
            metric=_metric(work.settings).value,
            num_partitions=work.partitions,
            fragment_ids=fragments,
            replace=True,
        )
    if work.kind is IndexKind.BTREE:
        return handle.create_index_uncommitted(
            work.column, work.kind.value, name=work.name, fragment_ids=fragments, replace=True
        )
    # A text segment has to be merged, even alone, before it can be searched.
    wanted = _text_settings(work.settings)
    segment = handle.create_index_uncommitted(
        work.column,
        work.kind.value,
        name=work.name,
        fragment_ids=fragments,
        replace=True,
        with_position=wanted.positions,
        **analysis_parameters(wanted),
    )
    return handle.merge_existing_index_segments([segment])


def _is_built_so(handle: LanceDataset, name: str, kind: IndexKind, settings: SearchSettings | None) -> bool:
    """Whether an index was built with these settings."""
    if kind is IndexKind.BTREE:
        return True
    try:
        built = handle.stats.index_stats(name)["indices"]
    except Exception as error:
        # One that is not found is told by `lost_indexes`, and a rebuild is its caller's decision; one that cannot be
        # read is as good as none.
        return "not found" in str(error).lower()
    if kind is IndexKind.VECTOR:
        return all(str(each.get("metric_type")).lower() == _metric(settings).value for each in built)
    wanted = {**analysis_parameters(_text_settings(settings)), "with_position": _text_settings(settings).positions}
    return all(each["params"].get(key) == value for each in built for key, value in wanted.items())


def _metric(settings: SearchSettings | None) -> Metric:
    return settings if isinstance(settings, Metric) else Metric.COSINE


def _text_settings(settings: SearchSettings | None) -> TextSettings:
    return settings if isinstance(settings, TextSettings) else TextSettings()


def _segments(handle: LanceDataset, name: str) -> list[Index]:
    return [
        Index(
            uuid=segment.uuid,
            name=name,
            fields=list(description.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
        )
        for description in handle.describe_indices()
        if description.name == name
        for segment in description.segments
    ]


def _covered(description: lance.IndexDescription) -> set[int]:
    return {fragment for segment in description.segments for fragment in segment.fragment_ids}


def _fragment_ids(handle: LanceDataset) -> set[int]:
    return set(handle.fragment_ids())
