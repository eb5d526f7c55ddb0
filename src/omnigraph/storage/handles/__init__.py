"""Opening tables: handles that are cached and shared, new tables, forks, and what happened to a table."""

__all__ = [
    "base_paths",
    "creating",
    "forks",
    "fragment_ids",
    "handles",
    "ids_of_files",
    "manifest_files",
    "sessions",
    "shared_lookups",
    "table_history",
]
