"""Files that no version refers to: found, and cleared away."""

__all__ = ["abandoning", "attempt_files", "unreferenced"]
