"""What a merge decided, as staged writes on the target's own lines."""

__all__ = ["stage", "stage_schema"]
