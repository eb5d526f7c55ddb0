"""Bulk work besides loads and queries: export, compaction and indexes, merges, back-fill, analytics."""

__all__ = ["compact", "copy", "embed", "export", "merge"]
