"""What was chosen for one graph and is kept with it, for everybody who opens it: a small object beside its refs."""

from __future__ import annotations

import orjson

from omnigraph.config import settings
from omnigraph.errors import BadRequest
from omnigraph.ledger.parts import GraphParts
from omnigraph.storage.objects.object_errors import ObjectNotFound

CHOICES = "_refs/choices.json"
_GRANULARITY = "merge_granularity"


def merge_granularity(store: GraphParts) -> str:
    """How fine the changes are that can collide in a merge: the graph's choice, or else that of the settings."""
    return _read(store).get(_GRANULARITY) or settings().merge_granularity


def set_merge_granularity(store: GraphParts, granularity: str | None) -> None:
    """Choose for the graph; None leaves it to the settings."""
    store.refuse_if_read_only("set granularity")
    if granularity not in (None, "row", "property"):
        raise BadRequest(f"`{granularity}` is no granularity: use row or property")
    kept = {name: value for name, value in _read(store).items() if name != _GRANULARITY}
    store.objects.put(CHOICES, orjson.dumps(kept | ({_GRANULARITY: granularity} if granularity else {})))


def _read(store: GraphParts) -> dict[str, str]:
    try:
        found: dict[str, str] = orjson.loads(store.objects.get(CHOICES)[0])
    except ObjectNotFound:
        return {}
    return found
