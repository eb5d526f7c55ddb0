"""The internal schema stamp: which layout a line of `__manifest` has, and what to do when it is not ours."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.config import INTERNAL_MANIFEST_SCHEMA_VERSION
from omnigraph.errors import BadRequest, Conflict

STAMP_KEY = "omnigraph:internal_schema_version"
CURRENT = INTERNAL_MANIFEST_SCHEMA_VERSION


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
