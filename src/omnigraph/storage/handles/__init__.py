"""Opening tables: handles that are cached and shared, new tables, forks, and what happened to a table."""

__all__ = ["creating", "forks", "fragment_ids", "handles", "table_history"]
