"""Compiled reads on Spark. `run` is the entrance; the other modules serve it."""

__all__ = ["run"]
