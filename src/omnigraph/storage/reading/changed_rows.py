"""The rows of a version that an older version of its line does not have as they are: new ones and updated ones.

A write puts rows that are new or changed into fragments of their own, so only fragments that the older version lacks
are looked at, and of those only rows whose lineage says that they are younger. Row ids are stable along a line and into
its forks, and version numbers go on there, so the older version may lie on the line that a fork was made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.handles.table_history import CREATED, UPDATED
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.values import TableVersion


def changed_rows(
    handles: Handles,
    table: TableVersion,
    since: TableVersion,
    columns: Sequence[str],
    *,
    only: str | None = None,
    with_row_address: bool = False,
    touched_after: int | None = None,
    touched_until: int | None = None,
) -> pa.RecordBatchReader:
    """Rows of `table` that are younger than `since`, a version in its past, with `_rowid`.

    `only` is `created` or `updated`: rows that `since` does not have, or has otherwise. `touched_after` and
    `touched_until` are versions in between: only rows that were last written after one, or not after the other. A
    restore on the way hides what it took back.
    """
    handle = handles.at(table)
    condition = f"{UPDATED} > {since.version}"
    if only == "created":
        condition = f"{CREATED} > {since.version}"
    elif only == "updated":
        condition += f" AND {CREATED} <= {since.version}"
    condition += f" AND {UPDATED} > {touched_after}" if touched_after is not None else ""
    condition += f" AND {UPDATED} <= {touched_until}" if touched_until is not None else ""
    with lance_errors("comparing versions of", table):
        known = set(handles.at(since).fragment_ids())
        fresh = [fragment for fragment in handle.get_fragments() if fragment.fragment_id not in known]
        reader: pa.RecordBatchReader = handle.scanner(
            columns=list(columns),
            filter=condition,
            with_row_id=True,
            with_row_address=with_row_address or None,
            # No fragments would mean all of them.
            fragments=fresh or None,
            limit=None if fresh else 0,
        ).to_reader()
    return pa.RecordBatchReader.from_batches(reader.schema, _told_in_our_words(reader, table))


def _told_in_our_words(reader: pa.RecordBatchReader, table: TableVersion) -> Iterator[pa.RecordBatch]:
    with lance_errors("comparing versions of", table):
        yield from reader
