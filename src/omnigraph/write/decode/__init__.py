"""Sources to Arrow rows: JSON in its shapes, frames and files of columns. No store access; a Spark task runs the same."""
