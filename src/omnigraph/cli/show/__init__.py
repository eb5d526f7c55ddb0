"""How commands show things to people: sentences and tables, changes for a reviewer, the history as a picture."""

__all__ = ["changes", "history_graph", "output", "progress"]
