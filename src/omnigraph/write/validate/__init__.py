"""The rules of the data: what may be in a row, and what must hold across rows. No store access, only Arrow."""

__all__ = ["collector", "duplicates", "graph_rules", "key_changes", "messages", "value_rules", "zeros"]
