"""Decoded rows on their way to a table: their columns, their ids, rows merged into rows."""

__all__ = ["fill_vectors", "overlay", "row_columns", "row_ids", "rows", "ulids"]
