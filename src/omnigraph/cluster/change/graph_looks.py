"""A look at what really lies where a graph should be, without changing a byte of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from omnigraph.cluster.folder.read_folder import schema_digest
from omnigraph.errors import NotFound, OmniGraphError
from omnigraph.ledger.layout import INIT_MARKER
from omnigraph.ledger.store import open_store
from omnigraph.storage.constants import LOCKS_DIRECTORY
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root


@dataclass(frozen=True, slots=True)
class GraphLook:
    """What was seen. `half`: files, and no graph. What an `init` left that died counts as missing: init clears it."""

    seen: Literal["found", "missing", "half", "unreadable"]
    schema_digest: str | None = None
    graph_id: str | None = None
    commit: str | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What the ledger keeps of it."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def look_at(uri: str) -> GraphLook:
    """Look at the place of a graph."""
    try:
        with open_store(uri, read_only=True) as store:
            snapshot = store.snapshot()
            source = store.schemas.get(snapshot.schema_digest)[0]
            return GraphLook("found", schema_digest(source), store.graph_id, snapshot.head.graph_commit_id)
    except NotFound:
        return _without_graph(uri)
    except OmniGraphError as error:
        return GraphLook("unreadable", reason=error.message)


def _without_graph(uri: str) -> GraphLook:
    try:
        names = [name for name in open_objects(parse_root(uri)).names() if name != LOCKS_DIRECTORY]
    except OmniGraphError as error:
        return GraphLook("unreadable", reason=error.message)
    if not names or INIT_MARKER in names:
        return GraphLook("missing", reason=f"there is no graph at {uri}")
    return GraphLook("half", reason=f"{uri} holds {', '.join(names[:3])} and is no graph")
