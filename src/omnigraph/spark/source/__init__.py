"""`omnigraph` as a Spark data source: reads pinned to a snapshot, writes through the same checks as every load."""

__all__ = ["column_map", "datasource", "option_names", "plain_errors", "scan_plan", "task_reads"]
