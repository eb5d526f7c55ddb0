"""Loads on Spark: tasks decode, check and write fragments, buckets of keys are checked, the driver commits once."""

__all__ = [
    "known",
    "load",
    "load_checks",
    "load_input",
    "load_messages",
    "load_tasks",
    "lost_files",
]
