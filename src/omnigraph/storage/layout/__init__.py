"""The layout of a table, which changes no row: compaction and indexes."""

__all__ = ["compaction", "index_damage", "indexes"]
