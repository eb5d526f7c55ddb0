"""What lies below a graph, what of it must stay, and what nothing refers to: for cleanup and verify. Reads only,
but for the removal of what was found to be left over.
"""

__all__ = ["inventory", "leftovers", "must_stay", "orphan_forks", "retention", "unexplained_drift"]
