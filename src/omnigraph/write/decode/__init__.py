"""Sources to Arrow rows: JSON in its shapes, frames, files of columns. No store access; Spark tasks run the same."""
