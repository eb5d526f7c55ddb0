"""The internal schema stamp: which layout a line of `__manifest` has, and what to do when it is not ours."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.config import INTERNAL_MANIFEST_SCHEMA_VERSION
from omnigraph.errors import BadRequest, Conflict

STAMP_KEY = "omnigraph:internal_schema_version"
WRITER_KEY = "omnigraph:writer"
WRITER = "omnigraph-python"
CURRENT = INTERNAL_MANIFEST_SCHEMA_VERSION
LAST_SHARED = 3
"""Up to this version there was one program. Since then each implementation counts for itself and signs its graphs."""


def read_stamp(schema: pa.Schema) -> int:
    """The stamp in a manifest's schema metadata. The first graphs had none: that is 1."""
    text = (schema.metadata or {}).get(STAMP_KEY.encode())
    if text is None:
        return 1
    try:
        return int(text)
    except ValueError:
        raise BadRequest(
            f"the manifest's stamp `{STAMP_KEY}` is {text.decode(errors='replace')!r}, which is no number: "
            "this is not a graph of ours, or it is damaged"
        ) from None


def refuse_others(schema: pa.Schema, uri: str, *, is_ours: bool) -> None:
    """A graph of a later version that another implementation wrote has another layout under the same number.

    The metadata names the writer. Where nothing is named, `is_ours` says whether the graph has what ours have.
    """
    stamp = read_stamp(schema)
    writer = (schema.metadata or {}).get(WRITER_KEY.encode(), b"").decode(errors="replace")
    if stamp <= LAST_SHARED or writer == WRITER or (not writer and is_ours):
        return
    raise BadRequest(
        f"the graph at {uri} was written by another implementation of omnigraph"
        f"{f' (`{writer}`)' if writer else ''}, in its own layout, version {stamp}, which this program cannot read. "
        "Bring the data over: export each branch with that program (`omnigraph export`), make a graph here from its "
        "schema (`omnigraph init --schema _schema.pg NEW`), and load the export (`omnigraph load --data EXPORT --mode "
        "append NEW`), with dates as texts; the page `backup-and-restore` of the docs shows it",
        internal_schema_version=stamp,
        uri=uri,
    )


def refuse_newer(stamp: int) -> None:
    """A layout that this program does not know cannot be read, let alone written."""
    if stamp > CURRENT:
        raise BadRequest(
            f"this graph has internal schema version {stamp} and this program knows {CURRENT}: upgrade omnigraph first",
            internal_schema_version=stamp,
        )


def check_for_publish(stamp: int) -> None:
    """Every publish checks again: another process may have migrated the graph, or an old copy may have come back."""
    refuse_newer(stamp)
    if stamp < CURRENT:
        raise Conflict(
            f"the manifest has internal schema version {stamp} and writes need {CURRENT}: "
            "open the graph for writing again, which migrates it"
        )
