"""Asking the text and vector indexes of a table version: what they cover, and the rows of what they cover.

An index is asked for covered fragments only (Lance's `fast_search`); whoever asks reads the others. An index that was
built with other settings, or whose files are not where the table looks for them, is as good as none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.file import LanceFileReader
from lance.query import FullTextOperator, FullTextQuery, MatchQuery, PhraseQuery

from omnigraph.schema.search_settings import Metric, TextSettings
from omnigraph.storage.handles.forks import list_forks
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.layout.indexes import IndexKind, index_name
from omnigraph.storage.reading.analysis import analysis_parameters
from omnigraph.storage.reading.filters import Filter
from omnigraph.storage.reading.reading import lance_filter
from omnigraph.storage.values import TableVersion

# Without this the statistics of a vector index read all of its centroids.
os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")

REFINE = 5
"""Vectors by code are measured again by their full length, so many for each that is wanted: see `docs/search.md`."""
ALL_EXPANSIONS = 1_000_000
"""A fuzzy question takes every word of the index that is near enough."""
MOST_EDITS = 2
"""Lance's index finds words up to so many edits away."""


class TextKind(StrEnum):
    """What a text index can be asked for."""

    ANY = "any"
    ALL = "all"
    PHRASE = "phrase"
    FUZZY = "fuzzy"


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """Rows whose text has any of the tokens of `text`, all, all in sequence, or one within `edits` of its one token."""

    column: str
    kind: TextKind
    text: str
    edits: int = 0


