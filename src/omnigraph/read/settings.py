"""The numbers that bound and steer reads, each with the environment variable that overrides it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.errors import BadRequest

MEGABYTE = 1 << 20


class TraversalMode(StrEnum):
    """How edges are followed when the choice is not left to cost."""

    INDEXED = "indexed"
    CSR = "csr"


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Settings of reads.

    `traversal_mode` (`OMNIGRAPH_TRAVERSAL_MODE`): `indexed` or `csr`; None leaves it to cost.
    `topology_cache_entries` (`OMNIGRAPH_TOPOLOGY_CACHE`): edge tables whose adjacency is kept.
    `column_cache_bytes` (`OMNIGRAPH_COLUMN_CACHE_MB`): memory for columns that were read as a whole.
    `query_memory_bytes` (`OMNIGRAPH_QUERY_MEMORY_MB`): what one query may hold.
    """

    traversal_mode: TraversalMode | None = None
    topology_cache_entries: int = 8
    column_cache_bytes: int = 512 * MEGABYTE
    query_memory_bytes: int = 4096 * MEGABYTE


def settings_from_environment() -> ReadSettings:
    """The settings that the environment asks for."""
    mode = os.environ.get("OMNIGRAPH_TRAVERSAL_MODE", "").strip().lower()
    if mode and mode not in list(TraversalMode):
        raise BadRequest(f"OMNIGRAPH_TRAVERSAL_MODE is {mode!r}; it may be `indexed`, `csr` or unset")
    return ReadSettings(
        traversal_mode=TraversalMode(mode) if mode else None,
        topology_cache_entries=_number("OMNIGRAPH_TOPOLOGY_CACHE", 8),
        column_cache_bytes=_number("OMNIGRAPH_COLUMN_CACHE_MB", 512) * MEGABYTE,
        query_memory_bytes=_number("OMNIGRAPH_QUERY_MEMORY_MB", 4096) * MEGABYTE,
    )


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdigit() or int(text) == 0:
        raise BadRequest(f"{name} is {text!r}; it must be a positive whole number")
    return int(text)
