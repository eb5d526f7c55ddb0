"""Sources to Arrow rows: JSON in its shapes, frames, files of columns. No store access; Spark tasks run the same."""

__all__ = [
    "blob_sources",
    "column_batches",
    "files",
    "frames",
    "inputs",
    "json_lines",
    "json_text",
    "line_blocks",
    "records",
    "source_values",
    "sources",
]
