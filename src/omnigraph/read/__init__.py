"""Reads in process: a compiled query is planned, run on one snapshot and comes back as a result.

`run` is the door for queries and `export` writes a graph out. The rooms from the bottom up: `codes`, `tables`, `state`,
`plan`, `search`, `matching`, `operators`, `result`. From another room, only the modules that a room names in `__all__`
are imported.
"""

__all__ = ["export", "run"]
