"""Branches and tags: the ref objects that say which exist, the names they may have, the lock of a schema apply."""

__all__ = ["branches", "live_branches", "names", "refs", "schema_lock"]
