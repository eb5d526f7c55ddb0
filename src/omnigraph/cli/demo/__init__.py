"""`omnigraph demo`: a sample graph from nothing, with its schema, its queries and made-up data."""

__all__ = ["walkthrough"]
