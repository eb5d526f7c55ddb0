"""Which rows differ between versions of a table, at a cost that follows the difference."""

__all__ = ["candidates", "images", "lineage", "located", "relational", "row_differences", "schema_view"]
