"""Undo without rewriting history: revert, restore and cherry-pick, each one new commit."""

__all__ = ["restore", "revert", "taken_back", "undo_result"]
