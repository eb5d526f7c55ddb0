"""How commands show things to people: sentences and tables, changes for a reviewer, history as a picture, clusters."""

__all__ = ["changes", "cluster_report", "history_graph", "output", "progress"]
