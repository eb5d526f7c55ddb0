"""Groups of rows and their aggregates on Spark, to the last bit what the in-process engine gives.

Where rows are read (`scan_groups`), behind joins (`aggregates`), or over everything at once (`everything`).
"""

__all__ = ["aggregates", "everything", "scan_groups"]
