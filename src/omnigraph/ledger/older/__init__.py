"""Graphs of internal schema versions 1 to 3: read as they are, or walked forward when opened for writing."""

__all__ = ["legacy", "migrations", "old_recoveries"]
