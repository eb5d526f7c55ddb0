"""What is committed already, as a task of a load asks about it: ids of nodes and edges, made ready once and kept."""

__all__ = ["all_committed", "committed_ids", "known_ends", "known_ids"]
