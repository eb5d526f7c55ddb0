"""The commit DAG and its log. The log is derived from the manifest, and completed from it after a crash."""

__all__ = [
    "acknowledged",
    "bases_of_heads",
    "commit_log",
    "complete_log",
    "dag",
    "held_history",
    "log_rows",
    "publish_marks",
    "rebuild_log",
    "recorded_files",
    "unlogged",
]
