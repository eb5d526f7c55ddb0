"""`omnigraph` as a Spark data source: reads pinned to a snapshot, writes through the same checks as every load."""

__all__ = ["datasource", "option_names", "scan_plan", "task_reads"]
