"""What rows are made of while a query runs: integer codes for ids, and their order.

Everything here is a function of arrays; nothing knows of tables or queries.
"""

__all__ = ["arrays", "ids", "order"]
