"""From the IR to a list of steps in a good order, in which every condition of the query has its place."""

__all__ = ["block", "choice", "needs", "planner", "show", "statistics", "steps", "top"]
