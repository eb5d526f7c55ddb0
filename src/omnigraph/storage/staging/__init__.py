"""Staged writes: files on disk with no effect on a table's HEAD until the strict commit makes them its next version."""

__all__ = [
    "adopting",
    "committing",
    "distributed",
    "filling",
    "internal_tables",
    "row_streams",
    "staged_files",
    "staging",
    "table_columns",
    "written_rows",
]
