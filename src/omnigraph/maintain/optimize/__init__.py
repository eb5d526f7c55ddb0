"""Optimize: compaction and indexes of all tables of a branch, published in one commit. Changes no data."""

__all__ = ["optimize", "tail", "workers"]
