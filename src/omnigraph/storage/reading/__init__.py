"""Reads of a pinned table version, and the conditions that storage itself can decide."""

__all__ = ["analysis", "blobs", "changed_rows", "filters", "fitting_batches", "pushdown", "reading"]
