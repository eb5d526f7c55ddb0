"""The commands of the `omnigraph` program, one module for each group that a user thinks of together."""

__all__ = [
    "blob",
    "branches",
    "clusters",
    "commits",
    "data",
    "graphs",
    "languages",
    "maintenance",
    "policies",
    "schemas",
    "servers",
    "stored_queries",
    "undo",
]
