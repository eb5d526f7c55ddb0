"""What comes back: rows in many forms, and the plan as a person reads it."""

__all__ = ["explain", "result"]