@dataclass(frozen=True, slots=True)
class VectorQuestion:
    """The `count` rows whose vectors are nearest, looked for in so many partitions of each segment (None: in all)."""

    column: str
    vector: npt.NDArray[np.float32]
    metric: Metric
    count: int
    probes: int | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What an index covers of a table version. `segments` identify its content: they survive writes to the table."""

    segments: tuple[str, ...]
    covered: tuple[int, ...]
    uncovered: tuple[int, ...]
    partitions: int = 1
    positions: bool = True

    @property
    def may_be_stale(self) -> bool:
        """Whether rows can come with what they held before an update, and twice.

        A segment forgets a row that moves to a fragment that no segment covers; when a later segment covers that
        fragment, Lance takes the row from the older one too (a surface guard tells when it does not).
        """
        return len(self.segments) > 1


def text_coverage(handles: Handles, table: TableVersion, column: str, settings: TextSettings) -> Coverage | None:
    """What the text index of a column covers, if it has one that was built with these settings."""
    found = _described(handles, table, index_name(column, IndexKind.TEXT))
    if found is None:
        return None
    coverage, segments = found
    wanted = analysis_parameters(settings)
    for segment in segments:
        if any(segment["params"].get(key) != value for key, value in wanted.items()):
            return None
    positions = all(segment["params"].get("with_position") for segment in segments)
    return Coverage(coverage.segments, coverage.covered, coverage.uncovered, positions=positions)


def vector_coverage(handles: Handles, table: TableVersion, column: str, metric: Metric) -> Coverage | None:
    """What the vector index of a column covers, if it has one for this metric."""
    found = _described(handles, table, index_name(column, IndexKind.VECTOR))
    if found is None:
        return None
    coverage, segments = found
    if any(str(segment.get("metric_type")).lower() != metric.value for segment in segments):
        return None
    partitions = max((int(segment.get("num_partitions") or 1) for segment in segments), default=1)
    return Coverage(coverage.segments, coverage.covered, coverage.uncovered, partitions)


def vector_centres(
    handles: Handles, table: TableVersion, column: str, coverage: Coverage
) -> npt.NDArray[np.float32] | None:
    """The centres of the partitions, one row for each; None when each of several segments has its own."""
    if len(coverage.segments) != 1:
        return None
    try:
        found = handles.at(table).centroids(index_name=index_name(column, IndexKind.VECTOR))
    except Exception:
        # Files that cannot be read: the index is asked all the same, and asked more.
        return None
    if found is None:
        return None
    return np.asarray(found.values.to_numpy(zero_copy_only=False), np.float32).reshape(len(found), -1)


def ask_text_index(
    handles: Handles,
    table: TableVersion,
    question: TextQuestion,
    columns: Sequence[str],
    filter: Filter | None = None,
    limit: int | None = None,
) -> pa.Table:
    """The matching rows of covered fragments with their `_score`; with a limit the best so many of those that pass."""
    handle = handles.readable(table)
    with lance_errors("searching", table):
        return handle.scanner(
            columns=[*columns, "_score"],
            full_text_query=_text_query(question),
            filter=lance_filter(handle, filter),
            prefilter=True if filter is not None else None,
            limit=limit,
            fast_search=True,
            disable_scoring_autoprojection=True,
        ).to_table()


def ask_vector_index(
    handles: Handles, table: TableVersion, question: VectorQuestion, columns: Sequence[str], filter: Filter | None
) -> pa.Table:
    """The nearest rows of covered fragments that pass the filter."""
    handle = handles.readable(table)
    nearest: dict[str, Any] = {
        "column": question.column,
        "q": question.vector,
        "k": question.count,
        "metric": question.metric.value,
        "refine_factor": REFINE,
        "minimum_nprobes": question.probes or 1 << 20,
    }
    with lance_errors("searching", table):
        return handle.scanner(
            columns=list(columns),
            nearest=nearest,
            filter=lance_filter(handle, filter),
            prefilter=True if filter is not None else None,
            fast_search=True,
            disable_scoring_autoprojection=True,
        ).to_table()


def indexed_texts(handles: Handles, table: TableVersion, coverage: Coverage) -> tuple[int, int] | None:
    """How many texts and how many tokens the segments of a text index count; None when their files are not found."""
    texts = tokens = 0
    for segment in coverage.segments:
        counted = _segment_counts(handles, table, segment)
        if counted is None:
            return None
        texts, tokens = texts + counted[0], tokens + counted[1]
    return texts, tokens


def _segment_counts(handles: Handles, table: TableVersion, segment: str) -> tuple[int, int] | None:
    """The counts of one segment. A fork has segments of its own and some from the lines before it."""
    lines = list(dict.fromkeys([table.branch, None]))
    for branch in lines:
        found = _counts_at(handles, table.location, branch, segment)
        if found is not None:
            return found
    for fork in list_forks(handles, table.location):
        found = None if fork.name in lines else _counts_at(handles, table.location, fork.name, segment)
        if found is not None:
            return found
    return None


def _counts_at(handles: Handles, location: str, branch: str | None, segment: str) -> tuple[int, int] | None:
    place = f"{handles.uri(location, branch)}/_indices/{segment}"
    try:
        about = _metadata(handles, f"{place}/metadata.lance")
        texts = tokens = 0
        for partition in json.loads(about[b"partitions"]):
            reader = LanceFileReader(f"{place}/part_{partition}_docs.lance", storage_options=handles.storage_options)
            texts += reader.num_rows()
            tokens += int((reader.metadata().schema.metadata or {})[b"total_tokens"])
    except (OSError, ValueError, KeyError):
        return None
    return texts, tokens


def _metadata(handles: Handles, path: str) -> dict[bytes, bytes]:
    found = LanceFileReader(path, storage_options=handles.storage_options).metadata().schema.metadata
    return dict(found or {})


def _text_query(question: TextQuestion) -> FullTextQuery:
    if question.kind is TextKind.PHRASE:
        return PhraseQuery(question.text, question.column)
    if question.kind is TextKind.FUZZY:
        return MatchQuery(question.text, question.column, fuzziness=question.edits, max_expansions=ALL_EXPANSIONS)
    operator = FullTextOperator.AND if question.kind is TextKind.ALL else FullTextOperator.OR
    return MatchQuery(question.text, question.column, operator=operator)


def _described(handles: Handles, table: TableVersion, name: str) -> tuple[Coverage, list[dict[str, Any]]] | None:
    handle = handles.at(table)
    with lance_errors("reading the indexes of", table):
        description = next((each for each in handle.describe_indices() if each.name == name), None)
        if description is None:
            return None
        everything = set(handle.fragment_ids())
    try:
        segments = handle.stats.index_stats(name)["indices"]
    except Exception:
        # Files that are not there (a fork that was compacted), or that cannot be read: the rows are read instead.
        return None
    covered = {fragment for segment in description.segments for fragment in segment.fragment_ids}
    coverage = Coverage(
        tuple(sorted(str(segment.uuid) for segment in description.segments)),
        tuple(sorted(covered & everything)),
        tuple(sorted(everything - covered)),
    )
    return coverage, segments
