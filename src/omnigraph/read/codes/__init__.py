"""What rows are made of while a query runs: integer codes for ids, their order, and sums over groups of them.

Everything here is a function of arrays; nothing knows of tables or queries.
"""

__all__ = ["arrays", "ids", "order", "sums"]
