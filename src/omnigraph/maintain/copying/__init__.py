"""Copies of live graphs: a cut through the graph at one moment, and the files that belong to it."""

__all__ = ["carriers", "copy"]
