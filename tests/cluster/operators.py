"""What operators do in processes of their own, which tests kill or let run at once."""

from __future__ import annotations

from pathlib import Path

from omnigraph.cluster import operations
from omnigraph.errors import Busy


def apply(folder: str) -> tuple[bool, bool]:
    """Apply; whether it converged, and whether it changed anything."""
    result = operations.apply(Path(folder), "operator")
    return result.converged, result.changed


def apply_or_refused(folder: str) -> str:
    """Apply without waiting for the lock."""
    from omnigraph.config import override

    try:
        with override(lease_wait_seconds=0.0):
            return "changed" if apply(folder)[1] else "nothing"
    except Busy:
        return "refused"
