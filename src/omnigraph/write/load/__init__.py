"""Loads in process: rows come in as a stream, go to disk as they come, and are published once."""

__all__ = ["input_size", "load", "load_batch", "load_keys", "load_merge", "mapped_tables"]
