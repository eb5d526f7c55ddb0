"""What a merge decided, as staged writes on the target's own lines."""

__all__ = ["made_tables", "stage", "stage_schema"]
