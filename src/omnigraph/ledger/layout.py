"""Where things are below a graph's root, and the physical form of a type's table."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.ledger.history.log_rows import LOG
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.schema_store import CURRENT_SOURCE, SCHEMAS_PREFIX
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType, NodeType
from omnigraph.storage.reading.blobs import blob_field

NODES = "nodes"
EDGES = "edges"
REFS = "_refs"
RECOVERIES = "_graph_commit_recoveries.lance"
INIT_MARKER = "__init.json"
COPY_MARKER = "__copy.json"
"""There while a copy is under way: no graph yet, and nothing else either."""

OWN_NAMES = (NODES, EDGES, SCHEMAS_PREFIX, REFS, MANIFEST, LOG, RECOVERIES, CURRENT_SOURCE)
"""What `init` makes at the root, or may make later."""


def table_location(graph_type: GraphType) -> str:
    """The directory of a type's table. It comes from the stable id, so a rename moves nothing."""
    return f"{NODES if isinstance(graph_type, NodeType) else EDGES}/{graph_type.id}"


def physical_schema(graph_type: GraphType) -> pa.Schema:
    """The columns of a type's table as Lance stores them, blobs in Lance's own form."""
    return table_schema(graph_type, lambda name, nullable: blob_field(name, nullable=nullable))
