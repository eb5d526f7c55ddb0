"""Joins of a query's parts on Spark: in which order they are made (`join_order`), and how they stop (`stopping`)."""

__all__ = ["join_order", "stopping"]
