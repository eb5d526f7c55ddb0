"""What happens to the rows of a block: grouping, sorting, projecting; and running a plan from end to end."""

__all__ = ["execute", "project"]
