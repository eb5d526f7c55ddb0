"""Expressions: from what was written to typed IR, operator by operator and function by function."""

__all__ = ["aggregates", "comparisons", "expressions", "functions", "literals", "places"]
