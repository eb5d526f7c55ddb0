"""The keys of a frame write: what its tasks can settle about them, and what is left to the process that commits."""

__all__ = ["key_check", "staged_keys"]
